//! The unit tests of what runs on the device, interpreted by miri: it sees undefined behaviour that a processor forgives.
//! Not a part of `test`: it is slow, and needs a nightly compiler.

use std::path::Path;
use std::process::Command;

use crate::race::succeed;

/// The crates whose units miri can run, because nothing foreign is called there: cargo's words for each.
const UNITS: [(&str, &str); 5] = [
    ("pto-abi", "--lib"),
    ("pto-graph", "--lib"),
    ("pto-aicpu-fw", "--lib"),
    ("pto-aicore-kernels", "--test kernels worker::"),
    ("pto-aicore-kernels", "--test tile cause_words::"),
];

/// Runs the unit tests of each crate.
pub(crate) fn run(root: &Path, target: &Path) -> Result<(), String> {
    provide()?;
    for (name, units) in UNITS {
        let mut command = nightly();
        command.args(["miri", "test", "-p", name]).args(units.split(' ')).current_dir(root);
        // Tests that ask for the size of this machine or its clock may.
        command.env("MIRIFLAGS", "-Zmiri-disable-isolation");
        command.env("CARGO_TARGET_DIR", target.join("miri"));
        println!("{name}");
        succeed(name, command.status())?;
    }
    Ok(())
}

fn nightly() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]);
    command
}

/// Makes sure that there is a nightly compiler with miri.
fn provide() -> Result<(), String> {
    let is_there =
        || nightly().args(["miri", "--version"]).status().is_ok_and(|status| status.success());
    if is_there() {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    rustup.args([
        "toolchain",
        "install",
        "nightly",
        "--profile",
        "minimal",
        "-c",
        "miri",
        "-c",
        "rust-src",
    ]);
    let added = succeed("rustup", rustup.arg("--no-self-update").status());
    if added.is_ok() && is_there() {
        return Ok(());
    }
    let why = added.err().unwrap_or_else(|| "it is not usable".into());
    Err(format!(
        "there is no nightly compiler with miri ({why}). Nothing was tested. Run `rustup toolchain install nightly \
         -c miri -c rust-src` where there is a network, and try again."
    ))
}
