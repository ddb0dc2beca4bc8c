//! The folder that stands for CANN's where there is no Ascend device: libraries under the vendor's names, and the programs that play the
//! device, one for each machine whose code a firmware may be.
//!
//! ```text
//! FOLDER/lib64/libacl_rt.so, libruntime.so, libascend_hal.so -> libpto_cann_stand_in.so
//! FOLDER/bin/aarch64/pto-cann-emulator, FOLDER/bin/x86_64/pto-cann-emulator
//! FOLDER/bin/ccec, ld.lld -> tools/cann-device/compiler       stand in for the compiler for AICores
//! ```

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::compiler::{Source, Toolchain};
use super::{DEVELOPMENT, LINUX, ToolError, packages};

/// The library, as cargo calls it.
pub const LIBRARY: &str = "libpto_cann_stand_in.so";
/// The names of the vendor's.
pub const NAMES: [&str; 3] = ["libacl_rt.so", "libruntime.so", "libascend_hal.so"];
/// The vendor's compiler and linker, of which scripts of `tools/cann-device/compiler` take the places.
pub const COMPILERS: [&str; 2] = ["ccec", "ld.lld"];
/// The program that plays the device.
const EMULATOR: &str = "pto-cann-emulator";
/// The package with both.
pub const PACKAGE: &str = "pto-cann-device";
/// The profile of the workspace that it is built with.
const PROFILE: &str = "emulator";

/// The targets whose code a device of this machine plays: that of a real one, and this machine's own.
#[must_use]
pub const fn targets() -> &'static [&'static str] {
    if cfg!(target_arch = "x86_64") { &[LINUX, DEVELOPMENT] } else { &[LINUX] }
}

/// Makes `cargo`, which builds for the workspace around it, build the emulator for a target. The path where it puts the file.
///
/// # Errors
/// A tool is missing.
pub fn emulator(
    mut cargo: Command,
    target_folder: &Path,
    triple: &'static str,
    say: &dyn Fn(&str),
) -> Result<(Command, PathBuf), ToolError> {
    cargo.args(["build", "--quiet", "--package", PACKAGE, "--bin", EMULATOR]);
    cargo.args(["--profile", PROFILE, "--target", triple, "--target-dir"]).arg(target_folder);
    if triple == LINUX {
        let programs = [packages::QEMU_USER, packages::CROSS_C];
        packages::install(&programs, say)?;
        cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", packages::CROSS_C.name);
    }
    Toolchain::provide(triple, Source::Rustup, say)?.equip(&mut cargo);
    Ok((cargo, target_folder.join(triple).join(PROFILE).join(EMULATOR)))
}

/// Makes `cargo`, which builds for the workspace around it, build the emulator for this machine from what its tests are compiled from, for the tests
/// that need it: what they share is compiled once. The path where it puts the file.
#[must_use]
pub fn native(mut cargo: Command, target_folder: &Path) -> (Command, PathBuf) {
    // A program is built for the tests of its package, and the whole workspace has the features that its tests are compiled with.
    cargo.args(["test", "--quiet", "--workspace", "--test", "emulator", "--no-run"]);
    cargo.arg("--target-dir").arg(target_folder);
    (cargo, target_folder.join("debug").join(EMULATOR))
}

/// Puts links to the compiler that replaces that of AICores into a folder.
///
/// # Errors
/// A file that is missing, or a folder that cannot be written.
pub fn lay_out_compiler(folder: &Path) -> std::io::Result<()> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cann-device/compiler");
    COMPILERS.iter().try_for_each(|name| link(&scripts.join(name), &folder.join("bin").join(name)))
}

/// Lays the folder out: links to the library, to an emulator for each target, and to the compiler. What others use at the same time is replaced at once.
///
/// # Errors
/// A file that is missing, or a folder that cannot be written.
pub fn lay_out(
    folder: &Path,
    library: &Path,
    emulators: &[(&str, PathBuf)],
) -> std::io::Result<()> {
    for name in NAMES {
        link(library, &folder.join("lib64").join(name))?;
    }
    for (triple, program) in emulators {
        let machine = triple.split('-').next().unwrap_or(triple);
        link(program, &folder.join("bin").join(machine).join(EMULATOR))?;
    }
    lay_out_compiler(folder)
}

/// Puts a link to a file in place.
fn link(to: &Path, at: &Path) -> std::io::Result<()> {
    let to = to.canonicalize()?;
    at.parent().map_or(Ok(()), fs::create_dir_all)?;
    let temporary = at.with_extension(std::process::id().to_string());
    symlink(to, &temporary)?;
    fs::rename(&temporary, at)
}

#[cfg(test)]
mod tests {
    use super::{NAMES, lay_out};
    use std::{env, fs, process};

    #[test]
    fn links_are_replaced_and_lead_to_files() {
        let folder = env::temp_dir().join(format!("pto-stand-in-layout-{}", process::id()));
        let [library, program] = ["library", "program"].map(|name| folder.join(name));
        fs::create_dir_all(&folder).unwrap();
        for content in ["first", "second"] {
            fs::write(&library, content).unwrap();
            fs::write(&program, content).unwrap();
            lay_out(&folder, &library, &[("x86_64-unknown-linux-gnu", program.clone())]).unwrap();
            let emulator = folder.join("bin/x86_64/pto-cann-emulator");
            for file in NAMES.map(|name| folder.join("lib64").join(name)).iter().chain([&emulator])
            {
                assert_eq!(fs::read_to_string(file).unwrap(), content);
            }
        }
        assert!(lay_out(&folder, &folder.join("nothing"), &[]).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
