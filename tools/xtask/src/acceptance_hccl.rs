//! `acceptance --hccl [RANKS]`: the package pyhccl, unmodified from PyPI, on our collectives: every collective with so many ranks, in each way in which ranks find
//! each other, against NumPy.

use std::path::Path;
use std::process::Command;

use crate::cargo::cargo;
use crate::python;

/// Ranks, where the caller names none.
const RANKS: &str = "2,4,8";
/// Devices of a process: as many as the most ranks.
const DEVICES: &str = "64";

/// Builds the libraries, fetches the package, and prints a table of collectives, ranks and ways.
pub(crate) fn run(root: &Path, target: &Path, more: &[&str]) -> Result<(), String> {
    let is_ranks = |word: &str| {
        word.split(',').all(|ranks| ranks.parse().is_ok_and(|ranks: u32| (2..=64).contains(&ranks)))
    };
    let ranks = match *more {
        [] => RANKS,
        [ranks] if is_ranks(ranks) => ranks,
        _ => {
            return Err(
                "say how many ranks, of 2 to 64: `cargo xtask acceptance --hccl 2,4,8`".into()
            );
        }
    };
    let mut build = cargo(root);
    build.args(["build", "--release", "--quiet", "-p", "pto-cli", "-p", "pto-acl"]);
    python::run(build.args(["-p", "pto-acl-entry", "-p", "pto-acl-hccl"]))?;
    let python = python::install_pyhccl(target)?;
    let mut script = Command::new(target.join("release/pto"));
    script.args(["compat", "cann", "run", "--devices", DEVICES, "--"]).arg(python);
    script.arg(root.join("bindings/acl/hccl/tests/pyhccl_ranks.py"));
    python::run(script.args(["--ranks", ranks]).current_dir(target))
}
