//! Empty folders.

use std::path::{Path, PathBuf};

/// An empty folder in place of what is there.
pub(super) fn replaced(folder: &Path) -> Result<PathBuf, String> {
    let failed = |error| format!("{}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(failed)?;
    }
    std::fs::create_dir_all(folder).map_err(failed)?;
    Ok(folder.to_path_buf())
}
