//! The Python package with the command in it, and its source package (`bindings/python/build_backend.py`).

use std::path::{Path, PathBuf};

use super::folder;
use crate::python;

/// Both of them.
pub(super) struct Packages {
    /// For this machine.
    pub(super) wheel: PathBuf,
    /// For every machine with Rust.
    pub(super) source: PathBuf,
    /// An interpreter that has fetched from PyPI.
    pub(super) python: PathBuf,
}

/// Makes both in `files`, the wheel with what is in `built`.
pub(super) fn make(
    root: &Path,
    target: &Path,
    (profile, built): (&str, &Path),
    files: &Path,
) -> Result<Packages, String> {
    let python = python::build_environment(target)?;
    python::build_wheel(root, &python, files, profile, built)?;
    python::build_source_package(root, &python, files)?;
    let find = |end: &str| {
        let mut files = std::fs::read_dir(files).ok()?.filter_map(Result::ok);
        let is_it = |name: &str| name.starts_with("pto_runtime-") && name.ends_with(end);
        let found = files.find(|file| file.file_name().to_str().is_some_and(is_it));
        found.map(|file| file.path())
    };
    let missing = |what: &str| format!("there is no {what} in {}", files.display());
    Ok(Packages {
        wheel: find(".whl").ok_or_else(|| missing("wheel"))?,
        source: find(".tar.gz").ok_or_else(|| missing("source package"))?,
        python,
    })
}

/// What pip makes of the source package is a wheel of the same name.
pub(super) fn build_from_source(target: &Path, made: &Packages) -> Result<(), String> {
    let wheels = folder::replaced(&target.join("release-from-source"))?;
    let mut build = python::pip_wheel(&made.python)?;
    python::run(build.arg(&wheels).arg(&made.source))?;
    let name = made.wheel.file_name().unwrap_or_default();
    match wheels.join(name).is_file() {
        true => Ok(()),
        false => Err(format!("the source package makes no {}", name.to_string_lossy())),
    }
}
