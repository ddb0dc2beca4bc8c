//! Tables of numbers that are kept in `goldens`, compared with a tolerance, and shown in `docs/measurements/images.md`.
//!
//! The first line of a table names its columns, the words before the first number of a line name the line. What a
//! number depends on besides our code, the compiler, is in the last line.

use std::path::{Path, PathBuf};
use std::process::Command;

/// How far a number may be from the golden one.
pub(crate) const TOLERANCE: f64 = 0.02;
const PAGE: &str = "docs/measurements/images.md";

/// Compares a table with the golden one of this name, and the golden one with the documentation; with `PTO_BLESS`
/// in the environment it renews both.
///
/// # Panics
/// Where a number moved: it says which, and what to do.
pub(crate) fn check(name: &str, table: &str) {
    let table = format!("{table}# {}\n", compiler());
    println!("{table}");
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/emulated/goldens/{name}.txt"));
    let page = crate::built::workspace().join(PAGE);
    let text = std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{PAGE}: {error}"));
    if std::env::var_os("PTO_BLESS").is_some() {
        std::fs::write(&path, &table).expect("writable");
        std::fs::write(&page, shown(&text, name, &table)).expect("writable");
        return;
    }
    let golden = read(&path);
    let moved = moved(&golden, &table);
    assert!(
        moved.is_empty(),
        "{}:\n{}\nmeant to be so: PTO_BLESS=1 cargo test -p pto-images --test emulated",
        path.display(),
        moved.join("\n")
    );
    assert!(
        text == shown(&text, name, &golden),
        "{PAGE} shows other numbers than {}: PTO_BLESS=1 cargo test -p pto-images --test emulated",
        path.display()
    );
}

fn read(path: &PathBuf) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn compiler() -> String {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let output = Command::new(rustc).arg("--version").output().expect("there is a compiler");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A page with this table in the block of this name.
///
/// # Panics
/// When the page has no such block.
fn shown(page: &str, name: &str, table: &str) -> String {
    let begin = format!("<!-- golden {name} -->\n");
    let (before, rest) = page.split_once(&begin).expect("the page has a block for the table");
    let (_, after) = rest.split_once("<!-- end -->").expect("the block ends");
    format!("{before}{begin}```text\n{table}```\n<!-- end -->{after}")
}

/// What moved from one table to the other, in sentences.
fn moved(golden: &str, now: &str) -> Vec<String> {
    let lines = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    };
    let compiler_of = |text: &str| text.lines().last().unwrap_or_default().to_owned();
    let (then, here) = (lines(golden), lines(now));
    let columns: Vec<_> =
        here.first().map(|line| line.split_whitespace().collect()).unwrap_or_default();
    let mut moved = Vec::new();
    if then.len() != here.len() {
        moved.push(format!("{} lines, not {}", here.len(), then.len()));
    }
    for (then, here) in then.iter().zip(&here).skip(1) {
        let (then_name, then) = numbers(then);
        let (name, here) = numbers(here);
        if (&name, here.len()) != (&then_name, then.len()) {
            moved.push(format!("the line of {then_name} is now that of {name}"));
            continue;
        }
        let first = columns.len() - here.len();
        for (index, (then, here)) in then.iter().zip(&here).enumerate() {
            if (here - then).abs() > TOLERANCE * then.abs() {
                let percent = 100.0 * (here / then - 1.0);
                let column = columns.get(first + index).copied().unwrap_or_default();
                moved.push(format!("{name}: {column} was {then}, is {here} ({percent:+.1} %)"));
            }
        }
    }
    if !moved.is_empty() && compiler_of(golden) != compiler_of(now) {
        moved.push(format!("(goldens by {}, this by {})", compiler_of(golden), compiler_of(now)));
    }
    moved
}

/// The name of a line, and its numbers.
fn numbers(line: &str) -> (String, Vec<f64>) {
    let is_number = |word: &&str| word.parse::<f64>().is_ok();
    let words: Vec<_> = line.split_whitespace().collect();
    let names = words.iter().take_while(|word| !is_number(word)).copied().collect::<Vec<_>>();
    let numbers = words.iter().filter_map(|word| word.parse().ok()).collect();
    (names.join(" "), numbers)
}

#[cfg(test)]
mod tests {
    use super::{moved, shown};

    const TABLE: &str = "graph fanout builder scheduler\nchain locked 100.0 200.0\n# rustc 1\n";

    #[test]
    fn a_number_that_moves_is_named() {
        assert!(moved(TABLE, &TABLE.replace("200.0", "203.9")).is_empty());
        let found = moved(TABLE, &TABLE.replace("200.0", "204.1"));
        assert_eq!(found, ["chain locked: scheduler was 200, is 204.1 (+2.0 %)"]);
        let found = moved(TABLE, &TABLE.replace("100.0", "97.0").replace("rustc 1", "rustc 2"));
        assert_eq!(found[0], "chain locked: builder was 100, is 97 (-3.0 %)");
        assert_eq!(found[1], "(goldens by # rustc 1, this by # rustc 2)");
    }

    #[test]
    fn lines_that_come_and_go_are_named() {
        assert_eq!(moved(TABLE, "graph fanout builder scheduler\n# rustc 1\n").len(), 1);
        let found = moved(TABLE, &TABLE.replace("chain", "ring"));
        assert_eq!(found, ["the line of chain locked is now that of ring locked"]);
        assert!(!moved("a b\nx 0\n", "a b\nx 1\n").is_empty(), "from zero");
    }

    #[test]
    fn a_table_replaces_what_stood_in_its_block() {
        let page = "a\n<!-- golden x -->\nold\n<!-- end -->\nb\n<!-- golden y -->\n<!-- end -->\n";
        let expected = "a\n<!-- golden x -->\n```text\nt 1\n```\n<!-- end -->\nb\n<!-- golden y -->\n<!-- end -->\n";
        assert_eq!(shown(page, "x", "t 1\n"), expected);
        assert_eq!(shown(expected, "x", "t 1\n"), expected);
    }
}
