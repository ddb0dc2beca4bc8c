//! What Rust programs and firmware crates depend on: cargo packs each crate, and builds it from what it has packed.

use std::path::Path;

use crate::cargo::cargo;
use crate::python;

/// `cargo publish --dry-run` of all crates that may be published.
pub(super) fn check(root: &Path) -> Result<(), String> {
    python::run(cargo(root).args(["publish", "--workspace", "--dry-run", "--allow-dirty"]))
}
