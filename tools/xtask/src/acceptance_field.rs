//! `acceptance --simpler DIR --pto-isa DIR`, `acceptance --zeco DIR --pto-isa DIR`: the public programs of the field's runtime, unmodified, on our simulators, as a table.
//!
//! Nothing of them is in the project: the caller names a checkout of the field's runtime and one of PTO-ISA (commits 6ebaf7715 and
//! cd4a3d3f are what the numbers were counted with). The programs need torch; Debian's is used, under Debian's own Python.

use std::path::Path;
use std::process::Command;

use crate::python;

/// How many scene cases have to pass, of the 213 that the programs' own lists name a simulator for.
const NEEDED: usize = 180;

/// What the programs need in addition to the wheel, by Debian's names.
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

/// How many scene cases and tests with several ranks pto-zeco has at commit 5ab5345.
const ZECO: (usize, usize) = (30, 10);
/// Its tests that use nothing else than the field's interface.
const ZECO_TESTS: [&str; 4] = [
    "allscan/tests/test_simpler.py",
    "allscan/tests/test_simpler_backward.py",
    "gla/tests/test_simpler_gla.py",
    "gla/tests/test_simpler_gla_backward.py",
];

/// Runs the scene files of pto-zeco, and its tests on four ranks.
pub(crate) fn run_zeco(
    root: &Path,
    target: &Path,
    zeco: &str,
    pto_isa: &str,
    more: &[&str],
) -> Result<(), String> {
    needs()?;
    let python = python::install_beside_debian(root, target)?;
    let unstarted = |command: &Command, error| format!("{command:?} cannot be started: {error}");
    let mut scenes = Command::new(&python);
    scenes.args(["-m", "simpler_setup.folder", zeco, "--pto-isa", pto_isa, "--work"]);
    scenes.arg(target.join("acceptance-zeco")).args(more).current_dir(target);
    // The tests with ranks have options of their own, and are no scene tests.
    scenes.args(["--only", "implementations/simpler/test_", "--at-least", &ZECO.0.to_string()]);
    let are_right = scenes.status().map_err(|error| unstarted(&scenes, error))?.success();
    let mut ranks = Command::new(&python);
    ranks.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--platform", "a2a3sim"]);
    ranks.args(["--device", "0-3"]).args(ZECO_TESTS).current_dir(zeco);
    ranks.env("PTO_ISA_ROOT", pto_isa).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = ranks.output().map_err(|error| unstarted(&ranks, error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    println!("tests with several ranks: {}", text.lines().last().unwrap_or("no output"));
    let has_ranks = output.status.success() && text.contains(&format!("{} passed", ZECO.1));
    if are_right && has_ranks {
        return Ok(());
    }
    Err(format!("{} scene cases and {} tests with ranks have to pass\n{text}", ZECO.0, ZECO.1))
}

pub(crate) fn needs() -> Result<(), String> {
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
