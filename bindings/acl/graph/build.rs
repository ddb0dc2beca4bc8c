//! Compiles the functions of C++, and links the library with `libascendcl.so`, whose functions they call.
//!
//! That library is built beside this one, and not before it. So the linker gets an empty library with its name, and the loader finds the real one.

use std::path::PathBuf;
use std::process::Command;

/// What the functions of C++ call.
const CALLED: [&str; 5] = [
    "ptoAclGraphBegin",
    "ptoAclGraphBuild",
    "ptoAclGraphDestroy",
    "ptoAclGraphParse",
    "ptoAclGraphSave",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=cpp");
    println!("cargo::rerun-if-changed=../include");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .file("cpp/graph.cpp")
        .include("../include")
        .warnings_into_errors(true)
        .compile("pto_graph_compiler");
    stand_in();
}

/// Makes the empty library, and lets the linker name it.
fn stand_in() {
    let folder = PathBuf::from(std::env::var("OUT_DIR").expect("cargo names the folder"));
    let source = folder.join("ascendcl.c");
    let text: String = CALLED.iter().map(|name| format!("void {name}(void) {{}}\n")).collect();
    std::fs::write(&source, text).expect("the folder can be written");
    let compiler = cc::Build::new().get_compiler();
    let mut command: Command = compiler.to_command();
    command.arg("-shared").arg("-Wl,-soname,libascendcl.so").arg(&source);
    let status = command.arg("-o").arg(folder.join("libascendcl.so")).status();
    assert!(status.is_ok_and(|status| status.success()), "{command:?} makes no library");
    println!("cargo::rustc-link-search=native={}", folder.display());
    println!("cargo::rustc-link-lib=dylib=ascendcl");
    // A program may close the library while threads of the compiler still run.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
