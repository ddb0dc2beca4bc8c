//! Unit tests of what runs on the device, and of the host, interpreted by miri: it sees undefined behaviour that a processor forgives.
//! Not a part of `test`: it is slow, and needs a nightly compiler.

use std::path::Path;
use std::process::Command;

use crate::race::succeed;

/// Tests of one binary.
struct Units {
    package: &'static str,
    /// The binary in cargo's words.
    binary: &'static [&'static str],
    /// The tests of it that miri runs, by their names; all if empty.
    tests: &'static [&'static str],
    /// The tests that it leaves out.
    left_out: &'static [&'static str],
}

const LIBRARY: &[&str] = &["--lib"];

/// What miri can run, because nothing foreign is called there.
const UNITS: &[Units] = &[
    Units { package: "pto-abi", binary: LIBRARY, tests: &[], left_out: &[] },
    Units {
        package: "pto-graph",
        binary: LIBRARY,
        tests: &[],
        // Thousands of plans and a million iterations: hours of interpretation.
        left_out: &["plan::differential::"],
    },
    Units { package: "pto-aicpu-fw", binary: LIBRARY, tests: &[], left_out: &[] },
    Units {
        package: "pto-aicore-kernels",
        binary: &["--test", "kernels"],
        tests: &["worker::"],
        left_out: &[],
    },
    Units {
        package: "pto-aicore-kernels",
        binary: &["--test", "tile"],
        tests: &["cause_words::"],
        left_out: &[],
    },
    Units {
        package: "pto-host",
        binary: LIBRARY,
        tests: &[],
        left_out: &[
            // Thousands of seeds.
            "soak::",
            // Several devices in one process: the first of these tests had no end after a quarter of an hour.
            "group::tests::",
            // It waits for the time-outs of a device: a quarter of an hour here.
            "device::tests::after_a_fault",
            // It asks for the CPU time of a thread, which miri does not know.
            "an_idle_service_uses_no_cpu_and_wakes_up",
            // A kernel takes longer here than the limits of its session allow.
            "a_ring_is_read_through_one_slot",
            // They wait until a folder is on the disk (`fsync`), which miri does for files only.
            "fw::tests::a_flash",
            "fw::tests::a_full_disk",
            "fw::tests::an_image_for_another_device",
            "fw::tests::an_interrupted_flash",
            "fw::tests::damage_in_the_store",
            "fw::tests::old_generations",
        ],
    },
];

/// Runs the unit tests of each crate.
pub(crate) fn run(root: &Path, target: &Path) -> Result<(), String> {
    provide()?;
    for units in UNITS {
        let mut command = nightly();
        command.args(["miri", "test", "-p", units.package]).args(units.binary).arg("--");
        command.args(units.tests).args(units.left_out.iter().flat_map(|test| ["--skip", test]));
        // Tests that ask for the size of this machine or its clock may.
        command.env("MIRIFLAGS", "-Zmiri-disable-isolation");
        command.env("CARGO_TARGET_DIR", target.join("miri")).current_dir(root);
        println!("{}", units.package);
        succeed(units.package, command.status())?;
    }
    Ok(())
}

fn nightly() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]);
    command
}

/// Makes sure that there is a nightly compiler with miri.
fn provide() -> Result<(), String> {
    let is_there =
        || nightly().args(["miri", "--version"]).status().is_ok_and(|status| status.success());
    if is_there() {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    rustup.args([
        "toolchain",
        "install",
        "nightly",
        "--profile",
        "minimal",
        "-c",
        "miri",
        "-c",
        "rust-src",
    ]);
    let added = succeed("rustup", rustup.arg("--no-self-update").status());
    if added.is_ok() && is_there() {
        return Ok(());
    }
    let why = added.err().unwrap_or_else(|| "it is not usable".into());
    Err(format!(
        "there is no nightly compiler with miri ({why}). Nothing was tested. Run `rustup toolchain install nightly \
         -c miri -c rust-src` where there is a network, and try again."
    ))
}
