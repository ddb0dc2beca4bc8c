//! What the program says to who calls it wrongly. That this test is here lets cargo build the program with the tests of the workspace: those
//! that run images of this machine start it (`pto_image_build::toolchain::stand_in::native`).

use std::process::{Command, Output};

fn emulator(arguments: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_pto-cann-emulator"));
    program.args(arguments).output().expect("the program can be started")
}

#[test]
fn a_wrong_call_is_told_what_a_right_one_is() {
    for wrong in [&[][..], &["default"], &["nothing", "image.so"], &["serve", "file", "1"]] {
        let output = emulator(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.starts_with("usage: pto-cann-emulator default|"), "{wrong:?}: {stderr}");
    }
}

#[test]
fn a_missing_image_is_named() {
    let output = emulator(&["default", "/no/such/image.so"]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.starts_with("/no/such/image.so cannot be loaded: "), "{stderr}");
}
