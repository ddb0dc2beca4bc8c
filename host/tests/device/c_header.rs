//! The generated header is C11 and C++17, without a warning, and its assertions hold.

use std::path::PathBuf;
use std::process::Command;

fn compile(arguments: &[&str]) {
    let header = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../bindings/include/pto_abi.h");
    let output = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"])
        .args(arguments)
        .arg(&header)
        .output()
        .expect("cc is needed: install a C compiler (Rust links with it, too)");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cc {arguments:?}:\n{said}");
}

#[test]
fn the_header_is_c11() {
    compile(&["-x", "c", "-std=c11"]);
}

#[test]
fn the_header_is_cpp17() {
    // A missing C++ front end fails here, and cc says so: install g++.
    compile(&["-x", "c++", "-std=c++17"]);
}
