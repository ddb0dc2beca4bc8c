//! The programs in C++ of the field's interface under AddressSanitizer: an orchestration or a kernel that reads or writes beyond its memory is a failure.
//!
//! `g++` compiles the programs with the sanitizer, and the test that loads them runs with its library in front. It sees what the programs have on stacks and heaps, and not the
//! device's memory, which is one mapping.

use std::path::Path;
use std::process::Command;

use pto_toolchain::packages;

use crate::race::succeed;

/// The variable by which cargo starts tests through another program.
const RUNNER: &str = "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER";
/// Programs leak on purpose where they fail. Signals are caught by the library, which tells them.
const SANITIZER_OPTIONS: &str = "detect_leaks=0,handle_segv=0,handle_sigfpe=0,handle_abort=0";
/// It has a kernel that writes to no address: the sanitizer's own look at it is not what is tested.
const NOT_FOR_THE_SANITIZER: &str = "mistakes_are_named";

/// Runs the programs.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    packages::install(&[packages::CXX], &|sentence| println!("{sentence}"))
        .map_err(|why| why.to_string())?;
    let library = library()?;
    let mut tests = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Of the workspace, and not of the package alone, so that nothing is compiled again with fewer features.
    tests.args(["test", "--workspace", "--test", "field", "--"]);
    tests.args(["--skip", NOT_FOR_THE_SANITIZER]);
    // Not `LD_PRELOAD` for cargo: the compiler would get it too.
    tests.env(RUNNER, format!("env LD_PRELOAD={library}"));
    tests.env("ASAN_OPTIONS", SANITIZER_OPTIONS);
    tests.env("PTO_FIELD_CXXFLAGS", "-fsanitize=address -g").current_dir(root);
    succeed("a program in C++ under AddressSanitizer", tests.status())
}

/// Where g++ has the sanitizer's library.
fn library() -> Result<String, String> {
    let asked = Command::new("g++").arg("-print-file-name=libasan.so").output();
    let asked = asked.map_err(|error| format!("g++ cannot be started: {error}"))?;
    let path = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
    if Path::new(&path).is_absolute() {
        Ok(path)
    } else {
        Err("g++ has no libasan.so: install Debian's libasan8 (with g++-12), or the one of your g++".to_owned())
    }
}
