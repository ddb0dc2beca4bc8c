//! Folders of pypto's compiler: which Python runs them, with which words, and what the command makes of its exit code. The folders themselves are run by
//! the tests of the Python package.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::pto::{Answer, answer, command};

/// A program in the place of Python: it says with what it was called, and ends with this code.
fn interpreter(folder: &Path, code: i32) -> String {
    let path = folder.join(format!("python-{code}"));
    let script =
        format!("#!/bin/sh\n[ \"$1\" = -c ] && exit 0\nshift 2\necho \"$@\"\nexit {code}\n");
    std::fs::write(&path, script).expect("the script is written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
        .expect("its mode is set");
    path.display().to_string()
}

fn with_python(python: &str, args: &[&str]) -> Answer {
    answer(command(args).env("PTO_PYTHON", python))
}

#[test]
fn a_folder_is_given_to_python() {
    let work = tempfile::tempdir().expect("a folder");
    let folder = work.path().join("softmax");
    std::fs::create_dir(&folder).expect("a folder");
    let folder = folder.to_str().expect("UTF-8");
    let cases: [(&[&str], &str); 4] = [
        (&["run", folder], ""),
        (&["run", folder, "--hosting", "virtual"], " --hosting virtual"),
        (&["run", folder, "--group", "local:4"], " --device 0-3"),
        (&["check", folder], " --check"),
    ];
    for (args, words) in cases {
        for code in [0, 1, 2] {
            let ended = with_python(&interpreter(work.path(), code), args);
            assert_eq!((ended.code, ended.stdout), (Some(code), format!("{folder}{words}\n")));
        }
    }
    let killed = with_python(&interpreter(work.path(), 139), &["run", folder]);
    assert_eq!(killed.code, Some(3), "{}", killed.stderr);
    assert!(killed.stderr.contains("the program ended with exit status: 139"), "{}", killed.stderr);
}

#[test]
fn what_a_folder_has_not_is_refused() {
    let work = tempfile::tempdir().expect("a folder");
    let folder = work.path().to_str().expect("UTF-8");
    let python = interpreter(work.path(), 0);
    for args in [
        &["run", folder, "--rounds", "2"][..],
        &["run", folder, "--group", "virtual:2"],
        &["check", folder, "--aic", "2"],
    ] {
        let refused = with_python(&python, args);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(
            refused.stderr.contains("a folder of pypto's compiler takes"),
            "{}",
            refused.stderr
        );
    }
    let missing = with_python("/nowhere/python", &["run", folder]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("there is no program /nowhere/python"), "{}", missing.stderr);
    let without_package = with_python("/bin/false", &["run", folder]);
    assert_eq!(without_package.code, Some(2));
    assert!(
        without_package.stderr.contains("no package simpler_setup"),
        "{}",
        without_package.stderr
    );
}
