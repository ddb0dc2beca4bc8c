//! Calls of the public interfaces by fixed seeds, in processes that are watched: no crash, no hang, no panic of the library, and the sums are right.
//!
//! With 32,000 calls of the CANN interface (`bindings/acl/tests/programs.rs`) and 2,000 of Python (`bindings/python/tests/test_calls.py`) they are 100,000.

use std::process::Command;

fn calls(door: &str, seed: &str, calls: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pto-fuzz-calls"));
    let output = command.args([door, "--seed", seed, "--calls", calls]).output();
    let output = output.expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn of_rust() {
    calls("rust", "1", "20000");
}

#[test]
fn of_c() {
    calls("c", "1", "30000");
}

#[test]
fn of_cpp() {
    calls("cpp", "1", "16000");
}

/// A mistake is found, and reported with its seed and the one call that it takes.
#[test]
fn a_script_that_fails_is_made_shorter() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pto-fuzz-calls"));
    let output = command.args(["mistake", "--calls", "2000"]).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for word in [
        "of the door mistake ended with signal: 6",
        "the planted mistake",
        "Its calls (1):",
        "Once more: cargo xtask fuzz calls mistake --seed ",
    ] {
        assert!(said.contains(word), "{word:?} is not in {said}");
    }
}
