//! The files that commands write: whole or not at all, by [`write_whole`]. What can be checked is checked before anything runs.
//!
//! [`check`] asks, [`check_form`] also for a name of the right form, [`check_folder`] for a folder, [`write()`] writes, [`form_of`] says
//! what a file's name asks for.
//!
//! Why it is so: `docs/decisions/command-line.md`.

use std::fs::File;
use std::io::{BufWriter, Error, ErrorKind, Result as IoResult};
use std::path::Path;

use pto_host::whole_file::{check_whole, folder_of, target_of, write_whole};

use crate::errors::Failure;

/// The name that means standard output.
const STANDARD_OUTPUT: &str = "-";

/// Whether the name means standard output.
pub(crate) fn is_standard_output(path: &Path) -> bool {
    path.as_os_str() == STANDARD_OUTPUT
}

/// Nothing runs for a file that cannot be written in the end.
pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    if is_standard_output(path) {
        return Err(Failure::usage(
            "'-' means standard output, which already gets the report; name a file (a file called '-' is './-')",
        ));
    }
    if path.is_dir() {
        return Err(cannot("write", path, &"it is a folder; name a file in it"));
    }
    check_whole(path).map_err(|error| refused(path, &error))
}

/// Endings that promise a form which programs know. A file that is written in another form does not get one of them.
const PROMISES: &[&str] = &[
    "csv", "dot", "gif", "gv", "htm", "html", "img", "jpeg", "jpg", "json", "jsonl", "npy", "npz",
    "pdf", "png", "ptop", "so", "svg", "toml", "webp", "workload",
];

/// As [`check`], for a file that is always of one form, such as `json`. Its name may end in any way that promises no other form.
pub(crate) fn check_form(path: &Path, form: &str) -> Result<(), Failure> {
    let extension = extension_of(path);
    match extension.filter(|extension| PROMISES.contains(&extension.as_str())) {
        Some(_) => form_of(path, &[(form, ())]).and_then(|_| check(path)),
        None => check(path),
    }
}

/// Nothing runs for a folder that is called like standard output.
pub(crate) fn check_folder(option: &str, folder: &Path) -> Result<(), Failure> {
    if is_standard_output(folder) {
        return Err(Failure::usage(format!(
            "{option} '-': standard output is no folder; name a folder (a folder called '-' is './-')"
        )));
    }
    Ok(())
}

/// Writes a file: what `body` writes, or nothing.
pub(crate) fn write(
    path: &Path,
    body: impl FnOnce(&mut BufWriter<&mut File>) -> IoResult<()>,
) -> Result<(), Failure> {
    write_whole(path, body).map_err(|error| refused(path, &error))
}

fn refused(path: &Path, error: &Error) -> Failure {
    let target = target_of(path);
    let folder = folder_of(&target);
    match error.kind() {
        ErrorKind::NotFound if !folder.is_dir() => {
            let missing = format!("there is no folder '{}'; make it first", folder.display());
            cannot("create", path, &missing)
        }
        ErrorKind::PermissionDenied => {
            let folder = folder.display();
            cannot("write", path, &format!("nothing may be written in the folder '{folder}'"))
        }
        _ => cannot("write", path, error),
    }
}

fn cannot(what: &str, path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::internal(format!("cannot {what} '{}': {why}", path.display()))
}

/// What the extension of a file asks for, of what there is; `None`: it has no extension, or is standard output.
pub(crate) fn form_of<T: Copy>(path: &Path, known: &[(&str, T)]) -> Result<Option<T>, Failure> {
    let Some(extension) = extension_of(path) else { return Ok(None) };
    match known.iter().find(|(name, _)| *name == extension) {
        Some((_, form)) => Ok(Some(*form)),
        None => {
            let names: Vec<_> = known.iter().map(|(name, _)| format!(".{name}")).collect();
            Err(Failure::usage(format!(
                "'{}' would be a .{extension} file, and this command writes none there; use {}",
                path.display(),
                alternatives(&names)
            )))
        }
    }
}

/// What the name ends with, in small letters; `None`: nothing, or it means standard output.
fn extension_of(path: &Path) -> Option<String> {
    let extension = path.extension().filter(|_| !is_standard_output(path))?;
    Some(extension.to_string_lossy().to_ascii_lowercase())
}

/// `.a, .b or .c`.
fn alternatives(names: &[String]) -> String {
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::{check, check_folder, check_form, form_of, write};
    use std::fs;
    use std::io::Write;
    use std::path::Path;

    #[test]
    fn what_cannot_be_written_is_told() {
        let full = write(Path::new("/dev/full"), |to| to.write_all(b"bytes")).unwrap_err();
        assert!(full.message().starts_with("cannot write '/dev/full': "), "{}", full.message());
    }

    #[test]
    fn what_cannot_be_written_is_known_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let says = |path: &Path, words: &str| {
            let failure = check(path).unwrap_err();
            assert!(failure.message().contains(words), "{}", failure.message());
        };
        says(folder.path(), "it is a folder");
        says(&folder.path().join("no/file"), "there is no folder");
        says(Path::new("-"), "standard output");
        check(&folder.path().join("file")).expect("it can be written");
        check(Path::new("/dev/null")).expect("it can be written");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn a_name_that_promises_another_form_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let checked = |name: &str| check_form(&folder.path().join(name), "json");
        assert!(checked("a.png").unwrap_err().message().ends_with("writes none there; use .json"));
        assert!(checked("a.NPY").is_err());
        for name in ["a.json", "a.JSON", "a", "run.2", "a.trace"] {
            assert!(checked(name).is_ok(), "{name}");
        }
        assert!(check_form(Path::new("-"), "json").is_err());
        assert!(check_folder("--dump", Path::new("-")).is_err());
        assert!(check_folder("--dump", Path::new("./-")).is_ok());
    }

    #[test]
    fn a_name_asks_for_a_form() {
        let known = [("svg", 1), ("html", 2)];
        let of = |name: &str| form_of(Path::new(name), &known);
        assert_eq!(of("a.SVG").expect("known"), Some(1));
        assert_eq!((of("a").expect("none"), of("-").expect("none")), (None, None));
        assert!(of("a.png").unwrap_err().message().contains("use .svg or .html"));
    }
}
