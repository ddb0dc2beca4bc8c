//! The cargo that has started this program: `cargo +toolchain xtask` stays with its toolchain.

use std::path::Path;
use std::process::Command;

/// That cargo, in a folder.
pub(crate) fn cargo(folder: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(folder);
    command
}
