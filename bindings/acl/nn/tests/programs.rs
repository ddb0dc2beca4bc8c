//! A program in C that calls operators through their two functions, and what it costs the host.

use std::path::Path;
use std::process::Command;

#[path = "../../tests/support/commands.rs"]
mod commands;
#[path = "../../tests/support/mod.rs"]
mod support;

use commands::run;
use support::{compiler, here, library_folder, start};

fn built(folder: &Path) -> std::path::PathBuf {
    let (source, program) = (here().join("tests/c/operators.c"), folder.join("operators"));
    let mut command = compiler("cc", "-std=c11");
    command.arg(source).arg("-o").arg(&program).arg("-L").arg(library_folder());
    run(command.args(["-lopapi", "-lascendcl", "-lm"]));
    program
}

/// In real time with the validation layer, which finds no race, and in virtual time.
#[test]
fn operators_run_from_c_and_refuse_what_cannot_be() {
    let folder = tempfile::tempdir().expect("a folder for the program");
    let program = built(folder.path());
    let mut checked = start(&program);
    let output = commands::output(checked.env("PTO_ACL_CHECK", "report"));
    let [said, reports] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(
        said.ends_with("cases, 0 failed\n") && !reports.contains("ACL-RACE"),
        "{said}{reports}"
    );
    let said = run(Command::new("timeout")
        .args(["60".as_ref(), program.as_os_str()])
        .envs([("LD_LIBRARY_PATH", library_folder().as_os_str()), ("PTO_ACL_SEED", "7".as_ref())]));
    assert!(said.ends_with("cases, 0 failed\n"), "{said}");
}

/// An injected fault names the operator that it strikes, in real and in virtual time.
#[test]
fn a_fault_names_its_operator() {
    let folder = tempfile::tempdir().expect("a folder for the program");
    let program = built(folder.path());
    for (number, name) in [(1, "aclnnAdd"), (2, "aclnnMuls")] {
        for seed in [None, Some("7")] {
            let mut command = start(&program);
            command.arg("fault").env("PTO_ACL_FAIL", format!("aicore-exception:{number}"));
            let said = run(command.envs(seed.map(|seed| ("PTO_ACL_SEED", seed))));
            let named = format!("({name}) failed because PTO_ACL_FAIL asks for it");
            assert!(said.contains(&named), "{said}");
        }
    }
}

/// Each name of the table is a pair of functions of the library.
#[test]
fn every_operator_has_two_functions() {
    let library = std::fs::read(library_folder().join("libopapi.so")).expect("the library");
    assert_eq!(opapi::OPERATORS.len(), 208);
    for name in opapi::OPERATORS {
        for function in [format!("\0{name}\0"), format!("\0{name}GetWorkspaceSize\0")] {
            let is_there =
                library.windows(function.len()).any(|bytes| bytes == function.as_bytes());
            assert!(is_there, "{function:?} is not in the library");
        }
    }
}
