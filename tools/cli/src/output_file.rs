//! The files that commands write: whole or not at all. A file is written beside its place and renamed, so that what
//! was there before stays until the new one is complete. What can be checked is checked before anything runs.
//!
//! [`check`] asks, [`check_form`] also for a name of the right form, [`check_folder`] for a folder, [`write()`] writes, [`form_of`] says
//! what a file's name asks for.

use std::fs::{self, File};
use std::io::{BufWriter, Error, ErrorKind, Result as IoResult, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use crate::errors::Failure;

/// The name that stands for standard output.
const STANDARD_OUTPUT: &str = "-";

/// Whether the name stands for standard output.
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
    let target = target_of(path);
    if target.is_dir() {
        return Err(cannot("write", path, &"it is a folder; name a file in it"));
    }
    if is_special(&target) {
        return Ok(());
    }
    // Removed again at once.
    beside(&target).map(drop).map_err(|error| refused(path, &target, &error))
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
    let target = target_of(path);
    let written = match is_special(&target) {
        // A device or a pipe is not replaced.
        true => {
            File::options().write(true).open(&target).and_then(|mut file| fill(&mut file, body))
        }
        false => replace(&target, body),
    };
    written.map_err(|error| refused(path, &target, &error))
}

fn replace(
    target: &Path,
    body: impl FnOnce(&mut BufWriter<&mut File>) -> IoResult<()>,
) -> IoResult<()> {
    let mut file = beside(target)?;
    fill(file.as_file_mut(), body)?;
    // A file that is there keeps who may read it.
    if let Ok(there) = fs::metadata(target) {
        fs::set_permissions(file.path(), there.permissions())?;
    }
    file.persist(target).map(drop).map_err(|error| error.error)
}

fn fill(
    file: &mut File,
    body: impl FnOnce(&mut BufWriter<&mut File>) -> IoResult<()>,
) -> IoResult<()> {
    let mut to = BufWriter::new(file);
    body(&mut to)?;
    to.flush()
}

/// A file in the same folder, with the rights of a file that is simply created.
fn beside(target: &Path) -> IoResult<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(".pto-").suffix(".new");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder_of(target))
}

fn folder_of(target: &Path) -> &Path {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// The file itself, where the name is a link to it.
fn target_of(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Whether something is there that is neither a file nor a folder.
fn is_special(target: &Path) -> bool {
    fs::metadata(target).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

fn refused(path: &Path, target: &Path, error: &Error) -> Failure {
    let folder = folder_of(target);
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

/// What the name ends with, in small letters; `None`: nothing, or it stands for standard output.
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
    use std::io::{Error, ErrorKind, Write};
    use std::path::Path;

    #[test]
    fn a_file_is_there_whole_or_as_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x");
        write(&path, |to| to.write_all(b"first")).expect("it is written");
        let failed = write(&path, |to| {
            to.write_all(b"second")?;
            to.flush()?;
            Err(Error::from(ErrorKind::StorageFull))
        });
        assert!(failed.unwrap_err().message().contains("cannot write"));
        assert_eq!(fs::read(&path).expect("it is there"), b"first");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
        write(&path, |to| to.write_all(b"third")).expect("it is written");
        assert_eq!(fs::read(&path).expect("it is there"), b"third");
    }

    #[test]
    fn a_link_stays_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        fs::write(&file, "old").expect("a file");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        write(&link, |to| to.write_all(b"new")).expect("it is written");
        assert_eq!(fs::read(&file).expect("it is there"), b"new");
        assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
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
        let told = |name: &str| check_form(&folder.path().join(name), "json");
        assert!(told("a.png").unwrap_err().message().ends_with("writes none there; use .json"));
        assert!(told("a.NPY").is_err());
        for name in ["a.json", "a.JSON", "a", "run.2", "a.trace"] {
            assert!(told(name).is_ok(), "{name}");
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
