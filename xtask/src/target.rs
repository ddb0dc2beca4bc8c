//! The bare-metal target that the device crates are built for; installed where it is missing.

use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// The target of the bare-metal image.
pub(crate) const BARE_METAL: &str = "aarch64-unknown-none";
/// All targets: that one, and the one of the image for the CANN driver stack.
const TARGETS: [&str; 2] = [BARE_METAL, "aarch64-unknown-linux-gnu"];

/// How long rustup may take for one.
const INSTALL_LIMIT: Duration = Duration::from_secs(60);

/// Makes sure that the toolchain has the targets.
pub(crate) fn provide() -> Result<(), String> {
    TARGETS.into_iter().try_for_each(provide_one)
}

fn provide_one(target: &str) -> Result<(), String> {
    if is_installed(target)? {
        println!("{target} is installed");
        return Ok(());
    }
    println!("{target} is missing: rustup target add {target}");
    install(target).map_err(|why| {
        format!(
            "the target {target} cannot be had ({why}): what is built for it was not tested; run \
             `rustup target add {target}` where there is a network"
        )
    })
}

/// Whether the compiler in use finds the target's core library, however it came there.
fn is_installed(target: &str) -> Result<bool, String> {
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let output = Command::new(&compiler)
        .args(["--print", "target-libdir", "--target", target])
        .output()
        .map_err(|error| format!("{compiler} cannot be started: {error}"))?;
    let folder = String::from_utf8_lossy(&output.stdout);
    Ok(output.status.success() && holds_core(Path::new(folder.trim())))
}

fn holds_core(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let is_core = |name: &str| name.starts_with("libcore-") && name.ends_with(".rlib");
    entries.flatten().any(|entry| is_core(&entry.file_name().to_string_lossy()))
}

fn install(target: &str) -> Result<(), String> {
    let mut child = Command::new("rustup")
        .args(["target", "add", target])
        .spawn()
        .map_err(|error| format!("rustup cannot be started: {error}"))?;
    let status = wait(&mut child, INSTALL_LIMIT)?;
    if !status.success() {
        return Err(format!("rustup: {status}"));
    }
    let content = "rustup is content, the compiler is not";
    if is_installed(target)? { Ok(()) } else { Err(content.to_owned()) }
}

/// Waits for `child`, and ends it when it takes longer than `limit`.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Result<ExitStatus, String> {
    let start = Instant::now();
    loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => return Ok(status),
            None if start.elapsed() < limit => std::thread::sleep(Duration::from_millis(50)),
            None => {
                child.kill().and_then(|()| child.wait()).map_err(|error| error.to_string())?;
                return Err(format!("it took longer than {} s", limit.as_secs()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{holds_core, wait};
    use std::path::Path;
    use std::process::Command;
    use std::time::Duration;

    #[test]
    fn a_program_that_takes_too_long_is_ended() {
        let mut sleeper = Command::new("sleep").arg("60").spawn().expect("sleep is there");
        let refused = wait(&mut sleeper, Duration::from_millis(20)).unwrap_err();
        assert!(refused.contains("longer than"), "{refused}");
        let mut quick = Command::new("true").spawn().expect("true is there");
        assert!(wait(&mut quick, Duration::from_secs(10)).expect("it ends").success());
    }

    #[test]
    fn a_folder_without_core_is_no_target() {
        assert!(!holds_core(Path::new("/nonexistent")));
        assert!(!holds_core(Path::new(env!("CARGO_MANIFEST_DIR"))));
    }
}
