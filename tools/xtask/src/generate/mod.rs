//! Files made from the tables of `pto_abi`, from the manifests and from the pages of decisions, so that they cannot differ from them.

mod abi_docs;
mod acl;
mod c_header;
mod constants;
pub(crate) mod decisions;
mod field_docs;
mod model;
mod structure;

use std::fs;
use std::path::Path;

use model::AbiModel;

/// A generated file: where it is, from the workspace's folder, and its text.
type Generated = (&'static str, String);

fn files(root: &Path) -> Result<Vec<Generated>, String> {
    let docs = field_docs::read(&root.join("abi/src"))?;
    let model = AbiModel::new(&docs)?;
    let mut files = vec![
        ("docs/reference/abi.md", abi_docs::render(&model)),
        ("bindings/include/pto_abi.h", c_header::render(&model)),
        ("docs/pictures/structure.svg", structure::render(&crate::root::root())?),
        ("docs/decisions/index.md", decisions::render(&crate::root::root())?),
    ];
    files.extend(acl::files(&crate::root::root())?);
    Ok(files)
}

/// Writes the files that differ.
pub(crate) fn write(root: &Path) -> Result<(), String> {
    for (path, text) in files(root)? {
        if is_current(root, path, &text) {
            println!("{path} is up to date");
            continue;
        }
        let full = root.join(path);
        let folder = full.parent().unwrap_or(root);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&full, text))
            .map_err(|error| format!("{path} cannot be written: {error}"))?;
        println!("{path} is written");
    }
    Ok(())
}

/// Fails when a file differs from what would be written.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let stale: Vec<&str> = files(root)?
        .into_iter()
        .filter(|(path, text)| !is_current(root, path, text))
        .map(|(path, _)| path)
        .collect();
    if stale.is_empty() {
        println!("generated files are up to date");
        return Ok(());
    }
    Err(format!("stale: {}; run `cargo xtask generate` and commit the result", stale.join(", ")))
}

fn is_current(root: &Path, path: &str, text: &str) -> bool {
    fs::read_to_string(root.join(path)).is_ok_and(|held| held == text)
}

#[cfg(test)]
mod tests {
    use super::{check, files, write};
    use std::fs;
    use std::path::{Path, PathBuf};

    /// A folder with the sources that the generator reads, removed on drop.
    struct SourceCopy(PathBuf);

    impl SourceCopy {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir().join(format!("xtask-{}-{name}", std::process::id()));
            copy_folder(&crate::root::root().join("abi/src"), &root.join("abi/src"));
            Self(root)
        }
    }

    fn copy_folder(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().flatten() {
            let copy = to.join(entry.file_name());
            if entry.path().is_dir() {
                copy_folder(&entry.path(), &copy);
            } else {
                fs::copy(entry.path(), copy).unwrap();
            }
        }
    }

    impl Drop for SourceCopy {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_is_written_is_current_until_it_is_changed() {
        let copy = SourceCopy::new("stale");
        assert!(
            check(&copy.0)
                .unwrap_err()
                .contains("docs/reference/abi.md, bindings/include/pto_abi.h")
        );
        write(&copy.0).unwrap();
        check(&copy.0).unwrap();
        let header = copy.0.join("bindings/include/pto_abi.h");
        fs::write(&header, fs::read_to_string(&header).unwrap() + "\n").unwrap();
        let stale = check(&copy.0).unwrap_err();
        assert!(stale.starts_with("stale: bindings/include/pto_abi.h; run"), "{stale}");
    }

    #[test]
    fn every_struct_limit_and_fault_is_in_both_files() {
        let files = files(&crate::root::root()).unwrap();
        for layout in pto_abi::layout::ALL {
            assert!(files[0].1.contains(&format!("### {}", layout.name)), "{}", layout.name);
        }
        for (_, text) in &files[..2] {
            for (name, value, _) in pto_abi::limits::TABLE {
                assert!(text.contains(name) && text.contains(&value.to_string()), "{name}");
            }
            for entry in pto_abi::fault::TABLE {
                assert!(text.contains(entry.name), "{}", entry.name);
                assert!(text.contains(&format!("{:#010x}", entry.fault.code())), "{}", entry.name);
            }
        }
    }
}
