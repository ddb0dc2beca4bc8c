//! The loop with one access left out, or with two neighbouring statements exchanged: each such loop is told from the right one.

use super::library::{Library, WORKER};
use super::script::{in_cpp, in_rust, scripts};

/// The statements that touch a register, a line or the cache, by their lines in the source.
fn accesses() -> Vec<usize> {
    const CALLS: [&str; 7] = [
        "fresh(",
        "write_back(",
        "store(",
        "machine::status(",
        "machine::drop_cache(",
        "machine::pipes_idle(",
        "machine::flags_base(",
    ];
    let is_access = |line: &str| {
        let line = line.trim_start();
        CALLS.iter().any(|call| line.starts_with(call))
    };
    let lines = WORKER.lines().enumerate().filter(|(_, line)| is_access(line));
    lines.map(|(at, _)| at).collect()
}

/// Exchanges of neighbours that change nothing: two stores into one line, which is written back behind them; and saying that a dispatch has begun before or
/// behind dropping the cache, which comes before the first load of its arguments either way.
fn is_the_same(first: &str, second: &str) -> bool {
    let begins = |line: &str, call: &str| line.trim_start().starts_with(call);
    let both = |call: &str| begins(first, call) && begins(second, call);
    both("store(")
        || begins(first, "machine::status(dispatch.id)") && begins(second, "machine::drop_cache(")
}

/// Whether some script tells the source from the right one.
fn is_found(source: &str) -> bool {
    [true, false].into_iter().any(|is_cube| {
        let Ok(library) = Library::build(source, is_cube) else { return true };
        scripts().iter().any(|script| {
            in_cpp(script, is_cube, &library).map_or(true, |seen| seen != in_rust(script, is_cube))
        })
    })
}

fn assert_all_found(mutants: Vec<(String, String)>, fewest: usize) {
    assert!(mutants.len() >= fewest, "the source was not understood: {} mutants", mutants.len());
    let kept = mutants.iter().filter(|(_, source)| !is_found(source));
    let kept: Vec<_> = kept.map(|(name, _)| name.clone()).collect();
    assert!(kept.is_empty(), "not told from the right loop:\n{}", kept.join("\n"));
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

#[test]
fn a_loop_with_two_accesses_exchanged_is_found() {
    let lines: Vec<&str> = WORKER.lines().collect();
    let accesses = accesses();
    let pairs = accesses.windows(2).filter(|pair| pair[0] + 1 == pair[1]);
    let pairs = pairs.filter(|pair| !is_the_same(lines[pair[0]], lines[pair[1]]));
    let exchanged = pairs.map(|pair| {
        let mut lines = lines.clone();
        lines.swap(pair[0], pair[1]);
        (format!("lines {} and {}", pair[0] + 1, pair[1] + 1), lines.join("\n"))
    });
    assert_all_found(exchanged.collect(), 2);
}
