//! Every command that README and `docs/` show is run, and what it prints is compared with what the page shows.
//!
//! A page shows a command as `$ pto ..` in a fenced block; the lines up to the next command or the end of the block are what
//! it prints. A block that begins with "```LANGUAGE file=NAME" is a file, which is there for the commands after it. The commands of a tutorial
//! run in an empty folder, those of other programs as well; `pto-runtime` there is the workspace. A block of commands that cannot be run here begins with "```shell"; commands without a prompt, and those of other
//! programs, are in such blocks alone. The commands of a page run one after the other in a folder of their own ([`page`] reads them,
//! [`likeness`] compares). `PTO_BLESS=1` writes what is printed into the pages.

mod likeness;
mod page;

use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::files::Files;
use crate::pto::{answer, command};
use crate::{firmware, own_kernels};
use likeness::Likeness;
use page::{Block, Transcript};

/// Why a command of a page does not run as the page has it.
enum Instead {
    /// It runs with other arguments: the part to replace, and what stands in its position.
    Smaller(&'static str, &'static str),
    /// It is run by other tests, which have what it needs.
    Elsewhere(&'static str),
}

/// Commands that do not run as they stand: a part of the command, and what happens instead.
const INSTEAD: &[(&str, Instead)] = &[
    ("--seeds 100000", Instead::Smaller("--seeds 100000", "--seeds 40")),
    ("--seeds 10000", Instead::Smaller("--seeds 10000", "--seeds 40")),
    ("tasks=1000000", Instead::Smaller("tasks=1000000", "tasks=2000")),
    ("--device qemu", Instead::Elsewhere("tests/system/qemu.rs boots the image")),
    (
        "run training_loop",
        Instead::Smaller(
            "run training_loop",
            "run training_loop --param iterations=2 --param inner=64 --param outer=64 --param tile=32",
        ),
    ),
    ("bench groups", Instead::Elsewhere("tests/command/schema.rs scales a small one")),
    ("compat simpler ", Instead::Elsewhere("tests/command/migrate.rs has programs")),
    ("fw build", Instead::Elsewhere("tests/command/firmware.rs builds images")),
    ("fw flash", Instead::Elsewhere("tests/command/firmware.rs flashes images")),
    ("bench", Instead::Elsewhere("times on a shared machine say nothing")),
    (
        "compat cann",
        Instead::Elsewhere(
            "bindings/acl/tests/plugins.rs runs programs, and makes the calls of a record again",
        ),
    ),
    ("valgrind", Instead::Elsewhere("it is counted by hand")),
    ("--rounds 200 [--trace", Instead::Elsewhere("times on a shared machine say nothing")),
    ("--hosting threads", Instead::Smaller("tasks=2000", "tasks=200")),
    ("late.toml", Instead::Elsewhere("tests/command/soak.rs runs a profile that is too late")),
];

/// `bindings/python/tests/test_docs.py` runs them, because it has the package.
const TUTORIALS_IN_PYTHON: [&str; 2] = ["docs/tutorial/python.md", "docs/tutorial/model.md"];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("a workspace")
}

fn pages() -> Vec<PathBuf> {
    let root = workspace();
    let mut pages = vec![root.join("README.md")];
    collect(&root.join("docs"), &mut pages);
    pages.sort();
    pages
}

/// The pages below a folder.
fn collect(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the pages are there").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, pages);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            pages.push(path);
        }
    }
}

/// What to run for a command of a page; `None` where other tests run it. The commands of a tutorial run all.
fn arguments(shown: &str, is_tutorial: bool) -> Option<String> {
    let mut to_run = shown.to_owned();
    for (part, instead) in INSTEAD {
        if !shown.contains(part) {
            continue;
        }
        match instead {
            Instead::Elsewhere(_) if is_tutorial => {}
            Instead::Smaller(from, to) => to_run = to_run.replace(from, to),
            Instead::Elsewhere(why) => {
                println!("not run here: pto {shown} ({why})");
                return None;
            }
        }
    }
    Some(to_run)
}

/// A folder in which the commands of a page find the files that they name.
fn scene(page: &str) -> tempfile::TempDir {
    if page::is_tutorial(page) {
        return empty_scene(page);
    }
    let folder = tempfile::tempdir().expect("a folder");
    link(&workspace().join("examples"), &folder.path().join("examples"));
    fs::create_dir_all(folder.path().join("docs/pictures")).expect("a folder");
    let graph = workspace().join("examples/graphs/row_sums.jsonl");
    fs::copy(graph, folder.path().join("graph.jsonl")).expect("a graph file");
    own_kernels::example(&folder.path().join("kernels.so"));
    folder
}

/// A folder outside of the workspace with nothing but a link to the workspace, as a reader of a tutorial begins. Its name is the same in
/// each run, because cargo compiles the crates of the workspace again where their path is another one.
fn empty_scene(page: &str) -> tempfile::TempDir {
    let mut hash = std::hash::DefaultHasher::new();
    (workspace(), page).hash(&mut hash);
    let name = format!("pto-tutorial-{:016x}", hash.finish());
    // What a run that was ended has left.
    let _ = fs::remove_dir_all(std::env::temp_dir().join(&name));
    let folder = tempfile::Builder::new().prefix(&name).rand_bytes(0).tempdir().expect("a folder");
    link(&workspace(), &folder.path().join("pto-runtime"));
    folder
}

fn link(to: &Path, from: &Path) {
    std::os::unix::fs::symlink(to, from).expect("a link");
}

