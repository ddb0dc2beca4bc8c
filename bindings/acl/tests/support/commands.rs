//! Commands that tests start.

use std::process::{Command, Output};

/// What a command writes, and how it ends.
pub(crate) fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| {
        panic!("{command:?} cannot be started ({error}): install gcc and g++ (Debian: g++)")
    })
}

/// What a command that succeeds writes to its standard output.
pub(crate) fn run(command: &mut Command) -> String {
    let output = output(command);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}\n{errors}", output.status);
    said
}
