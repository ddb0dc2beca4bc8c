//! What the suite needs in addition to the compiler in use: targets, cross tools, emulators; brought where they are missing.

use std::path::Path;

use pto_image_build::toolchain::{BARE_METAL, LINUX, Source, ToolError, Toolchain, packages};

use crate::cargo::cargo;

/// Crates that run on the device.
const DEVICE_CRATES: [&str; 3] = ["pto-abi", "pto-aicpu-fw", "pto-aicore-kernels"];

fn say(sentence: &str) {
    println!("{sentence}");
}

/// Compilers for the targets of images.
pub(crate) fn provide_targets() -> Result<(), String> {
    for triple in [BARE_METAL, LINUX] {
        Toolchain::provide(triple, Source::Any, &say).map_err(because)?;
        say(&format!("{triple} can be built for"));
    }
    Ok(())
}

/// Emulators and cross tools.
pub(crate) fn provide_programs() -> Result<(), String> {
    let programs = [
        packages::QEMU,
        packages::QEMU_USER,
        packages::CROSS_C,
        packages::CROSS_CXX,
        packages::CC,
        packages::CXX,
        packages::VALGRIND,
    ];
    packages::install(&programs, &say).map_err(because)?;
    say("all of them are installed");
    Ok(())
}

/// Builds the device crates for the bare machine.
pub(crate) fn build_without_std(root: &Path) -> Result<(), String> {
    let toolchain = Toolchain::provide(BARE_METAL, Source::Any, &say).map_err(because)?;
    let mut command = cargo(root);
    command.arg("build").args(DEVICE_CRATES.iter().flat_map(|name| ["-p", name]));
    command.args(["--target", BARE_METAL]);
    toolchain.equip(&mut command);
    let status = command.status().map_err(|error| format!("cargo cannot be started: {error}"))?;
    if status.success() { Ok(()) } else { Err(status.to_string()) }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn because(error: ToolError) -> String {
    error.to_string()
}
