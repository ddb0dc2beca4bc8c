//! Holds what a task costs: instructions on this processor, and bytes of memory, against `goldens/costs.txt`, with a
//! tolerance of 2 %. `cargo run --profile dist -p pto-bench --bin pto-count`; after a change that is meant, the same with
//! `PTO_BLESS=1`. Times are never asserted.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use pto_bench::family::Family;
use pto_bench::instructions::{self, CountMode};
use pto_bench::memory;
use pto_bench::stream::SubmitMethod;

const TOLERANCE: f64 = 0.02;
const MODES: [CountMode; 3] = [CountMode::Host, CountMode::Prepared, CountMode::Aicpu];
const GRAPHS: [&str; 5] = ["chain", "independent", "fork_join", "wavefront", "random"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match &*arguments {
        [] => hold(),
        [mode, graph, tasks, runs] => counted(mode, graph, tasks, runs),
        _ => Err("usage: pto-count, or for valgrind: pto-count MODE GRAPH TASKS RUNS".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("pto-count: {message}");
            ExitCode::FAILURE
        }
    }
}

/// What is counted.
fn counted(mode: &str, graph: &str, tasks: &str, runs: &str) -> Result<(), String> {
    if mode == instructions::STREAM {
        let way = SubmitMethod::by_name(graph).ok_or("no such way")?;
        let numbers = tasks.parse().ok().zip(runs.parse().ok());
        let (tasks, runs) = numbers.ok_or("tasks and runs are numbers")?;
        return instructions::run_stream(way, tasks, runs).map_err(|error| error.to_string());
    }
    let mode = CountMode::by_name(mode).ok_or("no such mode")?;
    let numbers = tasks.parse().ok().zip(runs.parse().ok());
    let (tasks, runs) = numbers.ok_or("tasks and runs are numbers")?;
    instructions::run(mode, graph.parse()?, tasks, runs).map_err(|error| error.to_string())
}

fn hold() -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/costs.txt");
    let now = format!("{}\n{}\n{}", count()?, count_stream()?, memory::table());
    print!("{now}");
    if std::env::var_os("PTO_BLESS").is_some() {
        return std::fs::write(&path, &now).map_err(|error| format!("{}: {error}", path.display()));
    }
    let then =
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let differences = differences(&then, &now);
    if differences.is_empty() {
        return Ok(());
    }
    Err(format!(
        "a task does not cost what it did (more than 2 %). If that is meant, or the compiler is another one: \
         PTO_BLESS=1 cargo run --profile dist -p pto-bench --bin pto-count\n{}",
        differences.join("\n")
    ))
}

fn count() -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut table =
        String::from("graph        host-built prepared aicpu-built   instructions/task, ours\n");
    for graph in GRAPHS {
        let family: Family = graph.parse()?;
        let mut counts = [0.0; 3];
        for (measured, mode) in counts.iter_mut().zip(MODES) {
            *measured = instructions::count(&program, &[], mode, family)?.own_per_task;
        }
        let [host, prepared, aicpu] = counts;
        // Writing to a String does not fail.
        let _ = writeln!(table, "{graph:12} {host:10.1} {prepared:8.1} {aicpu:11.1}");
    }
    Ok(table)
}

/// The streaming runtime: what the builder and its program take, and all of it.
fn count_stream() -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut table = String::from("streaming         build         all   instructions/task, ours\n");
    for way in SubmitMethod::ALL {
        let counted = instructions::count_stream(&program, way)?;
        let (build, all) = (counted.build_per_task(), counted.own_per_task);
        // Writing to a String does not fail.
        let _ = writeln!(table, "{:12} {build:10.1} {all:11.1}", way.name());
    }
    Ok(table)
}

/// The lines whose numbers moved by more than the tolerance.
fn differences(then: &str, now: &str) -> Vec<String> {
    let numbers = |line: &str| -> Vec<f64> {
        line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    let mut found = Vec::new();
    for (then, now) in then.lines().zip(now.lines()) {
        let (were, are) = (numbers(then), numbers(now));
        let moved = |(were, are): (&f64, &f64)| (are / were - 1.0).abs() > TOLERANCE;
        let named = then.split_whitespace().next() == now.split_whitespace().next();
        if !named || were.len() != are.len() || were.iter().zip(&are).any(moved) {
            found.push(format!("was: {then}\nnow: {now}"));
        }
    }
    if then.lines().count() != now.lines().count() {
        found.push("the table has another number of lines".to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::differences;

    #[test]
    fn what_moves_by_more_than_two_percent_is_found() {
        let golden = "graph a\nchain 100.0 50.0\n";
        assert!(differences(golden, "graph a\nchain 101.9 49.1\n").is_empty());
        assert_eq!(differences(golden, "graph a\nchain 102.1 50.0\n").len(), 1);
        assert_eq!(differences(golden, "graph a\nchain 100.0 48.9\n").len(), 1);
        assert_eq!(differences(golden, "graph a\ntree 100.0 50.0\n").len(), 1);
        assert_eq!(differences(golden, "graph a\n").len(), 1);
    }
}
