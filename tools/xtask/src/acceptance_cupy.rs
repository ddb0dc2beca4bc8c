//! `acceptance --cupy [MINUTES]`: CuPy for Ascend, unmodified from PyPI, on our device. First every operator that the package needs is called and compared with NumPy; then the
//! package's own tests run, which its source package has, for so many minutes.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::cargo;
use crate::python::{self, NUMPY_ASCEND as PACKAGE};

/// Minutes for the package's tests, where the caller names none.
const MINUTES: &str = "60";
/// Device memory of a process of tests: some ask for all that there is.
const MEMORY: &str = "2G";
/// A folder that the wheel lacks, although its `__init__` imports it. The source package has it.
const MISSING: &str = "cupyx/scipy/fftpack";

/// Builds the libraries, fetches the packages, and prints the table of operators and that of tests.
pub(crate) fn run(root: &Path, target: &Path, more: &[&str]) -> Result<(), String> {
    let minutes = match *more {
        [] => MINUTES,
        [minutes] if minutes.parse::<f64>().is_ok_and(|minutes| minutes > 0.0) => minutes,
        _ => return Err("say how many minutes: `cargo xtask acceptance --cupy 60`".to_owned()),
    };
    let mut build = cargo(root);
    build.args(["build", "--release", "--quiet", "-p", "pto-cli", "-p", "pto-acl"]);
    python::run(build.args(["-p", "pto-acl-entry", "-p", "pto-acl-nn"]))?;
    let (python, source) = fetched(target)?;
    let scripts = root.join("bindings/acl/nn/tests");
    let pto = target.join("release/pto");
    let started = |options: &[&str]| {
        let mut command = Command::new(&pto);
        command.args(["compat", "cann", "run", "--memory", MEMORY]).args(options);
        command.arg("--").arg(&python).current_dir(target);
        command
    };
    python::run(started(&[]).arg(scripts.join("operators.py")))
        .map_err(|why| format!("an operator does not give what NumPy gives: {why}"))?;
    let outcomes = target.join("cupy-outcomes");
    // Most of a test is waiting for one small operator after the other. In virtual time the thread that waits does the work itself, and a run repeats itself exactly.
    let mut tests = started(&["--virtual"]);
    // The package reads memory by synchronous copies without waiting for its stream; so commands are over when their calls return.
    tests.env("ASCEND_LAUNCH_BLOCKING", "1");
    tests.arg(scripts.join("package_tests.py")).arg(source.join("tests"));
    python::run(tests.args(["--minutes", minutes, "--outcomes"]).arg(outcomes))
}

/// An environment with the package, and the folder of its source.
fn fetched(target: &Path) -> Result<(PathBuf, PathBuf), String> {
    let python = python::install_cupy(target)?;
    let folder = target.join("cupy-source");
    python::removed(&folder)?;
    let pip = |arguments: &[&str]| {
        let mut command = Command::new(&python);
        python::run(command.args(["-m", "pip", "--quiet"]).args(arguments))
            .map_err(|why| format!("{why}; nothing was tested: PyPI must be reachable"))
    };
    pip(&["install", "--no-deps", "--pre", PACKAGE])?;
    let to = folder.display().to_string();
    pip(&[
        "download",
        "--no-deps",
        "--no-build-isolation",
        "--pre",
        "--no-binary",
        ":all:",
        "-d",
        &to,
        PACKAGE,
    ])?;
    let archive = std::fs::read_dir(&folder).ok().and_then(|mut files| files.next()?.ok());
    let archive = archive.ok_or("pip has fetched no source package")?.path();
    python::run(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&folder))?;
    let source = folder.join(PACKAGE.replace("numpy-ascend==", "numpy_ascend-"));
    let parts = "import sys, shutil, sysconfig; shutil.copytree(sys.argv[1], sysconfig.get_path('purelib') + '/' + sys.argv[2], dirs_exist_ok=True)";
    println!("the wheel lacks {MISSING}; it is taken from the source package");
    let mut copy = Command::new(&python);
    python::run(copy.args(["-c", parts]).arg(source.join(MISSING)).arg(MISSING))?;
    Ok((python, source))
}
