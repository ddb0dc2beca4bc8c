//! Whole runs under ThreadSanitizer: two threads that touch the same memory without an order between them, at least one
//! of them writing, are a failure.
//!
//! The sanitizer must see into the standard library, or it takes every channel and lock for a race: the library is built
//! from source, with the compiler in use, which is told to accept the options of a nightly one. The program is small
//! (`examples/examples/whole_runs.rs`): most of this step is compiling.

use std::path::Path;
use std::process::{Command, ExitStatus};

use pto_toolchain::provide_std_source;

use crate::steps::Ran;

/// Where the sanitizer works, and the only machine that this repository builds on.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// Builds the program and runs it. Not everywhere can the library's source be had: then it says so.
pub(crate) fn run(root: &Path, target: &Path) -> Result<Ran, String> {
    if let Err(why) = provide_std_source(&|sentence| println!("{sentence}")) {
        return Ok(Ran::Not(format!("no data race was looked for: {why}")));
    }
    let target = target.join("race");
    succeed("cargo", build(root, &target).status())?;
    let program = target.join(TRIPLE).join("debug/examples/whole_runs");
    // Stops at the first race, with a code that no run of ours has.
    let mut runs = Command::new(&program);
    runs.env("TSAN_OPTIONS", "halt_on_error=1 exitcode=66");
    succeed("a run under ThreadSanitizer", runs.status())?;
    Ok(Ran::Whole)
}

fn build(root: &Path, target: &Path) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--profile", "test", "-p", "pto-examples", "--example", "whole_runs"]);
    command.args(["--target", TRIPLE, "-Zbuild-std=std,panic_unwind", "--target-dir"]).arg(target);
    command.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Zsanitizer=thread");
    command.env("CARGO_INCREMENTAL", "0").current_dir(root);
    command
}

/// Says what did not succeed, in words.
pub(crate) fn succeed(what: &str, status: std::io::Result<ExitStatus>) -> Result<(), String> {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{what} failed: {status}")),
        Err(error) => Err(format!("{what} cannot be started: {error}")),
    }
}
