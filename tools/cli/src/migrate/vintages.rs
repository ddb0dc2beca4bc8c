//! The dates between which a program was written: those at which all names that it uses were current.
//!
//! The table of names is that of our Python packages, which choose the forms of an interface by the same names.

use std::sync::LazyLock;

const TABLE: &str = include_str!("../../../../bindings/python/simpler_setup/names.tsv");

/// A name of the field's interface, and from when until when programs used it. Dates are texts: they sort as they are.
pub(super) struct DatedName {
    kind: &'static str,
    pub(super) name: &'static str,
    from: &'static str,
    until: &'static str,
}

/// All names, as the table has them.
pub(super) fn names() -> &'static [DatedName] {
    static NAMES: LazyLock<Vec<DatedName>> = LazyLock::new(|| {
        let rows = TABLE.lines().filter(|line| !line.starts_with('#')).skip(1);
        rows.filter_map(|row| {
            let mut cells = row.split('\t');
            let mut cell = || cells.next();
            Some(DatedName { kind: cell()?, name: cell()?, from: cell()?, until: cell()? })
        })
        .collect()
    });
    &NAMES
}

/// The headers of the field that ours replace.
pub(super) fn headers() -> impl Iterator<Item = &'static str> {
    names().iter().filter(|row| row.kind == "header").map(|row| row.name)
}

/// From when until when a program may be; nothing: its names were always current.
#[derive(Clone, Default)]
pub(super) struct Vintage {
    from: Option<&'static str>,
    until: Option<&'static str>,
}

impl Vintage {
    /// Takes the names of a file in, but for those of its comments.
    pub(super) fn take(&mut self, text: &str) {
        let is_code = |line: &&str| {
            let line = line.trim_start();
            !["//", "*", "# "].iter().any(|mark| line.starts_with(mark))
        };
        let code: String = text.lines().filter(is_code).flat_map(|line| [line, "\n"]).collect();
        for row in names().iter().filter(|row| has_word(&code, row.last_part())) {
            if row.from != "-" {
                self.from = self.from.max(Some(row.from));
            }
            if row.until != "-" {
                self.until = [self.until, Some(row.until)].into_iter().flatten().min();
            }
        }
    }

    /// The two dates; `None` where there is no limit.
    pub(super) fn dates(&self) -> (Option<&'static str>, Option<&'static str>) {
        (self.from, self.until)
    }

    /// For a line of the answer.
    pub(super) fn words(&self) -> String {
        match self.dates() {
            (None, None) => String::new(),
            (Some(from), None) => format!("names since {from}"),
            (None, Some(until)) => format!("names until {until}"),
            (Some(from), Some(until)) if from > until => "names of several dates".to_owned(),
            (Some(from), Some(until)) => format!("names of {from} to {until}"),
        }
    }
}

impl DatedName {
    /// The name without its module.
    fn last_part(&self) -> &'static str {
        if self.kind == "python" {
            self.name.rsplit('.').next().unwrap_or(self.name)
        } else {
            self.name
        }
    }
}

/// Whether a text has this name, and not as a part of a longer one.
fn has_word(text: &str, name: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(name).any(|(at, _)| {
        !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::{Vintage, names};

    #[test]
    fn names_tell_the_dates() {
        let words = |text: &str| {
            let mut vintage = Vintage::default();
            vintage.take(text);
            vintage.words()
        };
        assert_eq!(words("int main() {}"), "");
        assert_eq!(
            words("void f(OrchArg *args) { PTOParam p; }"),
            "names of 2026-03-24 to 2026-03-26"
        );
        assert_eq!(words("OrchArgument"), "", "another name");
        assert_eq!(words(" * OrchArg of March\n// and PTOParam"), "", "comments");
        assert_eq!(words("OrchArg; CoreTaskArgs"), "names of several dates");
    }

    #[test]
    fn each_row_has_dates_in_order() {
        assert!(names().len() > 40, "{}", names().len());
        for row in names() {
            assert!(["cxx", "header", "python"].contains(&row.kind), "{}", row.name);
            let is_date =
                |date: &str| date == "-" || (date.len() == 10 && date.starts_with("2026-"));
            assert!(is_date(row.from) && is_date(row.until), "{}", row.name);
            assert!(row.from == "-" || row.until == "-" || row.from <= row.until, "{}", row.name);
        }
    }

    /// Headers and names in C++ are in our headers.
    #[test]
    fn our_headers_have_the_names() {
        let folder =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/field/include");
        let text = |path: &std::path::Path| std::fs::read_to_string(path).expect("a header");
        let all: String = super::headers().map(|header| text(&folder.join(header))).collect();
        let inner = [
            "pto_field_args.h",
            "pto_field_calls.h",
            "pto_field_entry.h",
            "pto_field_graph.h",
            "pto_field_streams.h",
            "pto_field_vintages.h",
        ];
        let all = inner.iter().fold(all, |all, header| all + &text(&folder.join(header)));
        for row in names().iter().filter(|row| row.kind == "cxx") {
            assert!(super::has_word(&all, row.name), "{}", row.name);
        }
    }
}
