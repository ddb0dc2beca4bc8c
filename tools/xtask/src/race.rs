//! Whole runs under ThreadSanitizer: two threads that touch the same memory without an order between them, at least one
//! of them writing, are a failure.
//!
//! The sanitizer must see into the standard library, or it takes every channel and lock for a race: the library is built
//! from source, with the compiler in use, which is told to accept the options of a nightly one. The programs are small
//! (`examples/examples/whole_runs.rs`, tests of sessions, the programs in C++ that are tests of `pto-field`, and those in C that are
//! tests of `pto-c` and of `pto-acl`): most of this step is compiling.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use pto_toolchain::{packages, provide_std_source};

use crate::steps::Ran;

/// Where the sanitizer works, and the only machine that this repository builds on.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// How `g++` compiles orchestrations and kernels whose accesses the sanitizer sees. Its library stands in the program that
/// loads them, and there may be one only: they are linked without g++'s.
const CXX_FLAGS: &str = "-fsanitize=thread -g -nodefaultlibs -lstdc++ -lm -lc -lgcc_s";
const DEVICE_TESTS: (&str, &str, &str) = ("pto-host", "--test", "device");
const FIELD_TESTS: (&str, &str, &str) = ("pto-field", "--test", "field");
const C_TESTS: (&str, &str, &str) = ("pto-c", "--test", "programs");
const ACL_TESTS: (&str, &str, &str) = ("pto-acl", "--test", "programs");
/// The programs for the CANN interface that have threads of their own, or use most of its functions.
const ACL_PROGRAMS: [&str; 4] = [
    "threads_share_one_library",
    "a_pool_with_streams_events_and_a_graph_works",
    "a_model_is_loaded_described_and_run",
    "the_profiler_records_streams_calls_ranges_and_who_waits_for_whom",
];
/// The program in C that is to end in a signal, which the sanitizer takes for its own.
const ENDS_IN_A_SIGNAL: &str = "a_builder_that_follows_an_address_of_the_device";
/// Tests of sessions that the sanitizer does not run: campaigns run in virtual time, on one thread; failures wait for
/// time-outs; two read and write memory on purpose while a command of the session does.
const NOT_FOR_THE_SANITIZER: [&str; 4] = [
    "campaign",
    "failures",
    "makes_progress_without_anybody_who_waits",
    "a_value_is_waited_for_whoever_writes_it",
];
/// The sanitizer's functions, in the compiler's folder of libraries for this machine.
const SANITIZER_ARCHIVE: &str = "librustc-stable_rt.tsan.a";
/// Stops at the first race, with a code that no run of ours has.
const SANITIZER_OPTIONS: &str = "halt_on_error=1 exitcode=66";

/// Builds the programs and runs them. Not everywhere can the library's source be had: then it says so.
pub(crate) fn run(root: &Path, target: &Path) -> Result<Ran, String> {
    if let Err(why) = provide_std_source(&|sentence| println!("{sentence}")) {
        return Ok(Ran::Not(format!("no data race was looked for: {why}")));
    }
    packages::install(&[packages::CXX], &|sentence| println!("{sentence}"))
        .map_err(|why| why.to_string())?;
    let target = target.join("race");
    succeed("cargo", build(root, &target).status())?;
    let mut examples = Command::new(target.join(TRIPLE).join("debug/examples/whole_runs"));
    examples.env("TSAN_OPTIONS", SANITIZER_OPTIONS);
    succeed("a run under ThreadSanitizer", examples.status())?;
    succeed("a session under ThreadSanitizer", sessions(root, &target).status())?;
    succeed("a program in C++ under ThreadSanitizer", programs_in_cpp(root, &target).status())?;
    succeed("a program in C under ThreadSanitizer", programs_in_c(root, &target)?.status())?;
    let of_cann = programs_for_cann(root, &target)?.status();
    succeed("a program for the CANN interface under ThreadSanitizer", of_cann)?;
    Ok(Ran::Whole)
}

fn build(root: &Path, target: &Path) -> Command {
    let mut command = sanitized("build", root, target);
    let programs = [
        ("pto-examples", "--example", "whole_runs"),
        DEVICE_TESTS,
        FIELD_TESTS,
        C_TESTS,
        ACL_TESTS,
    ];
    for (package, kind, name) in programs {
        command.args(["-p", package, kind, name]);
    }
    command
}

/// Sessions and stitched programs on threads and pools.
fn sessions(root: &Path, target: &Path) -> Command {
    let mut command = tests(DEVICE_TESTS, root, target);
    command.args(["sessions::", "stitching::"]);
    for other in NOT_FOR_THE_SANITIZER {
        command.args(["--skip", other]);
    }
    command
}

/// The programs of the field's interface. One after the other: the sanitizer does not see the lock under which libraries are
/// closed. Not the mistakes: they end in signals, which it takes for its own.
fn programs_in_cpp(root: &Path, target: &Path) -> Command {
    let mut command = tests(FIELD_TESTS, root, target);
    command.args(["--test-threads=1", "--skip", "mistakes_are_named"]);
    command.env("PTO_FIELD_CXXFLAGS", CXX_FLAGS);
    command
}

/// The programs of the C interface. The library has the sanitizer's calls, and each program its functions: those that stand beside
/// the compiler.
fn programs_in_c(root: &Path, target: &Path) -> Result<Command, String> {
    let mut command = tests(C_TESTS, root, target);
    command.args(["--skip", ENDS_IN_A_SIGNAL]).env("PTO_C_THREAD_SANITIZER", functions()?);
    Ok(command)
}

/// Programs for the CANN interface, whose library and plug-in have the sanitizer's calls. The programs themselves are not compiled with it: they
/// write memory that streams read.
fn programs_for_cann(root: &Path, target: &Path) -> Result<Command, String> {
    let mut command = tests(ACL_TESTS, root, target);
    command.arg("--exact").args(ACL_PROGRAMS).env("PTO_ACL_THREAD_SANITIZER", functions()?);
    Ok(command)
}

/// The archive with the sanitizer's functions.
fn functions() -> Result<PathBuf, String> {
    let asked = Command::new("rustc").args(["--print", "target-libdir"]).output();
    let folder = asked.map_err(|error| format!("rustc cannot be started: {error}"))?.stdout;
    let archive = Path::new(String::from_utf8_lossy(&folder).trim()).join(SANITIZER_ARCHIVE);
    if !archive.is_file() {
        return Err(format!("the compiler brings no {}", archive.display()));
    }
    Ok(archive)
}

/// Tests of a package, up to what chooses among them.
fn tests((package, kind, name): (&str, &str, &str), root: &Path, target: &Path) -> Command {
    let mut command = sanitized("test", root, target);
    command.args(["-p", package, kind, name, "--"]).env("TSAN_OPTIONS", SANITIZER_OPTIONS);
    command
}

/// A command of cargo whose programs are built with the sanitizer.
fn sanitized(command: &str, root: &Path, target: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args([command, "--profile", "test", "--target", TRIPLE]);
    cargo.args(["-Zbuild-std=std,panic_unwind", "--target-dir"]).arg(target);
    // Objects in C++ find the functions of the sanitizer in the program.
    let flags = "-Zsanitizer=thread -Clink-arg=-Wl,--export-dynamic";
    cargo.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", flags);
    cargo.env("CARGO_INCREMENTAL", "0").current_dir(root);
    cargo
}

/// Says what did not succeed, in words.
pub(crate) fn succeed(what: &str, status: std::io::Result<ExitStatus>) -> Result<(), String> {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{what} failed: {status}")),
        Err(error) => Err(format!("{what} cannot be started: {error}")),
    }
}
