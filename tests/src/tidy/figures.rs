//! Times and shares that a page states are those of a page of measurements.

use std::collections::BTreeSet;

use super::Finding;
use super::source::Source;

const UNITS: &[&str] = &["ns", "us", "ms", "%"];

/// The times and shares in the text of a page that no page of `measurements` has. Code is left out: other tests compare it.
pub fn unmeasured(page: &Source, measurements: &[Source]) -> Vec<Finding> {
    let measured: BTreeSet<_> =
        measurements.iter().flat_map(|page| page.text.split_whitespace()).map(number).collect();
    let finding = |(line, figure): (usize, &str)| Finding {
        location: format!("{}:{line}", page.path),
        message: format!("no page of docs/measurements has the figure {figure}"),
    };
    let stated = figures(&page.text);
    stated.into_iter().filter(|(_, figure)| !measured.contains(figure)).map(finding).collect()
}

/// The numbers before a unit, each with its line.
fn figures(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (line, text) in (1..).zip(text.lines()) {
        if text.starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            // Every second part stands between backticks.
            let words: Vec<_> =
                text.split('`').step_by(2).flat_map(str::split_whitespace).collect();
            let pairs = words.windows(2).filter(|pair| UNITS.contains(&number(pair[1])));
            let numbers = pairs.map(|pair| number(pair[0]));
            let is_number = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
            found.extend(numbers.filter(is_number).map(|number| (line, number)));
        }
    }
    found
}

/// A word without the marks around it.
fn number(word: &str) -> &str {
    word.trim_matches(|letter: char| !letter.is_alphanumeric() && letter != '%')
}

#[cfg(test)]
mod tests {
    use super::unmeasured;
    use crate::tidy::source::Source;

    #[test]
    fn a_figure_that_nothing_has_measured_is_found() {
        let table =
            [Source::new("docs/measurements/a.md", "| rayon | 41.7 | **2.5 us** (5 %) |\n")];
        let found = |text: &str| {
            let page = Source::new("README.md", text);
            unmeasured(&page, &table).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let stale = "README.md:2: no page of docs/measurements has the figure 41.8";
        assert_eq!(found("a\nrayon took 41.8 ns, not 2.5 us, which are (5 %).\n"), [stale]);
        assert!(found("takes `7 ns`, in 96 tiles\n```\n9 ns\n```\n41.7 ns\n").is_empty());
    }
}
