//! The public project PTO-WSP, unmodified, from a folder that the user names, against our package `pto_wsp`: its examples with
//! their cycles, its Python tests, and a table of both.
//!
//! The folder's tests look for a package next to them. So tests and examples are copied to the target folder, without it.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::{
    acceptance_cann, acceptance_cupy, acceptance_dates, acceptance_field, acceptance_hccl,
    acceptance_headers, acceptance_onnx, python,
};

/// What each example prints as its cycles, by the name that it prints.
const CYCLES: [(&str, &str, u64); 14] = [
    ("attention", "attention", 1680),
    ("bgemm", "bgemm", 275_968),
    ("csp_pipeline", "csp_pipeline", 114_688),
    ("deepseek_lightning_indexer", "deepseek_lightning_indexer:pto", 800),
    ("deepseek_lightning_indexer", "deepseek_lightning_indexer:ptoisa", 1_319_680),
    ("deepseek_lightning_indexer", "deepseek_lightning_indexer:cppfile", 1_319_680),
    ("deepseek_v3", "deepseek_v3", 1408),
    ("e2e_rmsnorm", "e2e_rmsnorm", 1072),
    ("flashinfer_decode", "flashinfer_decode", 4514),
    ("llama", "llama", 4752),
    ("softmax", "softmax", 39_848),
    ("tensor_data", "tensor_data:add", 8192),
    ("tensor_data", "tensor_data:square", 6144),
    ("validated_matmul", "validated_matmul", 4864),
];

/// How many of its tests have to pass: 203 pass there.
const TESTS: usize = 190;

/// Runs `acceptance --pto-wsp FOLDER`, `acceptance --pto-wsp FOLDER --seeds COUNT`, `acceptance --cann FOLDER`,
/// `acceptance --cann-headers FOLDER`, `acceptance --onnx [--only PART]`, `acceptance --cupy [MINUTES]`, `acceptance --hccl [RANKS]`, `acceptance --zeco FOLDER --pto-isa FOLDER`, or
/// `acceptance --simpler FOLDER --pto-isa FOLDER [--dates COUNT]`.
pub(crate) fn run(root: &Path, target: &Path, request: &[&str]) -> Result<(), String> {
    let folder = match *request {
        ["--pto-wsp", folder] => folder,
        ["--pto-wsp", folder, "--seeds", count] => return seeds(root, target, folder, count),
        ["--simpler", clone, "--pto-isa", headers, "--dates", count, ref more @ ..] => {
            return acceptance_dates::run(root, target, (clone, headers), count, more);
        }
        ["--simpler", programs, "--pto-isa", headers, ref more @ ..] => {
            return acceptance_field::run(root, target, (programs, headers), more);
        }
        ["--zeco", programs, "--pto-isa", headers, ref more @ ..] => {
            return acceptance_field::run_zeco(root, target, programs, headers, more);
        }
        ["--cupy", ref more @ ..] => return acceptance_cupy::run(root, target, more),
        ["--hccl", ref more @ ..] => return acceptance_hccl::run(root, target, more),
        ["--onnx"] => return acceptance_onnx::run(root, target, None),
        ["--onnx", "--only", part] => return acceptance_onnx::run(root, target, Some(part)),
        ["--cann", folder] => return acceptance_cann::run(root, target, Path::new(folder)),
        ["--cann-headers", folder] => return acceptance_headers::run(target, Path::new(folder)),
        _ => {
            return Err("name a project and its folder: `cargo xtask acceptance --pto-wsp DIR [--seeds 1000]`, `--cann DIR`, `--cann-headers DIR`, `--onnx [--only PART]`, `--cupy [MINUTES]`, `--hccl [RANKS]`, `--zeco DIR --pto-isa DIR`, or `--simpler DIR --pto-isa DIR [--dates 20] [--only WORD]`".into());
        }
    };
    let copy = copied(Path::new(folder), target)?;
    let python = python::install(root, target)?;
    let (examples, are_exact) = examples(&python, &copy)?;
    println!("\n{examples}");
    let tests = Tests::run(&python, &copy)?;
    println!("{tests}");
    match (are_exact, tests.passed >= TESTS) {
        (true, true) => Ok(()),
        (false, _) => Err("an example does not pass with exact cycles".to_owned()),
        (true, false) => Err(format!("{} tests pass, and {TESTS} have to", tests.passed)),
    }
}

/// Runs every example on the virtual machine with so many seeds, and compares the bits with program order.
fn seeds(root: &Path, target: &Path, folder: &str, count: &str) -> Result<(), String> {
    let copy = copied(Path::new(folder), target)?;
    let python = python::install(root, target)?;
    let scripts = names().into_iter().map(|name| format!("examples/{name}/{name}_example.py"));
    with_seeds(&python, &copy, scripts, count)
}

