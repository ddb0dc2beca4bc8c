//! `--device a2a3` where there is no CANN: what is missing is named before anything is built; with the stand-in, images are built, flashed
//! and rolled back, and examples run.

use std::path::{Path, PathBuf};
use std::process::Command;

use pto_image_build::stand_in;
use serde_json::Value;

use crate::firmware::Home;
use crate::pto::{Answer, answer, command, refused};
use crate::schema::conforms;

/// A folder in place of CANN's, in which this machine's code plays the device.
pub(crate) fn cann(home: &Path) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let libraries = test.parent().expect("and a folder");
    let target = libraries.ancestors().nth(2).expect("below the target");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let native = *stand_in::targets().last().expect("there is one");
    let (mut build, program) = stand_in::native(cargo, target);
    assert!(build.status().is_ok_and(|status| status.success()), "{build:?}");
    let folder = home.join("cann");
    let library = libraries.join(stand_in::LIBRARY);
    stand_in::lay_out(&folder, &library, &[(native, program)])
        .unwrap_or_else(|why| panic!("{why}"));
    folder
}

/// As docs/how-to/hardware.md says it.
#[test]
fn an_image_of_this_machine_is_built_flashed_run_and_rolled_back() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let home = Home::new();
    let cann = cann(&home.path());
    let pto = |args: &[&str]| -> Answer {
        let answer = answer(home.command(args).env("ASCEND_HOME_PATH", &cann));
        assert_eq!(answer.code, Some(0), "{args:?}\n{}{}", answer.stdout, answer.stderr);
        answer
    };
    let build = ["fw", "build", "--image", "cann", "--machine", "x86-64", "--small", "--json"];
    let built: Value = serde_json::from_str(&pto(&build).stdout).expect("one JSON value");
    let files: Vec<&str> = built["images"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|image| image["file"].as_str())
        .collect();
    assert_eq!(files.len(), 2, "{built}");
    let shown = ["fw", "inspect", files[0], "--json"];
    assert_eq!(conforms("fw_inspect", &shown, &pto(&shown))["machine"], "x86_64");
    let flash = [&["fw", "flash"][..], &files, &["--device", "a2a3"]].concat();
    assert!(pto(&flash).stdout.contains("a2a3 has generation 1"));
    pto(&["run", "vector_example", "--device", "a2a3"]);
    collects_a_report(&home, &cann);
    assert!(pto(&flash).stdout.contains("a2a3 has generation 2"));
    let back = pto(&["fw", "rollback", "--device", "a2a3"]).stdout;
    assert!(back.contains("a2a3 has generation 1"), "{back}");
    pto(&["run", "matmul", "--device", "a2a3", "--json"]);
    // The device qemu has no use for code of this machine.
    let refused = answer(&mut home.command(&["fw", "flash", files[1], "--device", "qemu"]));
    assert!(refused.code == Some(2) && refused.stderr.contains("x86-64"), "{}", refused.stderr);
    let refused = answer(&mut home.command(&["fw", "build", "--machine", "x86-64"]));
    assert!(
        refused.code == Some(2) && refused.stderr.contains("--image cann"),
        "{}",
        refused.stderr
    );
}

/// What a report needs is in one archive, also where a step cannot be made.
fn collects_a_report(home: &Home, cann: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cann-device/hardware-report");
    let archive = home.path().join("report.tar.gz");
    let mut command = home.command(&[]);
    let pto = command.get_program().to_owned();
    command = Command::new(script);
    command.arg(&archive).env("PTO", pto).env("ASCEND_HOME_PATH", cann);
    command.env("PTO_HOME", home.path().join("home"));
    let told = answer(&mut command);
    assert_eq!(told.code, Some(0), "{}{}", told.stdout, told.stderr);
    let tar = |arguments: &[&str]| {
        let output = Command::new("tar").args(arguments).output().expect("tar is there");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let archive = archive.to_str().expect("UTF-8");
    let names = tar(&["-tzf", archive]);
    assert!(names.lines().filter(|name| name.contains("/image-")).count() >= 2, "{names}");
    let of = |name: &str| tar(&["-xOzf", archive, &format!("hardware-report/{name}.txt")]);
    for name in ["08-one-task", "09-vectors", "10-matrices", "11-chains-of-tasks", "12-attention"] {
        assert!(of(name).ends_with("exit code 0\n"), "{name}: {}", of(name));
    }
    assert!(of("02-device").contains("npu-smi info"), "{}", of("02-device"));
}

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
