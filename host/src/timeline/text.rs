//! Numbers and tables as people read them.

use pto_abi::numbers::{Counted, Grouped};

/// [`Grouped`] as a text.
#[must_use]
pub fn grouped(number: u64) -> String {
    Grouped(number).to_string()
}

/// [`Counted`] as a text.
#[must_use]
pub fn counted(number: u64, noun: &str) -> String {
    Counted(number, noun).to_string()
}

/// A time with three significant digits and a unit that fits.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub fn time(nanoseconds: u64) -> String {
    let (value, unit) = match nanoseconds {
        0..1_000 => return format!("{nanoseconds} ns"),
        1_000..1_000_000 => (nanoseconds as f64 / 1e3, "us"),
        1_000_000..1_000_000_000 => (nanoseconds as f64 / 1e6, "ms"),
        _ => (nanoseconds as f64 / 1e9, "s"),
    };
    let decimals = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {unit}")
}

/// `part` of `whole` in percent.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}

/// Rows in columns, two spaces apart, indented by two; all but the first column flush right, unless `left` names it.
#[must_use]
pub fn table(rows: &[Vec<String>], left: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            line += &if column == 0 || left.contains(&column) {
                format!("  {cell:<width$}")
            } else {
                format!("  {cell:>width$}")
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Text inside an element or an attribute of HTML and SVG.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            // XML cannot represent it.
            letter if letter.is_control() && !"\n\t".contains(letter) => safe.push('\u{FFFD}'),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::{escaped, percent, table, time};

    #[test]
    fn numbers_as_people_read_them() {
        let times = [0, 999, 1_234, 45_600, 7_890_000, 2_500_000_000].map(time);
        assert_eq!(times, ["0 ns", "999 ns", "1.23 us", "45.6 us", "7.89 ms", "2.50 s"]);
        assert_eq!([percent(1, 8), percent(1, 0)], ["12.5 %", "-"]);
        let rows = [vec!["a".into(), "1".into()], vec!["bc".into(), "10".into()]];
        assert_eq!(table(&rows, &[]), "  a    1\n  bc  10\n");
        assert_eq!(escaped("a\u{1b}[31m\n"), "a\u{FFFD}[31m\n");
        assert_eq!(escaped("<a & \"b\">"), "&lt;a &amp; &quot;b&quot;&gt;");
    }
}
