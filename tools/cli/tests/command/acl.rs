//! `pto compat cann run`: the program finds the library under its names, gets the settings that options ask for, and its end is ours. What
//! the library does with the settings is tested where the library is.

use std::fs;
use std::path::PathBuf;

use crate::pto::{answer, command, refused};

/// A file in place of the library, next to one in place of its plug-in: the programs here link nothing.
fn library(folder: &tempfile::TempDir) -> PathBuf {
    let file = folder.path().join("libascendcl.so");
    fs::write(&file, b"a library").expect("writable");
    fs::write(folder.path().join("libpto_acl.so"), b"a plug-in").expect("writable");
    fs::write(folder.path().join("libacl_op_compiler.so"), b"a compiler").expect("writable");
    fs::write(folder.path().join("libopapi.so"), b"operators").expect("writable");
    fs::write(folder.path().join("libhccl.so"), b"collectives").expect("writable");
    file
}

/// What `script` prints below `pto compat cann run` with these options, and how it ends.
fn shell(options: &[&str], script: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let library = library(&folder);
    let mut run = command(&["compat", "cann", "run", "--library"]);
    run.arg(&library).args(options).args(["--", "/bin/sh", "-c", script]);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PTO_ACL_")) {
        run.env_remove(name);
    }
    let answer = answer(run.env("LD_LIBRARY_PATH", "/of/the/user"));
    assert_eq!(answer.stderr, "");
    (answer.code, answer.stdout)
}

const SETTINGS: &str = "echo $PTO_ACL_DEVICE$PTO_ACL_DEVICES/$PTO_ACL_MEMORY/$PTO_ACL_SEED/$PTO_ACL_CHECK/$PTO_ACL_FAIL$PTO_ACL_TRACE$PTO_ACL_RECORD$PTO_ACL_KERNEL_US";

#[test]
fn options_become_settings_of_the_library() {
    let cases: [(&[&str], &str); 12] = [
        (&[], "////\n"),
        (&["--devices", "2", "--memory", "1G"], "2/1073741824///\n"),
        (&["--virtual"], "//0//\n"),
        (&["--device", "a2a3sim"], "a2a3sim////\n"),
        (&["--device", "a2a3"], "a2a3////\n"),
        (&["--virtual", "--seed", "7"], "//7//\n"),
        (&["--virtual", "--kernel-us", "20"], "//0//20\n"),
        (
            &[
                "--check",
                "--allow-missed-fault",
                "--fail",
                "aclrtMalloc:3:207001",
                "--fail",
                "aclrtFree:1:107000",
            ],
            "///report/aclrtMalloc:3:207001,aclrtFree:1:107000\n",
        ),
        (&["--allow-missed-fault", "--fail", "aicore-exception:2"], "////aicore-exception:2\n"),
        (&["--strict"], "///strict/\n"),
        (&["--trace", "/tmp/trace.json"], "/////tmp/trace.json\n"),
        (&["--record", "/tmp/calls"], "/////tmp/calls\n"),
    ];
    for (options, expected) in cases {
        assert_eq!(shell(options, SETTINGS), (Some(0), expected.to_owned()), "{options:?}");
    }
}

#[test]
fn the_library_stands_in_front_under_its_names() {
    let script = "folder=${LD_LIBRARY_PATH%%:*}; cd $folder && cat libascendcl.so libacl_rt.so libmsprofiler.so libruntime.so \
                  libopapi.so libopapi_nn.so libopapi_math.so libnnopbase.so libgraph.so libop_common.so; \
                  echo; echo ${LD_LIBRARY_PATH#*:}";
    let said = format!("{}{}\n/of/the/user\n", "a library".repeat(4), "operators".repeat(6));
    assert_eq!(shell(&[], script), (Some(0), said));
    // The graph compiler and the collectives are ours on our devices, and the vendor's on theirs.
    let script = "cd ${LD_LIBRARY_PATH%%:*}; ls | grep -c -e libacl_op_compiler.so -e libfmk_onnx_parser.so -e libhccl.so";
    assert_eq!(shell(&[], script).1, "3\n");
    assert_eq!(shell(&["--device", "a2a3"], script).1, "0\n");
}

#[test]
fn the_end_is_the_programs() {
    assert_eq!(shell(&[], "exit 42").0, Some(42));
    assert_eq!(shell(&[], "kill -TERM $$").0, Some(128 + 15));
}

