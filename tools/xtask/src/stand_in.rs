//! `stand-in`: the folder with our libraries under the names of the vendor's, and the program that plays the device.
//!
//! ```text
//! target/stand-in/lib64/libacl_rt.so, libruntime.so, libascend_hal.so -> libpto_cann_stand_in.so
//! target/stand-in/bin/pto-cann-emulator
//! ```

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::cargo::cargo;

const LIBRARY: &str = "libpto_cann_stand_in.so";
const NAMES: [&str; 3] = ["libacl_rt.so", "libruntime.so", "libascend_hal.so"];
const EMULATOR: &str = "pto-cann-emulator";
const TRIPLE: &str = "aarch64-unknown-linux-gnu";
const LINKER: (&str, &str) =
    ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc");

/// Builds everything, lays it out, and says how it is used.
pub(crate) fn make(root: &Path, target: &Path) -> Result<(), String> {
    build(root, target, &["--package", "pto-cann-stand-in"])?;
    let of_device = ["--package", EMULATOR, "--bin", EMULATOR, "--target", TRIPLE, "--release"];
    build(root, target, &of_device)?;
    let folder = target.join("stand-in");
    lay_out(target, &folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    println!("{}", folder.display());
    println!("Next: ASCEND_HOME_PATH={} pto run vector_example --device a2a3", folder.display());
    Ok(())
}

fn build(root: &Path, target: &Path, arguments: &[&str]) -> Result<(), String> {
    let mut command = cargo(root);
    command.arg("build").args(arguments).arg("--target-dir").arg(target);
    let status = command.env(LINKER.0, LINKER.1).status();
    let status = status.map_err(|error| format!("cargo cannot be started: {error}"))?;
    status
        .success()
        .then_some(())
        .ok_or_else(|| format!("cargo build {}: {status}", arguments.join(" ")))
}

fn lay_out(target: &Path, folder: &Path) -> std::io::Result<()> {
    let (libraries, programs) = (folder.join("lib64"), folder.join("bin"));
    fs::create_dir_all(&libraries)?;
    fs::create_dir_all(&programs)?;
    fs::copy(target.join("debug").join(LIBRARY), libraries.join(LIBRARY))?;
    for name in NAMES {
        let link = libraries.join(name);
        if link.symlink_metadata().is_ok() {
            fs::remove_file(&link)?;
        }
        symlink(LIBRARY, &link)?;
    }
    fs::copy(target.join(TRIPLE).join("release").join(EMULATOR), programs.join(EMULATOR))?;
    Ok(())
}
