//! `pto compat simpler`: programs that run, that need hardware, and that do not run, with the lines.

use std::fs;

use serde_json::Value;

use crate::pto::{pto, refused};
use crate::schema::answers;

fn write(folder: &tempfile::TempDir, name: &str, text: &str) {
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
    fs::write(path, text).expect("the file is written");
}

/// One program of each verdict; a comment is no reason, and a source belongs to the file next to its folder.
#[test]
fn programs_are_judged_line_by_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let scene = "@scene_test(level=2)\nclass T:\n    CASES = [{\"platforms\": [\"PLATFORM\"]}]\n";
    write(&folder, "runs/test_a.py", &scene.replace("PLATFORM", "a2a3sim"));
    write(
        &folder,
        "runs/kernels/a.cpp",
        "// #include \"kernel_operator.h\"\n#include \"tensor.h\"\nkernel_entry\n",
    );
    write(&folder, "device/test_b.py", &scene.replace("PLATFORM", "a2a3"));
    write(&folder, "stops/test_c.py", &scene.replace("PLATFORM", "a2a3sim"));
    write(
        &folder,
        "stops/kernels/aiv/c.cpp",
        "#include <cstdint>\n#include \"kernel_operator.h\"\n",
    );
    let path = folder.path().to_str().expect("a path");
    let answer = answers("migrate", &["compat", "simpler", path]);
    assert_eq!(answer["exit_code"], 1);
    let programs = answer["programs"].as_array().expect("a list");
    let verdicts: Vec<&str> = programs.iter().filter_map(|one| one["verdict"].as_str()).collect();
    assert_eq!(verdicts, ["hardware only", "runs", "does not run"]);
    let reason = &programs[2]["reasons"][0];
    assert_eq!(reason["line"], 2);
    assert!(reason["file"].as_str().is_some_and(|file| file.ends_with("c.cpp")), "{reason}");
    let text = pto(&["compat", "simpler", path], 1).stdout;
    assert!(text.contains("3 programs. Run here: 1; do not: 1; name no simulator: 1."), "{text}");
    let all_run = answers("migrate", &["compat", "simpler", &format!("{path}/runs")]);
    assert_eq!(all_run["exit_code"], Value::from(0));
}

/// A line in one test keeps that test from running; what pytest imports is no program; platforms may are in a mark.
#[test]
fn tests_beside_the_one_that_stops_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let tests = "from simpler.worker import Worker\ndef test_one(w):\n    assert w.pipeline_depth == 2\ndef test_two():\n    Worker()\n";
    write(&folder, "test_a.py", tests);
    write(&folder, "conftest.py", "import simpler.worker\n");
    let marked = "from simpler.worker import Worker\n@pytest.mark.platforms([\"a2a3\"])\ndef test_b():\n    Worker()\n";
    write(&folder, "test_b.py", marked);
    let path = folder.path().to_str().expect("a path");
    let answer = answers("migrate", &["compat", "simpler", path]);
    let programs = answer["programs"].as_array().expect("a list");
    let verdicts: Vec<&str> = programs.iter().filter_map(|one| one["verdict"].as_str()).collect();
    assert_eq!(verdicts, ["runs in part", "hardware only"]);
    assert_eq!(programs[0]["reasons"][0]["line"], 3);
    let text = pto(&["compat", "simpler", path], 1).stdout;
    assert!(text.contains("Run here: 0; in part: 1; do not: 0; name no simulator: 1."), "{text}");
}

/// A program that cannot import what it names does not run, and says at which line; kernels and orchestrations of a folder are one program.
#[test]
fn names_that_are_imported_are_looked_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = "from simpler.worker import Worker\nfrom simpler.task_interface import NoSuchThing\nWorker()\n";
    write(&folder, "stops.py", program);
    write(&folder, "runs.py", "from simpler.worker import Worker\nWorker()\n");
    let sources = ["kernels/orchestration/o.cpp", "kernels/aiv/a.cpp", "kernels/aic/b.cpp"];
    for source in sources {
        write(&folder, &format!("cpp/{source}"), "kernel_entry\n");
    }
    let path = folder.path().to_str().expect("a path");
    let answer = answers("migrate", &["compat", "simpler", path]);
    let programs = answer["programs"].as_array().expect("a list");
    let verdicts: Vec<&str> = programs.iter().filter_map(|one| one["verdict"].as_str()).collect();
    assert_eq!(verdicts, ["runs", "does not run", "runs"]);
    let reasons = programs[1]["reasons"].as_array().expect("a list");
    assert_eq!((reasons.len(), &reasons[0]["line"]), (1, &2.into()));
    assert!(
        reasons[0]["reason"].as_str().is_some_and(|why| why.contains("NoSuchThing")),
        "{reasons:?}"
    );
    assert!(programs[2]["program"].as_str().is_some_and(|program| program.ends_with("cpp")));
}

/// A test has what it imports next to itself; a folder with golden.py is one program, wherever its kernels are.
#[test]
fn parts_of_a_program_are_judged_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    write(
        &folder,
        "worker/test_w.py",
        "from .main import run\ndef test_w(st_platform):\n    run(st_platform)\n",
    );
    write(
        &folder,
        "worker/main.py",
        "from simpler.worker import Worker\nfrom simpler.worker import NoSuchWorker\n",
    );
    write(&folder, "april/golden.py", "def generate_inputs(params):\n    return {}\n");
    write(&folder, "april/kernels/kernel_config.py", "KERNELS = []\n");
    write(&folder, "linked/kernels/kernel_config.py", "KERNELS = []\n");
    std::os::unix::fs::symlink("../april/golden.py", folder.path().join("linked/golden.py"))
        .expect("a link");
    let path = folder.path().to_str().expect("a path");
    let answer = answers("migrate", &["compat", "simpler", path]);
    let programs = answer["programs"].as_array().expect("a list");
    let found: Vec<(&str, &str)> = programs
        .iter()
        .filter_map(|one| {
            Some((one["program"].as_str()?.rsplit('/').next()?, one["verdict"].as_str()?))
        })
        .collect();
    assert_eq!(found, [("april", "runs"), ("linked", "runs"), ("test_w.py", "does not run")]);
    assert_eq!(programs[2]["reasons"][0]["line"], 2);
    assert!(
        programs[2]["reasons"][0]["file"].as_str().is_some_and(|file| file.ends_with("main.py"))
    );
}

#[test]
fn a_folder_without_programs_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    refused(
        &["compat", "simpler", folder.path().to_str().expect("a path")],
        2,
        &["has no programs"],
    );
    refused(&["compat", "simpler", "nowhere"], 4, &["nowhere cannot be read"]);
}
