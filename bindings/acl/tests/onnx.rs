//! The graph compiler and single operators, as a framework in C++ calls them: `tests/c/onnx.cpp` goes through the whole sequence of ONNX Runtime's provider.

#[path = "support/commands.rs"]
mod commands;
mod support;

use commands::{output, run};
use support::{compiler, here, library_folder, start};

#[test]
fn a_framework_in_cpp_builds_and_runs_models() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = folder.path().join("onnx");
    let libraries = library_folder();
    let compiled = libraries.join("libacl_op_compiler.so");
    assert!(compiled.is_file(), "{} is missing", compiled.display());
    let mut command = compiler("c++", "-std=c++17");
    command.arg(here().join("tests/c/onnx.cpp")).arg("-o").arg(&program);
    run(command.arg("-L").arg(libraries).args(["-lacl_op_compiler", "-lascendcl"]));
    // In real time with the validation layer, and in virtual time.
    for (name, value) in [("PTO_ACL_CHECK", "report"), ("PTO_ACL_SEED", "7")] {
        let mut command = start(&program);
        let output = output(command.arg(folder.path()).env(name, value));
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said, "onnx: ok\n", "{errors}");
        // Standard error says what cannot be built as well.
        assert!(errors.contains("node second_of_two (Divinate"), "{errors}");
        assert!(!errors.contains("ACL-RACE"), "{errors}");
    }
}
