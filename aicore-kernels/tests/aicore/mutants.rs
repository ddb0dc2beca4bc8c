//! The loop with one access left out, or with one moved behind another: the tests find each such loop.

use super::library::{Library, WORKER};
use super::script::{in_cpp, in_rust, scripts};

/// What touches a register, a line, the cache or the pipes.
const CALLS: [&str; 8] = [
    "fresh(",
    "write_back(",
    "store(",
    "machine::status(",
    "machine::drop_cache(",
    "machine::pipes_idle(",
    "machine::flags_base(",
    "machine::call(",
];

/// The statements that are such calls, by their lines in the source. No call is part of another statement.
fn accesses() -> Vec<usize> {
    let is_call = |line: &str| {
        let line = line.trim_start();
        CALLS.iter().any(|call| line.starts_with(call))
    };
    let code = WORKER.lines().filter(|line| !line.trim_start().starts_with(['/', '*']));
    let calls: usize = code.map(calls_in).sum();
    let lines = WORKER.lines().enumerate().filter(|(_, line)| is_call(line));
    let accesses: Vec<usize> = lines.map(|(at, _)| at).collect();
    assert_eq!(accesses.len(), calls, "a call is not a statement of its own");
    accesses
}

/// How many calls a line has.
fn calls_in(line: &str) -> usize {
    CALLS.iter().map(|call| line.matches(call).count()).sum()
}

/// Whether the order of the two cannot be seen: stores are seen when their line is written back; and a dispatch has begun before or behind dropping the
/// cache, which comes before the first load of its arguments either way.
fn commute(first: &str, second: &str) -> bool {
    let begins = |line: &str, call: &str| line.trim_start().starts_with(call);
    let one_is = |call: &str, other: &str| {
        begins(first, call) && begins(second, other) || begins(second, call) && begins(first, other)
    };
    one_is("store(", "store(")
        || one_is("store(", "machine::status(")
        || one_is("machine::status(dispatch.id)", "machine::drop_cache(")
}

/// Whether some script tells the source from the right one.
fn is_found(source: &str) -> bool {
    [true, false].into_iter().any(|is_cube| {
        let library = Library::build(source, is_cube).unwrap_or_else(|why| panic!("{why}"));
        scripts().iter().any(|script| {
            in_cpp(script, is_cube, &library).map_or(true, |seen| seen != in_rust(script, is_cube))
        })
    })
}

fn assert_all_found(mutants: Vec<(String, String)>, fewest: usize) {
    assert!(mutants.len() >= fewest, "the source was not understood: {} mutants", mutants.len());
    let kept = mutants.iter().filter(|(_, source)| !is_found(source));
    let kept: Vec<_> = kept.map(|(name, _)| name.clone()).collect();
    assert!(kept.is_empty(), "not found:\n{}", kept.join("\n"));
    println!("{} loops, each found", mutants.len());
}

fn without(at: usize) -> String {
    let lines = WORKER.lines().enumerate().filter(|(line, _)| *line != at);
    lines.map(|(_, line)| format!("{line}\n")).collect()
}

#[test]
fn a_loop_without_one_of_its_accesses_is_found() {
    let name =
        |at: &usize| WORKER.lines().nth(*at).expect("a line of the source").trim().to_owned();
    let mutants =
        accesses().into_iter().map(|at| (format!("line {}: {}", at + 1, name(&at)), without(at)));
    assert_all_found(mutants.collect(), 15);
}

#[test]
fn a_loop_that_does_not_wait_for_the_window_is_found() {
    let check = "machine::doorbell() == 0";
    assert!(WORKER.contains(check), "the source was not understood");
    let mutant = WORKER.replace(check, "false");
    assert_all_found(vec![("without the look at the window".to_owned(), mutant)], 1);
}

/// Each access behind the first one of its function after which it is seen.
#[test]
fn a_loop_with_an_access_in_another_place_is_found() {
    let lines: Vec<&str> = WORKER.lines().collect();
    let accesses = accesses();
    let ends = |from: usize, to: usize| lines[from..to].contains(&"}");
    let moved = accesses.iter().filter_map(|from| {
        let mut later = accesses.iter().filter(|to| *to > from && !ends(*from, **to));
        let to = *later.find(|to| !commute(lines[*from], lines[**to]))?;
        let mut lines = lines.clone();
        let line = lines.remove(*from);
        lines.insert(to, line);
        Some((format!("line {} behind line {}", from + 1, to + 1), lines.join("\n")))
    });
    assert_all_found(moved.collect(), 10);
}
