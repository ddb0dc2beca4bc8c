//! Graph files and checks as a user of the crate meets them: each finding by a file made for it, bad files by what is said of
//! them, races against brute force on random programs, ring sizes against runs with less, real sizes by what they cost.

mod bad_files;
mod chains;
mod columns;
mod findings;
mod races;
mod records;
mod rings;
mod round_trip;
mod shown;
mod sizes;

use pto_abi::BuildMode;
use pto_abi::arena::Capacities;
use pto_check::program::Program;
use pto_check::{Cores, Finding, Kind, Options, Report, Rings, check, file};

/// The rings of a run that asks for nothing else.
fn standard() -> Rings {
    with_window(4096)
}

/// Rings that are soon made.
fn small() -> Rings {
    Rings { map_entries: 256, ..with_window(64) }
}

fn with_window(tasks: u32) -> Rings {
    let capacities = Capacities { tasks, arg_words: 0, edges: 0, ..Capacities::default() };
    Rings::of(&capacities.streamed_whole(), BuildMode::CONCURRENT).unwrap()
}

fn checked(program: &Program, rings: Rings) -> Report {
    check(program, &Options { rings, cores: Cores::default(), kernels: None })
}

/// A program of the streaming runtime; the first line is put before its lines.
fn streaming(lines: &[&str]) -> Program {
    of("tensormap_and_ringbuffer", lines)
}

fn of(variant: &str, lines: &[&str]) -> Program {
    let text = format!(
        "{{\"format\": \"pto-graph\", \"version\": 1, \"variant\": \"{variant}\"}}\n{}\n",
        lines.join("\n")
    );
    file::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

/// The one finding of a program, which is of this kind, and says all of these words.
fn only(program: &Program, kind: Kind, words: &[&str]) -> Finding {
    let report = checked(program, standard());
    let all: Vec<_> = report.findings.iter().chain(&report.warnings).cloned().collect();
    let [finding] = all.as_slice() else { panic!("{all:#?}") };
    assert_eq!(finding.kind, kind, "{finding}");
    for word in words {
        assert!(finding.to_string().contains(word), "no {word:?} in: {finding}");
    }
    finding.clone()
}
