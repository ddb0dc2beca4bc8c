//! How far a reason reaches in a Python file: lines in the body of one test keep that test from running, and not the others.

use std::collections::BTreeSet;

/// A function of a file: its name and its lines.
struct SourceFunction<'t> {
    name: &'t str,
    lines: std::ops::Range<usize>,
    body: Vec<&'t str>,
}

/// Whether some tests of a file run although these lines (from 1 on) keep others from it.
pub(super) fn spares_some(text: &str, lines: &[usize]) -> bool {
    let functions = functions(text);
    let Some(mut stopped) = functions_of(&functions, lines) else { return false };
    loop {
        let calls = |function: &&SourceFunction<'_>| {
            let names = || stopped.iter().any(|name| function.calls(name));
            !stopped.contains(function.name) && names()
        };
        let more: Vec<&str> = functions.iter().filter(calls).map(|one| one.name).collect();
        if more.is_empty() {
            break;
        }
        stopped.extend(more);
    }
    let is_test = |name: &str| name.starts_with("test_");
    // Cases of a scene test call these.
    let cases_stop = ["generate_args", "compute_golden"].iter().any(|name| stopped.contains(name));
    let has_cases = text.contains("CASES = [") && !cases_stop;
    has_cases || functions.iter().any(|one| is_test(one.name) && !stopped.contains(one.name))
}

/// The functions that have these lines; `None`: a line is in none of them, and so counts for all.
fn functions_of<'t>(
    functions: &[SourceFunction<'t>],
    lines: &[usize],
) -> Option<BTreeSet<&'t str>> {
    let mut names = BTreeSet::new();
    for line in lines {
        let mut holders = functions.iter().filter(|one| one.lines.contains(line)).peekable();
        holders.peek()?;
        names.extend(holders.map(|one| one.name));
    }
    Some(names)
}

impl SourceFunction<'_> {
    fn calls(&self, name: &str) -> bool {
        let call = format!("{name}(");
        let before = |at: usize, line: &str| line[..at].chars().next_back();
        self.body.iter().any(|line| {
            line.match_indices(&call)
                .any(|(at, _)| !before(at, line).is_some_and(|c| c.is_alphanumeric() || c == '_'))
        })
    }
}

/// The functions of a file, those within others as well.
fn functions(text: &str) -> Vec<SourceFunction<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let heads = lines.iter().enumerate().filter_map(|(at, line)| Some((at, name(line)?)));
    heads
        .map(|(at, name)| {
            let own = indent(lines[at]);
            // The bracket that ends the parameters may stand as far left as the head.
            let goes_on = |line: &&&str| {
                line.trim().is_empty() || indent(line) > own || line.trim_start().starts_with(')')
            };
            let length = lines[at + 1..].iter().take_while(goes_on).count();
            let body = lines[at + 1..=at + length].to_vec();
            SourceFunction { name, lines: at + 1..at + length + 2, body }
        })
        .collect()
}

fn name(line: &str) -> Option<&str> {
    let head = line.trim_start();
    let head = head.strip_prefix("async ").unwrap_or(head).strip_prefix("def ")?;
    head.split_once('(').map(|(name, _)| name.trim())
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::spares_some;

    const FILE: &str = "\
import x
def helper(
    a,
):
    return probe(a)

class T:
    def generate_args(self):
        return 1

    def test_one(self):
        helper(1)

    def test_two(self):
        my_helper(2)
";

    #[test]
    fn a_line_in_a_test_stops_that_test() {
        assert!(spares_some(FILE, &[12]), "test_two runs");
        assert!(spares_some(FILE, &[5]), "test_one calls it");
        assert!(!spares_some(FILE, &[12, 15]), "in both");
        assert!(!spares_some(FILE, &[1]), "an import counts for all");
        assert!(!spares_some(FILE, &[5, 1]));
    }

    #[test]
    fn cases_run_unless_what_they_call_stops() {
        let alone = "class T:\n    CASES = [1]\n    def generate_args(self):\n        probe()\n    def test_one(self):\n        probe()\n";
        assert!(spares_some(alone, &[6]));
        assert!(!spares_some(alone, &[4, 6]));
        assert!(!spares_some(&alone.replace("CASES = [1]", "pass"), &[6]));
    }
}
