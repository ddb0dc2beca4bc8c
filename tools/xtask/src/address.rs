//! The programs in C++ of the field's interface under AddressSanitizer: an orchestration or a kernel that reads or writes beyond its memory is a failure.
//!
//! `g++` compiles the programs with the sanitizer, and the test that loads them runs with its library in front. It sees what the programs have on stacks and heaps, and not the
//! device's memory, which is one mapping. A program with a planted mistake shows that the sanitizer is there: the step fails where the sanitizer does not report it.

use std::path::Path;
use std::process::Command;

use pto_image_build::toolchain::packages;

use crate::cargo::cargo;
use crate::race::succeed;

/// The variable by which cargo starts tests through another program.
const RUNNER: &str = "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER";
/// Programs leak on purpose where they fail. The library catches signals and reports them.
const SANITIZER_OPTIONS: &str = "detect_leaks=0,handle_segv=0,handle_sigfpe=0,handle_abort=0";
/// A test whose program reads past its allocation, which only the sanitizer sees.
const PLANTED: &str = "programs::the_sanitizer_sees_a_planted_mistake";
/// What the sanitizer says of it.
const SAID: &str = "AddressSanitizer: heap-buffer-overflow";

/// Runs the programs.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    packages::install(&[packages::CXX], &|sentence| println!("{sentence}"))
        .map_err(|why| why.to_string())?;
    // The library of C++ is next to the sanitizer's: otherwise it is loaded with the programs, after the moment in which the
    // sanitizer looks for the functions that throw.
    let libraries = format!("{}:{}", library("libasan.so")?, library("libstdc++.so.6")?);
    let all = tests(root, &libraries, &[]).status();
    succeed("a program in C++ under AddressSanitizer", all)?;
    let planted = tests(root, &libraries, &["--ignored", "--exact", PLANTED]).output();
    let planted = planted.map_err(|error| format!("the tests cannot be started: {error}"))?;
    let said = String::from_utf8_lossy(&planted.stderr);
    if !planted.status.success() && said.contains(SAID) {
        return Ok(());
    }
    Err(format!("AddressSanitizer does not see the planted mistake. What was said:\n{said}"))
}

/// Tests of `pto-field` whose programs have the sanitizer's calls.
fn tests(root: &Path, libraries: &str, which: &[&str]) -> Command {
    let mut tests = cargo(root);
    // Of the workspace, and not of the package alone, so that nothing is compiled again with fewer features.
    tests.args(["test", "--workspace", "--test", "field", "--"]).args(which);
    // There kernels run on another machine, and compilers and QEMU would get the library too.
    tests.args(["--skip", "qemu::"]);
    // Not `LD_PRELOAD` for cargo: the compiler would get it too.
    tests.env(RUNNER, format!("env LD_PRELOAD={libraries}"));
    tests.env("ASAN_OPTIONS", SANITIZER_OPTIONS);
    tests.env("PTO_FIELD_CXXFLAGS", "-fsanitize=address -g");
    tests
}

/// Where g++ has a library.
fn library(name: &str) -> Result<String, String> {
    let asked = Command::new("g++").arg(format!("-print-file-name={name}")).output();
    let asked = asked.map_err(|error| format!("g++ cannot be started: {error}"))?;
    let path = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
    if Path::new(&path).is_absolute() {
        Ok(path)
    } else {
        Err(format!(
            "g++ has no {name}: install Debian's libasan8 (with g++-12), or the one of your g++"
        ))
    }
}
