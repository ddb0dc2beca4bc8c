//! The steps of `test` and `lint`.
//!
//! Builds are few on purpose: everything that runs on this machine shares the test profile. The model
//! checkers, the mutants, the race detector and what is measured cannot: they build only the crates that they need, in folders of
//! their own. They run in a second lane ([`crate::lane`]), and so do steps that need the tests of the first lane built, and nothing else of it.

use std::path::{Path, PathBuf};

use crate::address;
use crate::generate;
use crate::lane;
use crate::miri;
use crate::mpi;
use crate::package_parts;
use crate::python;
use crate::race;
use crate::recipes;
use crate::release;
use crate::steps::Step;
use crate::tools;

/// `cargo xtask test`: the steps of the first lane, which start those of the second and wait for them.
pub(crate) fn tests(root: &Path) -> Vec<Step> {
    first_lane(root, TESTS)
}

/// `cargo xtask ci`: the same, and the lints in the second lane.
pub(crate) fn everything(root: &Path) -> Vec<Step> {
    first_lane(root, EVERYTHING)
}

/// The command that runs the suite.
pub(crate) const TESTS: &str = "test";
/// The command that runs the suite and the lints.
pub(crate) const EVERYTHING: &str = "ci";

fn first_lane(root: &Path, command: &'static str) -> Vec<Step> {
    let [start_others, wait_for_others] = lane::parallel(command, &target_folder(root));
    vec![
        generated_files(root),
        Step::call("AArch64 targets", tools::provide_targets),
        Step::call("emulators and cross tools", tools::provide_programs),
        start_others,
        // Everything shares this profile; `pto bench` measures with the profile `dist`, by hand.
        // `--tests` means every target that has tests. Benches, and examples that are programs to be tried by hand, have none:
        // clippy compiles them.
        Step::cargo("build everything", "test --workspace --tests --no-run"),
        Step::cargo("tests", "test --workspace --tests --no-fail-fast"),
        wait_for_others,
    ]
}

/// `cargo xtask test --apart`: the steps of the second lane. Those that need a package beyond what the first lane has installed before it starts them
/// install it themselves.
pub(crate) fn tests_apart(root: &Path) -> Vec<Step> {
    steps_apart(root, Vec::new())
}

/// `cargo xtask ci --apart`: the same with the lints.
pub(crate) fn everything_apart(root: &Path) -> Vec<Step> {
    steps_apart(root, lints(root))
}

