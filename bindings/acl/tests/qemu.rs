//! A program in C on the emulated machine, on the device `qemu` of the plug-in. Firmware and kernels are built, and flashed into a folder of the test.
//!
//! Needs QEMU and a compiler for AArch64; both are brought where they are missing (see `pto_image_build`).

#[path = "support/commands.rs"]
mod commands;
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use commands::{output, run};
use pto_host::fw::{FlashDevice, Image, Store};
use pto_host::workloads::program::Program;
use pto_host::workloads::tree::Workload;
use pto_image_build::{Profile, Request, packages};

use support::{compiler, here, library_folder};

/// Compiles sources to a program that is linked with the library.
fn build(sources: &[PathBuf], to: &Path) {
    let mut command = compiler("cc", "-std=c11");
    command.args(sources).arg("-o").arg(to);
    run(command.arg("-L").arg(library_folder()).arg("-lascendcl"));
}

/// A program that finds the plug-in, on a machine with the images in `home`. A wait that does not end would be a defect.
fn start(program: &Path, home: &Path) -> Command {
    let mut command = support::start(Path::new("timeout"));
    command.arg("300").arg(program);
    command.env("PTO_ACL_DEVICE", "qemu").env("PTO_HOME", home);
    command
}

/// Firmware and kernels, flashed into a folder.
fn flash(home: &Path) {
    let say = |sentence: &str| println!("{sentence}");
    packages::install(&[packages::QEMU], &say).unwrap_or_else(|why| panic!("{why}"));
    let request = Request { profile: Profile::Release, ..Request::default() };
    let built = pto_image_build::build(&request, &say).unwrap_or_else(|error| panic!("{error}"));
    let images: Vec<&Image> = built
        .iter()
        .map(|built| &built.image)
        .filter(|image| image.suits(FlashDevice::Qemu).is_ok())
        .collect();
    Store::at(home.to_path_buf()).flash(FlashDevice::Qemu, &images).expect("it is flashed");
}

const DOUBLES: &str = include_str!("doubles.workload");

#[test]
fn a_program_runs_on_the_emulated_machine() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let [program, object, model, home, empty] =
        ["machine", "kernels.so", "doubles.ptop", "home", "empty"]
            .map(|name| folder.path().join(name));
    flash(&home);
    build(&[here().join("tests/c/machine.c")], &program);
    let source = here().join("tests/c/conformance/object.c");
    run(compiler("cc", "-std=c11").args(["-shared", "-fPIC"]).arg(source).arg("-o").arg(&object));
    let checked = Workload::parse(DOUBLES).expect("a workload").check().expect("a sound one");
    std::fs::write(&model, Program::of_workload(&checked).expect("a program").to_bytes())
        .expect("a file");
    let machine = |home: &Path| {
        let mut command = start(&program, home);
        command.args([&object, &model]).env("PTO_ACL_MEMORY", (1_u64 << 30).to_string());
        command
    };
    assert_eq!(run(&mut machine(&home)), "machine: ok\n");
    // The conformance suite, without what needs pages and kernels of the program.
    let suite = ["main", "basics", "streams", "memory", "order", "kernels", "tiles", "rest"];
    let source = |name: &str| here().join(format!("tests/c/conformance/{name}.c"));
    let conformance = folder.path().join("conformance");
    build(&suite.map(source), &conformance);
    let said = run(start(&conformance, &home).arg(&object).arg("machine"));
    let count: u32 = said.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
    assert!(said.ends_with(", 0 failed\n") && count >= 700, "{said}");
    // However a process ends, its machine does.
    let ends = folder.path().join("ends");
    build(&[here().join("tests/c/ends.c")], &ends);
    for way in ["return", "_exit", "fork", "busy", "reset"] {
        assert_eq!(run(start(&ends, &home).arg(way)), format!("{way}: ok\n"));
    }
    // The first call that needs the device reports an impossible setting.
    for (command, why) in [
        (&mut machine(&empty), "qemu has no firmware: "),
        (machine(&home).env("PTO_ACL_SEED", "7"), "the device qemu runs in real time"),
        (machine(&home).env("PTO_ACL_MEMORY", "99000000000"), "PTO_ACL_MEMORY is 99000000000"),
    ] {
        let output = output(command);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("aclrtSetDevice") && said.contains(why), "{said}");
        assert_eq!(output.status.code(), Some(1), "{said}");
    }
}
