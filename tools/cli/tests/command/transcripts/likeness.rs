//! When what a page shows is what a command prints.
//!
//! A line `..` or `...` of a page stands for any lines, and `..` at the end of a line for the rest of the line. A run in virtual
//! time, a check and a graph are the same on every machine and compared letter by letter. Of other commands the
//! numbers may differ, because they are times; their words may not.

/// How exactly a command's output is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Likeness {
    /// Every letter.
    Exact,
    /// Every word; numbers and units may differ.
    Words,
}

impl Likeness {
    /// For `pto` with these arguments.
    pub(super) fn of(arguments: &str) -> Self {
        let first = arguments.split(' ').next().unwrap_or_default();
        let is_virtual = arguments.contains("--hosting virtual");
        if is_virtual || matches!(first, "check" | "graph" | "list" | "info") {
            Self::Exact
        } else {
            Self::Words
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
            Self::Words => {
                let words = line.split_whitespace().filter(|word| !is_quantity(word));
                words.collect::<Vec<_>>().join(" ")
            }
        }
    }
}

/// A number with or without a unit behind it, or a unit alone.
fn is_quantity(word: &str) -> bool {
    let word = word.trim_matches(|letter: char| matches!(letter, '(' | ')' | ',' | ';' | ':'));
    matches!(word, "ns" | "us" | "ms" | "s" | "%" | "k" | "M")
        || word.chars().next().is_some_and(|first| first.is_ascii_digit())
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
fn numbers_may_differ_and_words_may_not() {
    let shown = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let words = Likeness::Words;
    assert_eq!(words.compare(&shown("makespan 14.3 ms"), "makespan   9 us\n"), Ok(()));
    assert!(words.compare(&shown("makespan 14.3 ms"), "throughput 9 us\n").is_err());
    let exact = Likeness::Exact;
    assert!(exact.compare(&shown("makespan 14 ms"), "makespan 15 ms").is_err());
    assert_eq!(exact.compare(&shown("a\n..\nd"), "a\nb\nc\nd"), Ok(()));
    assert!(exact.compare(&shown("a\nd"), "a\nb\nd").is_err());
    assert!(exact.compare(&shown("a"), "a\nb").is_err());
    assert_eq!(exact.compare(&shown("a b .."), "a b c d"), Ok(()));
    assert_eq!(exact.compare(&shown("at 0x7f00aabbccdd."), "at 0x55aabbccddee."), Ok(()));
}
