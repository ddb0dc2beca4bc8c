//! Every command that README and `docs/` show is run, and what it prints is compared with what the page shows.
//!
//! A page shows a command as `$ pto ..` in a fenced block; the lines up to the next command or the end of the block are what
//! it prints. A block of commands that cannot be run here begins with "```shell"; commands without a prompt, and those of other
//! programs, are in such blocks alone. The commands of a page run one after the other in a folder of their own ([`page`] reads them,
//! [`likeness`] compares). `PTO_BLESS=1` writes what is printed into the pages.

mod likeness;
mod page;

use std::fs;
use std::path::{Path, PathBuf};

use crate::files::Files;
use crate::own_kernels;
use crate::pto::{answer, command};
use likeness::Likeness;
use page::{Block, Transcript};

/// Why a command of a page does not run as the page has it.
enum Instead {
    /// It runs with other arguments: the part to replace, and its replacement.
    Smaller(&'static str, &'static str),
    /// It is run by other tests, which have what it needs.
    Elsewhere(&'static str),
}

/// Commands that do not run as they stand: a part of the command, and what happens instead.
const INSTEAD: &[(&str, Instead)] = &[
    ("--seeds 100000", Instead::Smaller("--seeds 100000", "--seeds 40")),
    ("--seeds 10000", Instead::Smaller("--seeds 10000", "--seeds 40")),
    ("tasks=1000000", Instead::Smaller("tasks=1000000", "tasks=2000")),
    ("--device virt", Instead::Elsewhere("tests/system/virt.rs boots the image")),
    (
        "run training_loop",
        Instead::Smaller(
            "run training_loop",
            "run training_loop --param iterations=2 --param inner=64 --param outer=64 --param tile=32",
        ),
    ),
    ("comm scaling", Instead::Elsewhere("tests/command/schema.rs scales a small one")),
    ("migrate ", Instead::Elsewhere("tests/command/migrate.rs has programs")),
    ("fw build", Instead::Elsewhere("tests/command/firmware.rs builds images")),
    ("fw flash", Instead::Elsewhere("tests/command/firmware.rs flashes images")),
    ("bench", Instead::Elsewhere("times on a shared machine say nothing")),
    (
        "acl replay",
        Instead::Elsewhere("bindings/acl/tests/plugins.rs makes the calls of a record again"),
    ),
    ("valgrind", Instead::Elsewhere("it is counted by hand")),
    ("--rounds 200 [--trace", Instead::Elsewhere("times on a shared machine say nothing")),
    ("--hosting threads", Instead::Smaller("tasks=2000", "tasks=200")),
    ("late.toml", Instead::Elsewhere("tests/command/soak.rs runs a profile that is too late")),
];

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

/// What to run for a command of a page; `None` where other tests run it.
fn arguments(shown: &str) -> Option<String> {
    let mut to_run = shown.to_owned();
    for (part, instead) in INSTEAD {
        if !shown.contains(part) {
            continue;
        }
        match instead {
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
fn scene() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let link = |name: &str| {
        std::os::unix::fs::symlink(workspace().join(name), folder.path().join(name))
            .expect("a link");
    };
    link("examples");
    fs::create_dir_all(folder.path().join("docs/pictures")).expect("a folder");
    let graph = workspace().join("examples/graphs/row_sums.jsonl");
    fs::copy(graph, folder.path().join("graph.jsonl")).expect("a graph file");
    own_kernels::example(&folder.path().join("kernels.so"));
    folder
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

/// Compares one command of a page, or writes what it printed into `blessed`.
fn check(transcript: &Transcript, folder: &Path, found: &mut Vec<String>, blessed: &mut Block) {
    let Some(to_run) = arguments(&transcript.arguments) else { return };
    let (code, printed) = run(&to_run, folder);
    // Findings and faults that a page shows are wanted; bad requests never are.
    if !matches!(code, Some(0 | 1 | 3)) {
        found.push(format!("{}: exit code {code:?}\n{printed}", transcript.position));
        return;
    }
    if to_run != transcript.arguments || transcript.printed.is_empty() {
        return;
    }
    let likeness = Likeness::of(&transcript.arguments);
    if let Err(difference) = likeness.compare(&transcript.printed, &printed) {
        found.push(format!("{}: pto {}\n{difference}", transcript.position, transcript.arguments));
        blessed.replace(transcript, &printed);
    }
}

#[test]
fn every_command_of_the_pages_runs_and_prints_what_they_show() {
    let (mut found, mut commands) = (Vec::new(), 0);
    for path in pages() {
        let text = fs::read_to_string(&path).expect("a page is text");
        let name = path.strip_prefix(workspace()).expect("below the workspace").to_owned();
        found.extend(page::forgotten(&name.to_string_lossy(), &text).into_iter().map(|line| {
            format!("{line}\n  is not run: begin it with `$ pto`, or the block with \"```shell\"")
        }));
        let folder = scene();
        if text.contains("=golden") || text.contains("=lengths.npy") {
            results(folder.path());
        }
        let mut blessed = Block::of(&text);
        for transcript in page::transcripts(&name.to_string_lossy(), &text) {
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