/// The library writes a line with each fault that happens; here the script does.
#[test]
fn a_fault_that_did_not_happen_fails_the_program() {
    let faults =
        ["--fail", "aclrtMalloc:1:5", "--fail", "stuck-stream:4", "--fail", "aclrtMalloc:1:5"];
    let run = |script: &str, more: &[&str]| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut run = command(&["compat", "cann", "run", "--library"]);
        run.arg(library(&folder)).args(faults).args(more);
        let answer = answer(run.args(["--", "/bin/sh", "-c", script]));
        (answer.code, answer.stderr)
    };
    let happen =
        |faults: &str, code: u32| format!("printf '{faults}' >> $PTO_ACL_HAPPENED; exit {code}");
    let all = happen("aclrtMalloc:1:5\\nstuck-stream:4\\naclrtMalloc:1:5\\n", 0);
    assert_eq!(run(&all, &[]), (Some(0), String::new()));
    let some = happen("aclrtMalloc:1:5\\n", 0);
    let (code, said) = run(&some, &[]);
    let missed = "not tested: --fail stuck-stream:4, --fail aclrtMalloc:1:5. ";
    assert!(code == Some(1) && said.contains(missed), "{code:?} {said}");
    assert_eq!(run(&some, &["--allow-missed-fault"]), (Some(0), String::new()));
    // A program that fails says more than we could.
    assert_eq!(run(&happen("", 42), &[]), (Some(42), String::new()));
}

/// The first seed under which the program fails is named, with what the program says then; of the others nothing is shown.
#[test]
fn seeds_are_tried_one_after_the_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let tries = |options: &[&str], script: &str| {
        let mut run = command(&["compat", "cann", "run", "--virtual", "--library"]);
        run.arg(library(&folder)).args(options);
        let answer = answer(run.args(["--", "/bin/sh", "-c", script]));
        (answer.code, answer.stdout, answer.stderr)
    };
    let passed = (Some(0), "100 seeds passed, from 5 on\n".to_owned(), String::new());
    assert_eq!(tries(&["--seed", "5", "--seeds", "100"], "echo seed $PTO_ACL_SEED"), passed);
    let script = "echo seed $PTO_ACL_SEED; echo why >&2; [ $PTO_ACL_SEED -lt 17 ] || exit 42";
    let (code, said, errors) = tries(&["--seeds", "100"], script);
    assert_eq!((code, &*said), (Some(42), "seed 17\n"));
    let why = "why\npto: seed 17 fails, after 17 seeds that passed; --seed 17 without --seeds repeats it\n";
    assert_eq!(errors, why);
    // Each run has faults of its own.
    let fails = ["--seeds", "3", "--fail", "stuck-stream:1"];
    let happens = "[ $PTO_ACL_SEED = 1 ] || echo stuck-stream:1 >> $PTO_ACL_HAPPENED";
    let (code, _, errors) = tries(&fails, happens);
    assert!(
        code == Some(1) && errors.contains("seed 1 fails") && errors.contains("not tested"),
        "{errors}"
    );
    refused(&["compat", "cann", "run", "--seeds", "3", "true"], 2, &["--virtual"]);
    let trace = ["compat", "cann", "run", "--virtual", "--seeds", "3", "--trace", "x.json", "true"];
    refused(&trace, 2, &["--trace"]);
}

#[test]
fn what_cannot_be_run_is_refused() {
    refused(
        &["compat", "cann", "run", "--library", "/no/such.so", "true"],
        2,
        &["no library '/no/such.so'"],
    );
    refused(&["compat", "cann", "run", "--seed", "7", "true"], 2, &["--virtual"]);
    refused(&["compat", "cann", "run", "--devices", "65", "true"], 2, &["65", "from 1 to 64"]);
    refused(&["compat", "cann", "run"], 2, &["PROGRAM"]);
    let folder = tempfile::tempdir().expect("a folder");
    let own = library(&folder);
    let on = |device: &'static str| {
        ["compat", "cann", "run", "--device", device, "--library"]
            .map(str::to_owned)
            .into_iter()
            .chain([own.display().to_string()])
    };
    for (device, more, why) in [
        ("qemu", ["--virtual", "true"], "--virtual belongs to --device a2a3sim, and qemu runs"),
        ("a2a3", ["--virtual", "true"], "--virtual belongs to --device a2a3sim, and a2a3 runs"),
        ("qemu", ["--devices=2", "true"], "--device qemu has one device in a process"),
        ("nowhere", ["true", "x"], "invalid value 'nowhere'"),
    ] {
        let words: Vec<String> = on(device).chain(more.map(str::to_owned)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        refused(&words, 2, &[why]);
    }
    // Before an image is built.
    fs::remove_file(folder.path().join("libpto_acl.so")).expect("the plug-in");
    for device in ["a2a3sim", "qemu"] {
        let words: Vec<String> = on(device).chain(["true".to_owned()]).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        refused(&words, 2, &["there is no libpto_acl.so next to"]);
    }
    let fails = [
        ("aclrtMaloc:3:207001", "no function aclrtMaloc; the nearest names are aclrtMalloc"),
        ("aclFloat16ToFloat:1:5", "aclFloat16ToFloat never fails"),
        ("stuck-streem:1", "the nearest names are stuck-stream"),
        ("aclrtMalloc:3", "write aclrtMalloc:N:CODE"),
    ];
    for (fail, why) in fails {
        refused(&["compat", "cann", "run", "--fail", fail, "true"], 2, &[why]);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let library = library(&folder);
    let library = library.to_str().expect("a name");
    let words = &["cannot start '/no/such/program'"];
    refused(&["compat", "cann", "run", "--library", library, "/no/such/program"], 2, words);
}
