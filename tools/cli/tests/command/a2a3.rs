//! `--device a2a3` where there is no CANN: what is missing is named before anything is built.

use crate::pto::{answer, command, refused};

#[test]
fn a_missing_library_is_named_with_every_place() {
    let home = tempfile::tempdir().expect("a folder");
    let mut run = command(&["run", "vector_example", "--device", "a2a3"]);
    run.env("ASCEND_HOME_PATH", "/no/such/cann").env("PTO_HOME", home.path());
    let answer = answer(&mut run);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(4), ""), "{}", answer.stderr);
    for word in [
        "libascend_hal.so of CANN cannot be loaded",
        "/no/such/cann/lib64/libascend_hal.so",
        "/usr/local/Ascend/driver/lib64/driver/libascend_hal.so",
        "ASCEND_HOME_PATH",
    ] {
        assert!(answer.stderr.contains(word), "{word:?} is not in {}", answer.stderr);
    }
    assert!(!answer.stderr.contains("building"), "{}", answer.stderr);
}

#[test]
fn options_of_other_devices_are_refused() {
    let a2a3 = |more: &[&'static str]| -> Vec<&'static str> {
        [&["run", "vector_example", "--device", "a2a3"][..], more].concat()
    };
    refused(&a2a3(&["--hosting", "pool"]), 2, &["simulator", "--device a2a3"]);
    refused(&a2a3(&["--aiv", "8"]), 2, &["two vector cores"]);
    refused(&["run", "vector_example", "--device-id", "1"], 2, &["--device-id belongs to"]);
}
