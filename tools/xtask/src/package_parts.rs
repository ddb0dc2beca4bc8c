//! `parts`: a small part of `acceptance --onnx` and `acceptance --cupy`, by their scripts, for the suite. Packages from PyPI, unmodified, run on the libraries that the
//! tests have built.

use std::path::Path;
use std::process::Command;

use crate::python::{self, Installed};
use crate::steps::StepResult;

/// Installs the packages, where the registry can be reached, and runs a network and node cases through ONNX Runtime, and functions of CuPy for Ascend.
pub(crate) fn test(root: &Path, target: &Path) -> Result<StepResult, String> {
    let python = match python::install_parts(target)? {
        Installed::At(python) => python,
        Installed::Not(why) => return Ok(StepResult::Not(why)),
    };
    python::build_command(root)?;
    // The provider keeps what it has built in the folder in which it runs.
    let folder = target.join("package-parts");
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
    let started = || {
        let mut command = Command::new(target.join("debug/pto"));
        command.args(["compat", "cann", "run", "--library"]);
        command.arg(target.join("debug/deps/libascendcl.so"));
        command.arg("--").arg(&python).current_dir(&folder);
        command
    };
    let bindings = root.join("bindings/acl");
    python::run(started().arg(bindings.join("examples/onnxruntime_cann.py")).arg("part"))?;
    let mut functions = started();
    // The package reads memory by synchronous copies without waiting for its stream; so commands are over when their calls return.
    functions.env("ASCEND_LAUNCH_BLOCKING", "1");
    python::run(functions.arg(bindings.join("nn/tests/package_part.py")))?;
    Ok(StepResult::Whole)
}
