//! What the steps of `test` and `lint` are.
//!
//! Builds are few on purpose: everything that runs on this machine shares the test profile; the model
//! checkers and the bare-metal target, which cannot, build only the crates that they need, in folders of
//! their own.

use std::path::{Path, PathBuf};

use crate::generate;
use crate::packages;
use crate::steps::Step;
use crate::target;

/// Crates that run on the device.
const DEVICE_CRATES: &str = "-p pto-abi -p pto-aicpu-fw -p pto-aicore-kernels";

/// `cargo xtask test`.
pub(crate) fn tests(root: &Path) -> Vec<Step> {
    let target_folder = target_folder(root);
    let checker = |name, cfg: &str| {
        let arguments = format!("test -p pto-aicpu-fw --test {cfg} --release");
        Step::cargo(name, &arguments)
            .with("RUSTFLAGS", format!("--cfg {cfg}"))
            .with("CARGO_TARGET_DIR", target_folder.join(cfg).to_string_lossy())
    };
    vec![
        generated_files(root),
        Step::call("AArch64 targets", target::provide),
        Step::call("emulators and cross tools", packages::provide),
        // Benchmarks are compiled here, and run by `cargo bench` only.
        Step::cargo("build everything", "test --workspace --all-targets --no-run"),
        Step::cargo("tests", "test --workspace --lib --bins --tests --examples --no-fail-fast"),
        // Each seed twice: with something going wrong in two of three (and a run after it), and without.
        Step::cargo(
            "seeded runs",
            "test --workspace --test virtual_soak -- --nocapture seeds_pass",
        )
        .with("PTO_SOAK_SEEDS", "50000"),
        Step::cargo("doc tests", "test --workspace --doc"),
        checker("loom tests", "loom"),
        checker("shuttle tests", "shuttle"),
        Step::cargo(
            "no_std build",
            &format!("build {DEVICE_CRATES} --target {}", target::BARE_METAL),
        ),
    ]
}

/// `cargo xtask lint`.
pub(crate) fn lints(_: &Path) -> Vec<Step> {
    vec![
        Step::cargo("format", "fmt --all --check"),
        Step::cargo("clippy", "clippy --workspace --all-targets -- -D warnings"),
        Step::cargo("documentation", "doc --workspace --no-deps --document-private-items")
            .with("RUSTDOCFLAGS", "-D warnings"),
    ]
}

fn generated_files(root: &Path) -> Step {
    let root = root.to_path_buf();
    Step::call("generated files", move || generate::check(&root))
}

/// Where builds go: the model checkers' folders stand in it.
fn target_folder(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}