/// Runs our own examples in Python so.
pub(crate) fn own_seeds(root: &Path, target: &Path, request: &[&str]) -> Result<(), String> {
    let count = match *request {
        [] => "1000",
        [count] if count.parse::<u32>().is_ok_and(|count| count > 0) => count,
        _ => return Err("say how many seeds: `cargo xtask seeds 1000`".to_owned()),
    };
    let folder = root.join("examples/python");
    let unread = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut scripts = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(unread)? {
        let name = entry.map_err(unread)?.file_name().to_string_lossy().into_owned();
        // What the examples share runs nothing.
        if name.ends_with(".py") && name != "outcome.py" {
            scripts.push(name);
        }
    }
    scripts.sort();
    let python = python::install(root, target)?;
    with_seeds(&python, &folder, scripts.into_iter(), count)
}

fn with_seeds(
    python: &Path,
    folder: &Path,
    scripts: impl Iterator<Item = String>,
    count: &str,
) -> Result<(), String> {
    let mut failed = Vec::new();
    for script in scripts {
        let mut command = Command::new(python);
        command.args(["-m", "pto_wsp.seeds", &script, "--seeds", count]).current_dir(folder);
        // The folder may be the one of the sources.
        let output = command.env("PYTHONDONTWRITEBYTECODE", "1").output();
        let output = output.map_err(|error| format!("{script} cannot be started: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        println!("{}", text.lines().last().unwrap_or("it said nothing"));
        if !output.status.success() {
            println!("{}", String::from_utf8_lossy(&output.stderr).trim_end());
            failed.push(script);
        }
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("not right with every seed: {}", failed.join(", ")))
    }
}

/// The folders of the examples.
fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = CYCLES.iter().map(|(folder, ..)| *folder).collect();
    names.dedup();
    names
}

/// The folder's examples and tests, elsewhere.
fn copied(folder: &Path, target: &Path) -> Result<std::path::PathBuf, String> {
    let copy = target.join("acceptance");
    let failed = |error: std::io::Error| format!("{} cannot be copied: {error}", folder.display());
    if copy.exists() {
        std::fs::remove_dir_all(&copy).map_err(failed)?;
    }
    for part in ["examples", "tests"] {
        copy_all(&folder.join(part), &copy.join(part)).map_err(failed)?;
    }
    Ok(copy)
}

fn copy_all(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_all(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Runs all examples; their table, and whether all pass with exact cycles.
fn examples(python: &Path, copy: &Path) -> Result<(String, bool), String> {
    let mut table =
        format!("{:<38} {:<6} {:>10} {:>10}\n", "example", "result", "cycles", "expected");
    let mut are_exact = true;
    for name in names() {
        let script = format!("examples/{name}/{name}_example.py");
        let output = Command::new(python).arg(&script).current_dir(copy).output();
        let output = output.map_err(|error| format!("{script} cannot be started: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        for (_, label, expected) in CYCLES.iter().filter(|(folder, ..)| *folder == name) {
            let found = cycles(&text, label);
            let is_right = output.status.success() && found == Some(*expected);
            let result = if is_right { "pass" } else { "FAIL" };
            let found = found.map_or("none".to_owned(), |found| found.to_string());
            // Writing to a text does not fail.
            let _ = writeln!(table, "{label:<38} {result:<6} {found:>10} {expected:>10}");
            are_exact &= is_right;
        }
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            let _ = writeln!(table, "{}\n{}", text.trim_end(), error.trim_end());
        }
    }
    Ok((table, are_exact))
}

/// The cycles that an example prints under a name.
fn cycles(text: &str, label: &str) -> Option<u64> {
    let prefix = format!("{label}: total_cycles=");
    text.lines().find_map(|line| line.strip_prefix(&prefix)?.trim().parse().ok())
}

/// What became of the tests.
struct Tests {
    passed: usize,
    /// A line for each test that did not pass.
    others: Vec<String>,
}

impl Tests {
    fn run(python: &Path, copy: &Path) -> Result<Self, String> {
        let mut command = Command::new(python);
        command.args(["-m", "pytest", "-q", "-rA", "--tb=line", "-p", "no:cacheprovider", "tests"]);
        // Wide enough for reasons, which pytest cuts at the width of the terminal.
        let output = command.env("COLUMNS", "400").current_dir(copy).output();
        let output = output.map_err(|error| format!("pytest cannot be started: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let is = |line: &&str, words: &[&str]| words.iter().any(|word| line.starts_with(word));
        let passed = text.lines().filter(|line| is(line, &["PASSED "])).count();
        let others = text.lines().filter(|line| is(line, &["FAILED ", "ERROR ", "SKIPPED "]));
        let others: Vec<String> = others.map(str::to_owned).collect();
        if passed == 0 && others.is_empty() {
            return Err(format!("pytest found no tests\n{text}"));
        }
        Ok(Self { passed, others })
    }
}

impl std::fmt::Display for Tests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{} tests passed; of the others, with reasons:", self.passed)?;
        self.others.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}
