//! The Python packages: their wheel is built, installed into a fresh virtual environment, and tested from there.

use std::path::{Path, PathBuf};
use std::process::Command;

use pto_toolchain::{ToolError, packages};

/// What the environment gets from PyPI.
const FROM_PYPI: [&str; 3] = ["maturin>=1.9,<2", "numpy", "pytest"];

/// Builds the wheel and runs the package's tests. Everything stands in `target`.
pub(crate) fn test(root: &Path, target: &Path) -> Result<(), String> {
    let python = install(root, target)?;
    let mut tests = Command::new(&python);
    tests.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    // From elsewhere, so that the installed package is what is imported.
    run(tests.arg(root.join("bindings/python/tests")).current_dir(target))
}

/// Builds the wheel and installs it into a fresh virtual environment; the interpreter of that.
pub(crate) fn install(root: &Path, target: &Path) -> Result<PathBuf, String> {
    let install = |programs: &[packages::Program]| {
        packages::install(programs, &|sentence| println!("{sentence}"))
            .map_err(|error: ToolError| error.to_string())
    };
    install(&[packages::PYTHON, packages::CXX])?;
    let (venv, wheels) = (target.join("python-venv"), target.join("wheels"));
    for folder in [&venv, &wheels] {
        if folder.exists() {
            std::fs::remove_dir_all(folder)
                .map_err(|error| format!("{} cannot be removed: {error}", folder.display()))?;
        }
    }
    let python = venv.join("bin/python");
    let mut make = Command::new(packages::PYTHON.name);
    if run(make.arg("-m").arg("venv").arg(&venv)).is_err() {
        // Debian has the module in a package of its own.
        install(&[packages::PYTHON_VENV])?;
        run(Command::new(packages::PYTHON.name).args(["-m", "venv", "--clear"]).arg(&venv))?;
    }
    let pip = |arguments: &[&str]| {
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(arguments))
            .map_err(|why| format!("{why}; the package was not tested: PyPI must be reachable"))
    };
    pip(&FROM_PYPI)?;
    // The development profile: most of it is compiled for the tests already.
    let mut build = Command::new(&python);
    build.args(["-m", "maturin", "build", "--quiet", "-o"]).arg(&wheels);
    run(build.current_dir(root.join("bindings/python")))?;
    let wheel = std::fs::read_dir(&wheels).ok().and_then(|mut files| files.next()?.ok());
    let wheel = wheel.ok_or("maturin has built no wheel")?.path();
    pip(&["--no-deps", &wheel.to_string_lossy()])?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<(), String> {
    println!("{command:?}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(error) => Err(format!("{command:?} cannot be started: {error}")),
    }
}
