//! Calls the binary.

use std::process::{Command, Stdio};

/// The variable that chooses the build mode.
pub(crate) const BUILD_MODE: &str = "PTO_AICPU_BUILD_GRAPH_BUILD_MODE";

/// What became of a call.
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// `pto` with these arguments, and no build mode in its environment.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pto"));
    command.args(args).env_remove(BUILD_MODE).stdin(Stdio::null());
    command
}

/// Runs a command to its end. It must neither panic nor be killed.
pub(crate) fn answer(command: &mut Command) -> Answer {
    let output = command.output().expect("the binary starts");
    let text = |bytes| String::from_utf8(bytes).expect("the binary writes UTF-8");
    let answer = Answer {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    };
    assert!(!answer.stderr.contains("panicked"), "{command:?}\n{}", answer.stderr);
    assert!(answer.code.is_some(), "{command:?} was killed: {}", answer.stderr);
    answer
}

/// Runs `pto`, which must exit with `code`.
pub(crate) fn pto(args: &[&str], code: i32) -> Answer {
    let answer = answer(&mut command(args));
    assert_eq!(answer.code, Some(code), "{args:?}\n{}{}", answer.stdout, answer.stderr);
    answer
}

/// Runs `pto`, which must exit with `code`, and say all of `words` on standard error and nothing on standard
/// output.
pub(crate) fn refused(args: &[&str], code: i32, words: &[&str]) {
    let answer = pto(args, code);
    for word in words {
        assert!(answer.stderr.contains(word), "{args:?} does not say {word:?}:\n{}", answer.stderr);
    }
    assert_eq!(answer.stdout, "", "{args:?}");
    assert!(answer.stderr.starts_with("error: "), "{args:?}\n{}", answer.stderr);
}
