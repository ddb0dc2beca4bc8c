//! Numbers and tables as people read them.

use std::time::Duration;

pub(crate) use pto_host::timeline::text::{counted, grouped};

/// A duration with three significant digits and a unit that fits.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s => (s * 1e6, "us"),
    };
    format!("{} {unit}", significant(value))
}

/// A rate such as tasks per second: whole, with three significant digits.
pub(crate) fn rate(per_second: f64) -> String {
    let (value, unit) = match per_second {
        r if r >= 1e6 => (r / 1e6, " M"),
        r if r >= 1e3 => (r / 1e3, " k"),
        r => (r, " "),
    };
    format!("{}{unit}", significant(value)).trim_end().to_owned()
}

/// A number of bytes in the largest binary unit that it reaches.
pub(crate) fn bytes(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.iter().find(|(bits, _)| bytes >> bits > 0) {
        Some((bits, unit)) => {
            format!("{} {unit}", significant(bytes as f64 / (1_u64 << bits) as f64))
        }
        None => format!("{bytes} B"),
    }
}

fn significant(value: f64) -> String {
    let decimals = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// The longest line of [`filled`].
const LINE: usize = 76;

/// Items with commas between them, in lines of at most 76 characters where the items allow it.
pub(crate) fn filled<T: AsRef<str>>(items: &[T]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for item in items.iter().map(AsRef::as_ref) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + item.chars().count() + 3 <= LINE => {
                line.push_str(", ");
                line.push_str(item);
            }
            Some(line) => {
                line.push(',');
                lines.push(item.to_owned());
            }
            None => lines.push(item.to_owned()),
        }
    }
    lines
}

/// Rows in columns, each as wide as its widest cell, two spaces apart, indented by two; the last column
/// ends where its text ends. Columns of numbers stand flush right if `right` names them.
pub(crate) fn table(rows: &[Vec<String>], right: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let width = |column| cells(column).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::from(" ");
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let cell = match right.contains(&column) {
                true => format!(" {cell:>width$} "),
                false => format!(" {cell:<width$} "),
            };
            line.push_str(&cell);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Text without what a terminal would obey: names come from files. Line ends and tabs stay.
pub(crate) fn plain(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => safe.push(letter),
            letter if is_obeyed(letter) => safe.extend(letter.escape_default()),
            letter => safe.push(letter),
        }
    }
    safe
}

/// JSON without what a terminal would obey. Such letters are in strings alone, and JSON has a form of its own for them.
pub(crate) fn plain_json(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '\n' | '\t' => safe.push(letter),
            // All of them have four digits.
            letter if is_obeyed(letter) => safe.push_str(&format!("\\u{:04x}", letter as u32)),
            letter => safe.push(letter),
        }
    }
    safe
}

/// Whether a terminal does something else than show the letter: control characters, and those that turn the direction of what follows,
/// so that a name looks like another one.
fn is_obeyed(letter: char) -> bool {
    let turns = matches!(letter, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter.is_control() || turns
}

#[cfg(test)]
mod tests {
    use super::{bytes, counted, duration, filled, grouped, plain, plain_json, rate, table};
    use std::time::Duration;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        let numbers = [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")];
        assert!(numbers.iter().all(|(number, text)| grouped(*number) == *text));
        assert_eq!([0, 1, 1_000].map(|n| counted(n, "run")), ["0 runs", "1 run", "1,000 runs"]);
        let of = |nanos| duration(Duration::from_nanos(nanos));
        assert_eq!(
            [0, 1_230, 12_345_678, 1_500_000_000].map(of),
            ["0.00 us", "1.23 us", "12.3 ms", "1.50 s"]
        );
        assert_eq!([12.0, 1_234.0, 5_670_000.0].map(rate), ["12.0", "1.23 k", "5.67 M"]);
        assert_eq!([512, 2048, 4 << 30].map(bytes), ["512 B", "2.00 KiB", "4.00 GiB"]);
    }

    #[test]
    fn items_fill_lines_and_are_all_there() {
        let items: Vec<_> = (0..40).map(|n| format!("item {n}")).collect();
        let lines = filled(&items);
        assert!(lines.len() > 3 && lines.iter().all(|line| line.len() <= 76));
        assert_eq!(lines.join(" "), items.join(", "));
        assert_eq!(filled(&["x".repeat(100)]).len(), 1);
        assert!(filled::<&str>(&[]).is_empty());
    }

    #[test]
    fn a_table_is_aligned_and_ends_without_spaces() {
        let rows = [vec!["a".into(), "1".into(), "x".into()], vec!["bcd".into(), "20".into()]];
        assert_eq!(table(&rows, &[1]), "  a     1  x\n  bcd  20\n");
    }

    #[test]
    fn a_terminal_is_told_nothing_that_it_obeys() {
        assert_eq!(plain("a\u{1b}[31m\tb\r\n\u{9b}2J ü"), "a\\u{1b}[31m\tb\\r\n\\u{9b}2J ü");
        assert_eq!(plain("npy.\u{202e}exe"), "npy.\\u{202e}exe");
        let name = "a\u{7f}\u{9b}2J\u{202e} ü\u{1b}";
        let json = plain_json(&serde_json::Value::from(name).to_string());
        assert!(json.contains("\\u007f\\u009b2J\\u202e ü"), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).expect("it is JSON"), name);
    }
}