/// First what takes folders of its own, while the first lane builds the tests in the one that the others share.
fn steps_apart(root: &Path, lints: Vec<Step>) -> Vec<Step> {
    let target_folder = target_folder(root);
    let checker = |name, cfg: &str, packages: &str| {
        let arguments = format!("test {packages} --test {cfg} --release");
        Step::cargo(name, &arguments)
            .with("RUSTFLAGS", format!("--cfg {cfg}"))
            .with("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
            .with("CARGO_TARGET_DIR", target_folder.join(cfg).to_string_lossy())
    };
    let mut steps = vec![
        // The profile of what is measured and shipped.
        Step::cargo(
            "what a task costs",
            "run --quiet --profile dist -p pto-bench --bin pto-count",
        ),
        checker("loom tests", "loom", "-p pto-aicpu-fw -p pto-acl-interface"),
        checker("shuttle tests", "shuttle", "-p pto-aicpu-fw"),
        // One after the other: which mutant is chosen, is so for the whole process. Not optimised: they take longer to compile than to run.
        Step::cargo(
            "mutants",
            "test -p pto-aicpu-fw -p pto-sim-shim --test firmware --test stream --test simulator -- \
             --test-threads=1 mutants virtual_time::block_shapes virtual_time::gate",
        )
        .with("RUSTFLAGS", "--cfg pto_mutants")
        .with("CARGO_PROFILE_TEST_OPT_LEVEL", "0")
        .with("CARGO_TARGET_DIR", target_folder.join("mutants").to_string_lossy()),
        race_detector(root),
        // Most of the time that the tests of images take is building these, in folders that one cargo at a time may use: the first lane builds the first
        // ones itself, while the race detector has a folder of its own.
        Step::cargo("images", "test --workspace --test images --test emulated -- image:: sizes_in_bytes"),
    ];
    steps.extend(lints);
    steps.extend([
        // Each seed twice: with something going wrong in two of three (and a run after it), and without.
        Step::cargo("seeded runs", "test --workspace --test simulator -- --nocapture seeds_pass")
            .with("PTO_SOAK_SEEDS", "25000"),
        followed_recipes(root, recipes::Extent::Example),
        address_sanitizer(root),
        python_package(root),
        release_of_tests(root),
        package_parts(root),
        mpi_ranks(root, mpi::RequiredMpi::OpenMpi),
        Step::cargo("doc tests", "test --workspace --doc"),
        build_without_std(root),
    ]);
    steps
}

/// `cargo xtask debian-compiler`: what happens where rustup cannot bring the targets, in earnest. Not a part of
/// `test`: it fetches about 140 MB from Debian.
pub(crate) fn debian_compiler(root: &Path) -> Vec<Step> {
    let home = target_folder(root).join("debian-compiler").to_string_lossy().into_owned();
    let images = target_folder(root).join("aarch64-unknown-none/firmware");
    let image = |name: &str| images.join(name).with_extension("img").display().to_string();
    let (firmware, kernels) = (image("pto-fw-qemu"), image("pto-kernels-blob"));
    let pto = |name, arguments: &str| {
        let arguments = format!("run --quiet --release -p pto-cli -- {arguments}");
        Step::cargo(name, &arguments).with("PTO_HOME", home.clone())
    };
    vec![
        Step::call("emulators and cross tools", tools::provide_programs),
        pto("qemu by Debian's compiler", "fw build --release --compiler debian"),
        pto("cann by Debian's compiler", "fw build --release --compiler debian --image cann"),
        pto("inspect", &format!("fw inspect {firmware}")),
        pto("flash", &format!("fw flash {firmware} {kernels}")),
        pto("run", "run paged_attention --device qemu"),
    ]
}

/// Whole runs under ThreadSanitizer.
pub(crate) fn race_detector(root: &Path) -> Step {
    let (root, target) = (root.to_path_buf(), target_folder(root));
    Step::call_where_possible("race detector", move || race::run(&root, &target))
}

/// Programs in C++ under AddressSanitizer.
pub(crate) fn address_sanitizer(root: &Path) -> Step {
    let root = root.to_path_buf();
    Step::call("address sanitizer", move || address::run(&root))
}

/// The recipes for a kernel and an example, followed in a copy.
pub(crate) fn followed_recipes(root: &Path, extent: recipes::Extent) -> Step {
    let (root, target) = (root.to_path_buf(), target_folder(root));
    Step::call("recipes", move || recipes::run(&root, &target, extent))
}

/// The unit tests of what runs on the device, under miri.
pub(crate) fn miri(root: &Path) -> Step {
    let (root, target) = (root.to_path_buf(), target_folder(root));
    Step::call("miri", move || miri::run(&root, &target))
}

/// Ranks in processes of their own, on the MPIs of this machine.
pub(crate) fn mpi_ranks(root: &Path, asked: mpi::RequiredMpi) -> Step {
    let (root, target) = (root.to_path_buf(), target_folder(root));
    Step::call_where_possible("ranks over MPI", move || mpi::test(&root, &target, asked))
}

/// The Python package, from its wheel.
pub(crate) fn python_package(root: &Path) -> Step {
    let (root, target) = (root.to_path_buf(), target_folder(root));
    Step::call("Python package", move || python::test(&root, &target))
}

/// The tarball that people install, of what the tests have built.
pub(crate) fn release_of_tests(root: &Path) -> Step {
    let (root, target) = (root.to_path_buf(), target_folder(root));
    Step::call("tarball", move || release::tarball_of_tests(&root, &target))
}

/// A part of packages from PyPI that call the CANN interface.
pub(crate) fn package_parts(root: &Path) -> Step {
    let (root, target) = (root.to_path_buf(), target_folder(root));
    Step::call_where_possible("packages of PyPI", move || package_parts::test(&root, &target))
}

/// The header that is made from the crate of the C interface, by the test that holds it current.
pub(crate) fn c_interface() -> Vec<Step> {
    vec![
        Step::cargo("pto_runtime.h", "test --quiet --workspace --test c_header")
            .with("PTO_BLESS", "1"),
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

fn build_without_std(root: &Path) -> Step {
    let root = root.to_path_buf();
    Step::call("no_std build", move || tools::build_without_std(&root))
}

/// Where builds go: the model checkers' folders are in it.
pub(crate) fn target_folder(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}
