//! The source of the standard library, which is built anew for a sanitizer that must see into it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{ToolError, process};

/// How long rustup may take.
const RUSTUP_LIMIT: Duration = Duration::from_secs(120);
/// How long a compiler may take to say where its libraries are.
const ASK_LIMIT: Duration = Duration::from_secs(30);

/// Makes sure that the compiler in use has the source of its standard library; tells `say` what it does.
///
/// # Errors
/// `NoStdSource`, with the reason.
pub fn provide_std_source(say: &dyn Fn(&str)) -> Result<(), ToolError> {
    let because = |why: String| ToolError::NoStdSource { why };
    if is_there().map_err(because)? {
        return Ok(());
    }
    say("the source of the standard library is missing: rustup component add rust-src");
    let mut rustup = Command::new("rustup");
    rustup.args(["component", "add", "rust-src"]).env("RUSTUP_AUTO_SELF_UPDATE", "disable");
    process::output(&mut rustup, RUSTUP_LIMIT).map_err(because)?;
    if is_there().map_err(because)? {
        return Ok(());
    }
    Err(because("the compiler in use is not rustup's".into()))
}

fn is_there() -> Result<bool, String> {
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let mut command = Command::new(compiler);
    let sysroot = process::output(command.args(["--print", "sysroot"]), ASK_LIMIT)?;
    Ok(holds_std(Path::new(sysroot.trim())))
}

fn holds_std(sysroot: &Path) -> bool {
    sysroot.join("lib/rustlib/src/rust/library/std/Cargo.toml").is_file()
}

#[cfg(test)]
mod tests {
    use super::holds_std;
    use std::path::Path;

    #[test]
    fn a_folder_without_std_has_no_source() {
        assert!(!holds_std(Path::new("/nonexistent")));
    }
}
