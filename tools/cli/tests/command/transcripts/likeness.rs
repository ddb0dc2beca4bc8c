//! When what a page shows is what a command prints.
//!
//! A line `..` or `...` of a page matches any lines, and `..` at the end of a line matches the rest of the line. A run in virtual
//! time, a check and a graph are the same on every machine and compared letter by letter. Of other commands what is measured may
//! differ: times, rates, shares, and numbers with a fraction or an exponent. Their words may not, and whole numbers may not
//! either: they count tasks, edges, bytes or findings.

/// How exactly a command's output is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Likeness {
    /// Every letter.
    Exact,
    /// Every word and every count; what is measured may differ.
    Counts,
}

impl Likeness {
    /// For `pto` with these arguments.
    pub(super) fn of(arguments: &str) -> Self {
        let first = arguments.split(' ').next().unwrap_or_default();
        let is_virtual = arguments.contains("--hosting virtual");
        if is_virtual || matches!(first, "check" | "graph" | "info") {
            Self::Exact
        } else {
            Self::Counts
        }
    }

    /// Is `printed` what the page shows?
    ///
    /// # Errors
    /// The first line that differs, as the page has it and as it was printed.
    pub(super) fn compare(self, shown: &[String], printed: &str) -> Result<(), String> {
        let printed: Vec<&str> = printed.trim_end().lines().collect();
        let mut at = 0;
        let mut skips = false;
        for line in shown {
            if matches!(line.trim(), ".." | "...") {
                skips = true;
                continue;
            }
            let next = printed[at..].iter().position(|other| self.is_like(line, other));
            match next {
                Some(0) => at += 1,
                Some(further) if skips => at += further + 1,
                _ => {
                    let instead = printed.get(at).unwrap_or(&"(nothing)");
                    return Err(format!("  the page: {line}\n  printed:  {instead}"));
                }
            }
            skips = false;
        }
        match printed.get(at) {
            Some(more) if !skips => Err(format!("  the page ends\n  printed:  {more}")),
            _ => Ok(()),
        }
    }

    fn is_like(self, shown: &str, printed: &str) -> bool {
        let (shown, printed) = (self.reduced(shown), self.reduced(printed));
        match shown.trim_end().strip_suffix("..") {
            Some(start) => printed.starts_with(start.trim_end()),
            None => shown == printed,
        }
    }

    /// A line without what may differ.
    fn reduced(self, line: &str) -> String {
        let line = without_addresses(line.trim_end());
        match self {
            Self::Exact => line,
            Self::Counts => {
                let words: Vec<_> = line.split_whitespace().collect();
                let next = words.iter().skip(1).map(Some).chain([None]);
                let kept = words.iter().zip(next).filter(|(word, next)| !is_measured(word, *next));
                kept.map(|(word, _)| *word).collect::<Vec<_>>().join(" ")
            }
        }
    }
}

/// The unit of a time, a rate or a share, or a number with one, with a fraction or with an exponent.
fn is_measured(word: &str, next: Option<&&str>) -> bool {
    let bare = |word: &str| {
        let outer = |letter: char| matches!(letter, '(' | ')' | ',' | ';' | ':');
        word.trim_matches(outer).to_owned()
    };
    let is_unit = |word: &str| {
        let (scale, _per) = word.split_once('/').unwrap_or((word, ""));
        matches!(scale, "ns" | "us" | "ms" | "s" | "min" | "%" | "k" | "M") || word == "tasks/s"
    };
    let word = bare(word);
    if is_unit(&word) {
        return true;
    }
    let Some(digits) = word.strip_prefix(['-', '+']).or(Some(word.as_str())) else { return false };
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return false;
    }
    let is_whole = digits.chars().all(|digit| digit.is_ascii_digit() || digit == ',');
    !is_whole || next.is_some_and(|next| is_unit(&bare(next)))
}

/// Addresses of this process's memory differ in every run.
fn without_addresses(line: &str) -> String {
    let is_address =
        |word: &&str| word.starts_with("0x") && word.trim_end_matches(['.', ',']).len() > 12;
    match line.split(' ').find(is_address) {
        Some(address) => line.replace(address, "ADDRESS"),
        None => line.to_owned(),
    }
}

#[test]
fn times_may_differ_and_counts_and_words_may_not() {
    let shown = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let counts = Likeness::Counts;
    assert_eq!(counts.compare(&shown("makespan 14.3 ms"), "makespan   9 us\n"), Ok(()));
    assert!(counts.compare(&shown("makespan 14.3 ms"), "throughput 9 us\n").is_err());
    assert_eq!(
        counts.compare(&shown("17 k tasks/s, 1.2e-8 (5 ms)"), "1.3 M tasks/s, 0 s (6 us)"),
        Ok(())
    );
    assert!(counts.compare(&shown("edges 4,304 (0 known)"), "edges 192 (0 known)").is_err());
    let exact = Likeness::Exact;
    assert!(exact.compare(&shown("makespan 14 ms"), "makespan 15 ms").is_err());
    assert_eq!(exact.compare(&shown("a\n..\nd"), "a\nb\nc\nd"), Ok(()));
    assert!(exact.compare(&shown("a\nd"), "a\nb\nd").is_err());
    assert!(exact.compare(&shown("a"), "a\nb").is_err());
    assert_eq!(exact.compare(&shown("a b .."), "a b c d"), Ok(()));
    assert_eq!(exact.compare(&shown("at 0x7f00aabbccdd."), "at 0x55aabbccddee."), Ok(()));
}
