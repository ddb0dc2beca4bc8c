//! `acceptance --simpler DIR --pto-isa DIR`: the public programs of the field's runtime, unmodified, on our simulators, as a table.
//!
//! Nothing of them is in the project: the caller names a checkout of the field's runtime and one of PTO-ISA (commits 6ebaf7715 and
//! cd4a3d3f are what the numbers were counted with). The programs need torch; Debian's is used, under Debian's own Python.

use std::path::Path;
use std::process::Command;

use crate::python;

/// How many scene cases have to pass, of the 213 that the programs' own lists name a simulator for.
const NEEDED: usize = 180;

/// What the programs need beside the wheel, by Debian's names.
const FROM_DEBIAN: [&str; 6] = [
    "python3-torch",
    "python3-numpy",
    "python3-pytest",
    "clang-19",
    "libc++-19-dev",
    "libc++abi-19-dev",
];

/// Runs the programs. `more` goes to the runner: `--only WORD`, `--table FILE`.
pub(crate) fn run(
    root: &Path,
    target: &Path,
    (simpler, pto_isa): (&str, &str),
    more: &[&str],
) -> Result<(), String> {
    needs()?;
    let python = python::install_beside_debian(root, target)?;
    let mut command = Command::new(&python);
    command.args(["-m", "simpler_setup.folder", simpler, "--pto-isa", pto_isa, "--work"]);
    command.arg(target.join("acceptance-field")).args(more).current_dir(target);
    // A part of the programs may all pass; of the whole so many must.
    let needed = NEEDED.to_string();
    if more.is_empty() {
        command.args(["--at-least", &needed]);
    }
    let status =
        command.status().map_err(|error| format!("{command:?} cannot be started: {error}"))?;
    match status.code() {
        Some(0) => Ok(()),
        Some(1) if more.is_empty() => Err(format!("fewer than {needed} scene cases pass")),
        _ => Err(format!("{command:?}: {status}")),
    }
}

fn needs() -> Result<(), String> {
    let missing: Vec<&str> = FROM_DEBIAN.into_iter().filter(|name| !is_installed(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the programs need packages of Debian: run `apt-get install {}`",
        missing.join(" ")
    ))
}

fn is_installed(package: &str) -> bool {
    let asked = Command::new("dpkg-query").args(["-W", "-f=${Status}", package]).output();
    asked.is_ok_and(|output| output.stdout.ends_with(b"ok installed"))
}
