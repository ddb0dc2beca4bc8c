//! Whole runs under ThreadSanitizer: two threads that touch the same memory without an order between them, at least one
//! of them writing, are a failure.
//!
//! The sanitizer must see into the standard library, or it takes every channel and lock for a race: the library is built
//! from source, with the compiler in use, which an environment variable lets accept the options of a nightly one. The programs are small
//! (`examples/examples/whole_runs.rs`, tests of sessions, the programs in C++ that are tests of `pto-field`, and those in C that are
//! tests of `pto-c` and of `pto-acl`). They are built by one command, and started as they are: cargo would compile the crates below a package
//! again where it is asked for that package alone, with the features that the others do not ask for.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use cargo_metadata::Message;
use pto_image_build::toolchain::{packages, provide_std_source};

use crate::cargo::cargo;
use crate::steps::StepResult;

/// Where the sanitizer works, and the only machine that this repository builds on.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// How `g++` compiles orchestrations and kernels whose accesses the sanitizer sees. Its library is in the program that
/// loads them, and there may be one only: they are linked without g++'s.
const CXX_FLAGS: &str = "-fsanitize=thread -g -nodefaultlibs -lstdc++ -lm -lc -lgcc_s";
/// What is built: package, kind of target, name.
const WHOLE_RUNS: Target = ("pto-examples", "--example", "whole_runs");
const DEVICE_TESTS: Target = ("pto-host", "--test", "device");
const FIELD_TESTS: Target = ("pto-field", "--test", "field");
const C_TESTS: Target = ("pto-c", "--test", "programs");
const ACL_TESTS: Target = ("pto-acl", "--test", "programs");
const TARGETS: [Target; 5] = [WHOLE_RUNS, DEVICE_TESTS, FIELD_TESTS, C_TESTS, ACL_TESTS];
/// The programs for the CANN interface that have threads of their own, or use most of its functions.
const ACL_PROGRAMS: [&str; 4] = [
    "threads_share_one_library",
    "a_pool_with_streams_events_and_a_graph_works",
    "a_model_is_loaded_described_and_run",
    "the_profiler_records_streams_calls_ranges_and_who_waits_for_whom",
];
/// The programs in C that the sanitizer does not run: one is to end in a signal, which it takes for its own; the other starts threads in
/// a child of fork, which it refuses.
const NOT_FOR_THE_SANITIZER_IN_C: [&str; 2] = [
    "a_builder_that_follows_an_address_of_the_device",
    "a_child_of_fork_gets_errors_and_works_on_its_own",
];
/// Tests of sessions that the sanitizer does not run: campaigns, programs in every order, makespans and overlaps are of one thread; failures wait for
/// time-outs; two read and write memory on purpose while a command of the session does.
const NOT_FOR_THE_SANITIZER: [&str; 10] = [
    "campaign",
    "random_programs_in_every_order",
    "copies_overlap_with_kernels_and_with_copies_the_other_way",
    "graphs_and_builders_overlap_as_plans_do",
    "what_the_runtime_cannot_see_is_kept_in_order",
    "mixtures_take_no_longer_than_one_program_after_the_other",
    "two_stitched_programs_of_any_kinds_take_what_one_takes",
    "failures",
    "makes_progress_without_a_thread_that_waits",
    "a_value_of_any_writer_is_waited_for",
];
/// The programs of simpler's interface: orchestrations and kernels on all kinds of threads, tasks that wait for each other, and what is read of a run
/// while it goes on. The others differ in what they report.
const FIELD_PROGRAMS: [&str; 6] = [
    "programs_run_in_every_hosting_mode",
    "a_completion_waits_for_other_tasks_where_they_can_run",
    "tasks_that_wait_for_each_other_run_where_both_can",
    "arguments_are_dumped_before_and_after_their_task",
    "every_call_of_a_kernel_has_a_span",
    "a_slow_kernel_is_no_stall",
];
/// The sanitizer's functions, in the compiler's folder of libraries for this machine.
const SANITIZER_ARCHIVE: &str = "librustc-stable_rt.tsan.a";
/// Stops at the first race, with a code that no run of ours has.
const SANITIZER_OPTIONS: &str = "halt_on_error=1 exitcode=66";

/// Builds the programs and runs them. Not everywhere can the library's source be had: then it says so.
pub(crate) fn run(root: &Path, target: &Path) -> Result<StepResult, String> {
    if let Err(why) = provide_std_source(&|sentence| println!("{sentence}")) {
        return Ok(StepResult::Not(format!("no data race was looked for: {why}")));
    }
    packages::install(&[packages::CXX], &|sentence| println!("{sentence}"))
        .map_err(|why| why.to_string())?;
    let built = BuiltPrograms::new(root, &target.join("race"))?;
    succeed("a run under ThreadSanitizer", built.start(WHOLE_RUNS)?.status())?;
    succeed("a session under ThreadSanitizer", sessions(&built)?.status())?;
    succeed("a program in C++ under ThreadSanitizer", programs_in_cpp(&built)?.status())?;
    succeed("a program in C under ThreadSanitizer", programs_in_c(&built)?.status())?;
    let of_cann = programs_for_cann(&built)?.status();
    succeed("a program for the CANN interface under ThreadSanitizer", of_cann)?;
    Ok(StepResult::Whole)
}

