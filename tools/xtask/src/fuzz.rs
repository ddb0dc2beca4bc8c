//! The long search for input that breaks something: libFuzzer with AddressSanitizer, over one target of `tools/fuzz`.
//!
//! The compiler in use gets the environment variable to accept the options of a nightly one, so that no other one is needed. What libFuzzer finds
//! worth keeping goes to `target/fuzz/found`, and what breaks the target to `target/fuzz/broken`.
//!
//! `calls` is no such target: it makes calls of a public interface by seeds, in processes that are watched, and needs no special build.

use std::path::Path;
use std::process::Command;

use crate::cargo::cargo;
use crate::race::succeed;

const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// What libFuzzer needs compiled in: counters at every edge of the code, and what comparisons compare.
const FLAGS: &str = "-Zsanitizer=address -Cunsafe-allow-abi-mismatch=sanitizer -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Ccodegen-units=1 -Cdebug-assertions=on -Coverflow-checks=on --cfg fuzzing";

/// How long, unless the request says.
const SECONDS: &str = "60";

/// `cargo xtask fuzz TARGET [--seconds N]`, or `cargo xtask fuzz calls rust|c|cpp [--seed N] [--calls N]`.
pub(crate) fn run(root: &Path, target: &Path, request: &[&str]) -> Result<(), String> {
    if let ["calls", request @ ..] = request {
        return calls(root, request);
    }
    let (name, seconds) = match *request {
        [name] => (name, SECONDS),
        [name, "--seconds", seconds] if seconds.parse::<u64>().is_ok_and(|n| n > 0) => {
            (name, seconds)
        }
        _ => return Err(usage(root, "the request is not TARGET [--seconds N]")),
    };
    let corpus = root.join("tools/fuzz/corpus").join(name);
    if name.starts_with('.') || !corpus.is_dir() {
        return Err(usage(root, &format!("there is no target \"{name}\"")));
    }
    let folder = target.join("fuzz");
    let (found, broken) = (folder.join("found").join(name), folder.join("broken"));
    for folder in [&found, &broken] {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    succeed("cargo", build(root, &folder).status())?;
    let mut search = Command::new(folder.join(TRIPLE).join("release/pto-fuzz-long"));
    search.arg(&found).arg(&corpus).env("PTO_FUZZ_TARGET", name);
    search.arg(format!("-max_total_time={seconds}")).args(["-timeout=20", "-rss_limit_mb=4096"]);
    search.arg(format!("-artifact_prefix={}/{name}-", broken.display()));
    // Devices map more memory than they touch, and what they leave to the process stays by design.
    search.env("ASAN_OPTIONS", "detect_leaks=0");
    succeed(&format!("{name} (its input is in {})", broken.display()), search.status())
}

/// With the profile of the tests, which keeps the checks and builds nothing anew.
fn calls(root: &Path, request: &[&str]) -> Result<(), String> {
    let mut command = cargo(root);
    command.args([
        "run",
        "--quiet",
        "--profile",
        "test",
        "-p",
        "pto-fuzz",
        "--bin",
        "pto-fuzz-calls",
        "--",
    ]);
    succeed("the calls", command.args(request).status())
}

fn usage(root: &Path, what: &str) -> String {
    let folders = std::fs::read_dir(root.join("tools/fuzz/corpus")).into_iter().flatten().flatten();
    let mut names: Vec<_> =
        folders.map(|folder| folder.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    format!(
        "{what}. Targets: {}, calls. Example: cargo xtask fuzz npy --seconds 600",
        names.join(", ")
    )
}

fn build(root: &Path, target: &Path) -> Command {
    let mut command = cargo(root);
    command.args([
        "build",
        "--release",
        "-p",
        "pto-fuzz",
        "--features",
        "libfuzzer",
        "--bin",
        "pto-fuzz-long",
    ]);
    command.args(["--target", TRIPLE, "--target-dir"]).arg(target);
    command
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", FLAGS)
        .env("CARGO_PROFILE_RELEASE_LTO", "off");
    command
}
