//! `acceptance --onnx`: models in files of ONNX, in two tables.
//!
//! The node cases of the package `onnx`, which PyPI has, through our operators on the simulator. The package makes each case with its inputs and expected outputs;
//! `models/examples` writes them as files and runs all of them in one process.
//!
//! Then ONNX Runtime with its provider for CANN, unmodified, below `pto compat cann run`: real networks beside its provider for the processor, a page of text that is
//! read, files and their types, an operator that does not exist here, and times (`bindings/acl/examples/onnxruntime_cann.py`).

use std::path::Path;
use std::process::Command;

use crate::cargo::cargo;
use crate::python;

/// How many cases have to be right.
const LEAST: &str = "1000";
/// What `--only` can name beside the parts of the script.
const CASES: &str = "cases";
/// What is built for the script: the command, and the libraries next to it.
const BUILT: [&str; 4] = ["pto-cli", "pto-acl", "pto-acl-entry", "pto-acl-graph"];

/// Runs `acceptance --onnx`, or `acceptance --onnx --only PART`: `cases`, `networks`, `modes`, `pipeline`, `files`, `refusal` or `speed`.
pub(crate) fn run(root: &Path, target: &Path, only: Option<&str>) -> Result<(), String> {
    if only.is_none_or(|part| part == CASES) {
        cases(root, target)?;
    }
    if only == Some(CASES) { Ok(()) } else { provider(root, target, only) }
}

/// Fetches the package, writes its cases, runs them, and prints those that are not right, with reasons, and a line with the counts.
fn cases(root: &Path, target: &Path) -> Result<(), String> {
    let python = python::install_onnx(target)?;
    let cases = target.join("onnx-cases");
    python::removed(&cases)?;
    python::run(Command::new(python).arg(root.join("models/examples/node_cases.py")).arg(&cases))?;
    let mut runner = cargo(root);
    runner.args([
        "run",
        "--release",
        "--quiet",
        "-p",
        "pto-models",
        "--example",
        "node_cases",
        "--",
    ]);
    python::run(runner.arg(&cases).args(["--least", LEAST])).map_err(|why| {
        format!("a case is wrong, ends with a panic, or fewer than {LEAST} are right: {why}")
    })
}

/// Fetches ONNX Runtime and what uses it, and runs the script on our devices.
fn provider(root: &Path, target: &Path, only: Option<&str>) -> Result<(), String> {
    let mut build = cargo(root);
    build.args(["build", "--release", "--quiet"]);
    python::run(build.args(BUILT.iter().flat_map(|name| ["-p", name])))?;
    let python = python::install_onnxruntime(target)?;
    let mut script = Command::new(target.join("release/pto"));
    script.args(["compat", "cann", "run", "--"]).arg(python);
    script.arg(root.join("bindings/acl/examples/onnxruntime_cann.py")).args(only);
    // The provider keeps what it has built in the folder in which it runs.
    let folder = target.join("onnxruntime");
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
    python::run(script.current_dir(folder))
}
