//! Empty folders.

use std::path::{Path, PathBuf};

use crate::python;

/// An empty folder in place of what is there.
pub(super) fn replaced(folder: &Path) -> Result<PathBuf, String> {
    python::removed(folder)?;
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder.to_path_buf())
}