/// A package, a kind of target as an option of cargo, and the target's name.
type Target = (&'static str, &'static str, &'static str);

/// The programs.
struct BuiltPrograms(Vec<Program>);

/// A target as it is built.
struct Program {
    target: Target,
    file: PathBuf,
    /// Where cargo would start it.
    folder: PathBuf,
}

impl BuiltPrograms {
    /// Builds them.
    fn new(root: &Path, folder: &Path) -> Result<Self, String> {
        let mut command = sanitized(root, folder);
        for (package, kind, name) in TARGETS {
            command.args(["-p", package, kind, name]);
        }
        let cannot = |error: std::io::Error| format!("cargo cannot be started: {error}");
        let mut cargo = command.stdout(Stdio::piped()).spawn().map_err(cannot)?;
        let messages = cargo.stdout.take().ok_or("cargo says nothing")?;
        let mut programs = Vec::new();
        for message in Message::parse_stream(BufReader::new(messages)) {
            let message =
                message.map_err(|error| format!("what cargo says is not read: {error}"))?;
            let Message::CompilerArtifact(artifact) = message else { continue };
            let Some(file) = artifact.executable else { continue };
            let folder = artifact.manifest_path.parent().map(|folder| folder.as_std_path().into());
            programs.extend(TARGETS.iter().filter_map(|&target| {
                let (package, _, name) = target;
                let is_it =
                    artifact.target.name == name && of_package(&artifact.package_id.repr, package);
                let (file, folder) = (file.clone().into_std_path_buf(), folder.clone()?);
                is_it.then_some(Program { target, file, folder })
            }));
        }
        succeed("cargo", cargo.wait())?;
        Ok(Self(programs))
    }

    /// Starts one as cargo would, under the sanitizer.
    fn start(&self, target: Target) -> Result<Command, String> {
        let program = self.0.iter().find(|program| program.target == target);
        let program =
            program.ok_or_else(|| format!("cargo has built no {} of {}", target.2, target.0))?;
        let mut command = Command::new(&program.file);
        command.current_dir(&program.folder).env("TSAN_OPTIONS", SANITIZER_OPTIONS);
        // The cargo that has started us has put its own folder there, with libraries that know nothing of the sanitizer.
        command.env_remove("LD_LIBRARY_PATH");
        Ok(command)
    }
}

/// Sessions and stitched programs on threads and pools.
fn sessions(built: &BuiltPrograms) -> Result<Command, String> {
    let mut command = built.start(DEVICE_TESTS)?;
    command.args(["sessions::", "stitching::"]);
    for other in NOT_FOR_THE_SANITIZER {
        command.args(["--skip", other]);
    }
    Ok(command)
}

/// The programs of the field's interface. One after the other: the sanitizer does not see the lock under which libraries are
/// closed.
fn programs_in_cpp(built: &BuiltPrograms) -> Result<Command, String> {
    let mut command = built.start(FIELD_TESTS)?;
    command.arg("--test-threads=1").args(FIELD_PROGRAMS);
    command.env("PTO_FIELD_CXXFLAGS", CXX_FLAGS);
    Ok(command)
}

/// The programs of the C interface. The library has the sanitizer's calls, and each program its functions: those that are next to
/// the compiler.
fn programs_in_c(built: &BuiltPrograms) -> Result<Command, String> {
    let mut command = built.start(C_TESTS)?;
    for other in NOT_FOR_THE_SANITIZER_IN_C {
        command.args(["--skip", other]);
    }
    command.env("PTO_C_THREAD_SANITIZER", functions()?);
    Ok(command)
}

/// Programs for the CANN interface, whose library and plug-in have the sanitizer's calls. The programs themselves are not compiled with it: they
/// write memory that streams read.
fn programs_for_cann(built: &BuiltPrograms) -> Result<Command, String> {
    let mut command = built.start(ACL_TESTS)?;
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

/// Builds with the sanitizer, and returns what was built.
fn sanitized(root: &Path, folder: &Path) -> Command {
    let mut cargo = cargo(root);
    cargo.args(["build", "--profile", "test", "--target", TRIPLE]);
    cargo.arg("--message-format=json-render-diagnostics");
    cargo.args(["-Zbuild-std=std,panic_unwind", "--target-dir"]).arg(folder);
    // Objects in C++ find the functions of the sanitizer in the program.
    let flags = "-Zsanitizer=thread -Clink-arg=-Wl,--export-dynamic";
    cargo.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", flags);
    // Compiling the sanitizer's calls takes longer than what the programs save when they are optimised.
    cargo.env("CARGO_PROFILE_TEST_OPT_LEVEL", "0");
    cargo
}

/// Whether an id of cargo's names this package: `path+file:///folder/name#version`, or `path+file:///folder#name@version`.
fn of_package(id: &str, name: &str) -> bool {
    let Some((source, version)) = id.rsplit_once('#') else { return false };
    match version.split_once('@') {
        Some((named, _)) => named == name,
        None => source.rsplit_once('/').is_some_and(|(_, folder)| folder == name),
    }
}

/// Says what did not succeed, in words.
pub(crate) fn succeed(what: &str, status: std::io::Result<ExitStatus>) -> Result<(), String> {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{what} failed: {status}")),
        Err(error) => Err(format!("{what} cannot be started: {error}")),
    }
}