/// The files that a page about program files and graph files names: inputs, and results that are right.
fn results(folder: &Path) {
    let pto = |arguments: &str| {
        let (code, printed) = run(arguments, folder);
        assert_eq!(code, Some(0), "pto {arguments}\n{printed}");
    };
    let values = |count: u16| (0..count).map(|i| f32::from(i % 13) / 4.0).collect::<Vec<_>>();
    let files = Files::new();
    files.put("x", &[28, 96], &values(28 * 96));
    files.put("matrix", &[64, 64], &values(64 * 64));
    files.put("lengths", &[5, 1], &[13, 1, 24, 8, 17]);
    files.put("blocks", &[5], &[2, 1, 3, 1, 3]);
    for name in ["x", "matrix", "lengths", "blocks"] {
        fs::copy(files.path(name), folder.join(name).with_extension("npy")).expect("a file");
    }
    fs::copy(folder.join("examples/graphs/row_sums.jsonl"), folder.join("sums.jsonl"))
        .expect("a file");
    pto(
        "program build examples/workloads/softmax.workload --role M=temporary --role S=temporary -o after.ptop",
    );
    pto("program build examples/workloads/softmax.workload -o before.ptop");
    pto("program run after.ptop --param scale=0.5 --input X=x.npy --save results");
    pto("run sums.jsonl --input matrix=matrix.npy --output sums=sums.npy");
    for (from, to) in [("results/Y.npy", "golden.npy"), ("sums.npy", "golden_sums.npy")] {
        fs::rename(folder.join(from), folder.join(to)).expect("a file");
    }
}

/// Runs a command in `folder`; what it prints on both streams, or the JSON object, with the program called `pto` as the pages call it.
fn run(arguments: &str, folder: &Path) -> (Option<i32>, String) {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let answer = answer(command(&words).current_dir(folder));
    // What a program reads has a stream of its own; what people read is on the other stream.
    let errors = if words.contains(&"--json") { String::new() } else { answer.stderr };
    let printed = format!("{}{errors}", answer.stdout);
    (answer.code, printed.replace(env!("CARGO_BIN_EXE_pto"), "pto"))
}

/// Runs a command of a tutorial; what it prints on both streams.
fn run_in_shell(line: &str, folder: &Path) -> (Option<i32>, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_pto"));
    let mut path = program.parent().expect("a folder").as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{line} 2>&1")])
        .current_dir(folder)
        .env("PATH", path)
        .env_remove("COLUMNS");
    // What a tutorial in Rust builds is kept. Its crates are those that the workspace has fetched. Images go where those of the other tests are.
    let target = program.ancestors().nth(2).expect("the target folder").join("tutorials");
    if !line.starts_with("pto fw") {
        shell.env("CARGO_TARGET_DIR", target);
    }
    shell.env("CARGO_NET_OFFLINE", "true").env("PTO_HOME", folder.join("home"));
    shell.env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
    let output = shell.output().expect("a shell");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Writes the files that a page shows before a command.
fn write(transcript: &Transcript, folder: &Path) {
    for (name, text) in &transcript.files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
}

/// Compares one command of a page, or writes what it printed into `blessed`.
fn check(transcript: &Transcript, folder: &Path, found: &mut Vec<String>, blessed: &mut Block) {
    write(transcript, folder);
    let is_tutorial = page::is_tutorial(&transcript.position);
    let Some(to_run) = arguments(&transcript.arguments, is_tutorial) else { return };
    let (code, printed) =
        if is_tutorial { run_in_shell(&to_run, folder) } else { run(&to_run, folder) };
    // Findings and faults that a page shows are wanted; bad requests never are.
    if !matches!(code, Some(0 | 1 | 3)) {
        found.push(format!("{}: exit code {code:?}\n{printed}", transcript.position));
        return;
    }
    if to_run != transcript.arguments || transcript.printed.is_empty() {
        return;
    }
    let shown = transcript.arguments.strip_prefix("pto ").unwrap_or(&transcript.arguments);
    let likeness = Likeness::of(shown);
    if let Err(difference) = likeness.compare(&transcript.printed, &printed) {
        found.push(format!("{}: {}\n{difference}", transcript.position, transcript.arguments));
        blessed.replace(transcript, &printed);
    }
}

#[test]
fn every_command_of_the_pages_runs_and_prints_what_they_show() {
    let (mut found, mut commands) = (Vec::new(), 0);
    for path in pages() {
        let text = fs::read_to_string(&path).expect("a page is text");
        let name = path.strip_prefix(workspace()).expect("below the workspace").to_string_lossy();
        found.extend(page::forgotten(&name, &text).into_iter().map(|line| {
            format!("{line}\n  is not run: begin it with `$ pto`, or the block with \"```shell\"")
        }));
        if TUTORIALS_IN_PYTHON.iter().any(|page| name == *page) {
            continue;
        }
        // A tutorial builds an image whose file another test writes as well.
        let _turn = page::is_tutorial(&name).then(firmware::turn_with_own_kernels);
        let folder = scene(&name);
        if text.contains("=golden") || text.contains("=lengths.npy") {
            results(folder.path());
        }
        let mut blessed = Block::of(&text);
        for transcript in page::transcripts(&name, &text) {
            commands += 1;
            check(&transcript, folder.path(), &mut found, &mut blessed);
        }
        if std::env::var_os("PTO_BLESS").is_some() && blessed.text() != text {
            fs::write(&path, blessed.text()).expect("the page is writable");
        }
    }
    assert!(commands > 20, "only {commands} commands were found in the pages");
    assert!(
        found.is_empty(),
        "{} commands print something else than the pages show; PTO_BLESS=1 writes what they print:\n\n{}",
        found.len(),
        found.join("\n\n")
    );
}
