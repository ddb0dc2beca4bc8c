//! `cargo xtask release`: builds what people install, and installs and uses each of it in an empty root that has no Rust.
//!
//! ```text
//! tarball.rs    the command, libraries, headers, pkg-config and cmake files, man pages, completions, firmware images
//! wheel.rs      the Python package with the command in it, and its source package
//! crates.rs     what Rust programs depend on: `cargo publish --dry-run`
//! root.rs       an empty root of Debian's packages, and scripts that run in it
//! ```

mod crates;
mod folder;
mod root;
mod tarball;
mod wheel;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::cargo;
use crate::python;

/// The packages of what is installed beside the crates.
const PACKAGES: [&str; 7] =
    ["pto-cli", "pto-c", "pto-acl", "pto-acl-entry", "pto-acl-graph", "pto-acl-nn", "pto-acl-hccl"];
/// The profile of what is shipped.
pub(crate) const PROFILE: &str = "dist";

/// Builds everything into `target/release-files`, uses each of it, and prints the sizes.
pub(crate) fn run(root: &Path, target: &Path, profile: &str) -> Result<(), String> {
    let mut build = cargo(root);
    build.args(["build", "--profile", profile]);
    python::run(build.args(PACKAGES.iter().flat_map(|name| ["-p", name])))?;
    // The folder of the profile `dev` has another name.
    let built = target.join(if profile == "dev" { "debug" } else { profile });
    let images = firmware_images(root, target, &built.join("pto"))?;

    let files = folder::replaced(&target.join("release-files"))?;
    let tarball = tarball::make(root, &built, &images, &files)?;
    let wheels = wheel::make(root, target, (profile, &built), &files)?;

    root::use_tarball(root, target, &tarball)?;
    root::use_wheel(target, &wheels)?;
    wheel::build_from_source(target, &wheels)?;
    crates::check(root)?;
    print!("{}", table(&files)?);
    Ok(())
}

/// The part of it that the suite runs: the tarball of what the tests have built, used without the rest of this machine.
pub(crate) fn tarball_of_tests(root: &Path, target: &Path) -> Result<(), String> {
    let files = folder::replaced(&target.join("release-of-tests"))?;
    let tarball = tarball::make(root, &target.join("debug"), &[], &files)?;
    root::use_tarball_here(root, &files, &tarball)
}

/// The default images for both devices, with one that traces, as `pto fw build` makes them.
fn firmware_images(root: &Path, target: &Path, pto: &Path) -> Result<Vec<PathBuf>, String> {
    for options in
        [&["--image", "qemu"][..], &["--image", "qemu", "--tracing"], &["--image", "cann"]]
    {
        let mut build = Command::new(pto);
        python::run(build.args(["fw", "build", "--release"]).args(options).current_dir(root))?;
    }
    let file = |triple: &str, name: &str| target.join(triple).join("firmware").join(name);
    Ok(vec![
        file("aarch64-unknown-none", "pto-fw-qemu.img"),
        file("aarch64-unknown-none", "pto-fw-qemu.tracing.img"),
        file("aarch64-unknown-none", "pto-kernels-blob.img"),
        file("aarch64-unknown-linux-gnu", "libpto_fw_cann.img"),
    ])
}

/// Each file with its size.
fn table(folder: &Path) -> Result<String, String> {
    let failed = |error| format!("{}: {error}", folder.display());
    let mut rows = Vec::new();
    for file in std::fs::read_dir(folder).map_err(failed)? {
        let file = file.map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        if file.path().is_file() {
            rows.push(format!(
                "  {:>6.1} MiB  {}\n",
                bytes as f64 / f64::from(1 << 20),
                file.path().display()
            ));
        }
    }
    rows.sort();
    Ok(format!("\nreleased files\n{}", rows.concat()))
}
