//! `acceptance --onnx`: the node cases of the package `onnx`, which PyPI has, through our operators on the simulator. The package makes each case
//! with its inputs and expected outputs; `models/examples` writes them as files and runs all of them in one process.

use std::path::Path;
use std::process::Command;

use crate::cargo::cargo;
use crate::python;

/// How many cases have to be right.
const LEAST: &str = "1000";

/// Fetches the package, writes its cases, runs them, and prints those that are not right, with reasons, and a line with the counts.
pub(crate) fn run(root: &Path, target: &Path) -> Result<(), String> {
    let python = python::install_onnx(target)?;
    let cases = target.join("onnx-cases");
    if cases.exists() {
        std::fs::remove_dir_all(&cases)
            .map_err(|error| format!("{} cannot be removed: {error}", cases.display()))?;
    }
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
