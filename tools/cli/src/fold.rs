//! Text for a terminal: no line and no table is wider than it, where words and columns allow that.

use std::collections::HashSet;
use std::ops::Range;

/// A column of text that is narrowed keeps so many characters at least.
const LEAST_TEXT: usize = 20;

/// Text in lines of at most so many characters. A continuation begins below the last column of its line that begins in the left half, so that the value
/// of a name stays next to the name. A table of numbers that is wider becomes several, below each other.
pub(crate) fn folded(text: &str, columns: usize) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (mut folded, mut rest) = (String::new(), &lines[..]);
    while !rest.is_empty() {
        let rows = rest.iter().take_while(|line| is_row(line)).count().max(1);
        let (block, after) = rest.split_at(rows);
        let table = Table::of(block).and_then(|table| table.within(columns));
        folded += &table.unwrap_or_else(|| {
            block.iter().map(|line| folded_line(line, columns)).collect::<String>()
        });
        rest = after;
    }
    folded
}

/// Whether a line is one of a table: it is indented, and has a gap between columns.
fn is_row(line: &str) -> bool {
    line.starts_with("  ") && line.trim().contains("  ")
}

/// A table of which the last column is flush right, as numbers are.
struct Table {
    rows: Vec<Vec<char>>,
    columns: Vec<Range<usize>>,
}

impl Table {
    /// `None`: the lines are no such table.
    fn of(lines: &[&str]) -> Option<Self> {
        let rows: Vec<Vec<char>> =
            lines.iter().map(|line| line.trim_end().chars().collect()).collect();
        let wide = rows.iter().map(Vec::len).max()?;
        let is_gap =
            |at: usize| rows.iter().all(|row| row.get(at).is_none_or(|letter| *letter == ' '));
        let mut columns: Vec<Range<usize>> = Vec::new();
        for at in (0..wide).filter(|at| !is_gap(*at)) {
            match columns.last_mut() {
                // A blank alone is part of a cell.
                Some(column) if at <= column.end + 1 => column.end = at + 1,
                _ => columns.push(at..at + 1),
            }
        }
        let last = columns.last()?.start;
        let is_flush = rows.iter().all(|row| row.len() <= last || row.len() == wide);
        (rows.len() > 1 && columns.len() > 2 && is_flush).then_some(Self { rows, columns })
    }

    fn wide(&self) -> usize {
        self.columns.last().map_or(0, |last| last.end)
    }

    fn cell<'r>(&self, row: &'r [char], column: &Range<usize>) -> &'r [char] {
        let end = column.end.min(row.len());
        row.get(column.start..end).unwrap_or_default()
    }

    /// The table in so many characters; `None`: it fits, or it cannot.
    fn within(&self, columns: usize) -> Option<String> {
        if self.wide() <= columns {
            return None;
        }
        self.narrowed(columns).or_else(|| self.split(columns))
    }

    /// With the words of its widest column in several lines.
    fn narrowed(&self, columns: usize) -> Option<String> {
        let widest = self.columns.iter().max_by_key(|column| column.len())?;
        let room = (widest.len() + columns).checked_sub(self.wide())?;
        let texts: Vec<String> =
            self.rows.iter().map(|row| self.cell(row, widest).iter().collect()).collect();
        let is_left = texts.iter().all(|text| !text.starts_with(' ') || text.trim().is_empty());
        let breaks =
            texts.iter().all(|text| text.split(' ').all(|word| word.chars().count() <= room));
        if room < LEAST_TEXT || !is_left || !breaks {
            return None;
        }
        let mut folded = String::new();
        for (row, text) in self.rows.iter().zip(texts) {
            let broken = folded_line(text.trim_end(), room);
            let (before, after) = (&row[..widest.start.min(row.len())], row.get(widest.end..));
            for (number, line) in broken.split('\n').enumerate() {
                let begin: String = match number {
                    0 => before.iter().collect(),
                    _ => " ".repeat(widest.start),
                };
                let end: String =
                    after.filter(|_| number == 0).unwrap_or_default().iter().collect();
                folded += format!("{begin}{line:<room$}{end}").trim_end();
                folded.push('\n');
            }
        }
        Some(folded)
    }

    /// As several tables below each other. Each begins with the columns that tell the rows apart.
    fn split(&self, columns: usize) -> Option<String> {
        let keys = self.keys();
        let (key, rest) = self.columns.split_at_checked(keys)?;
        let key = 0..key.last()?.end;
        let mut parts: Vec<Vec<&Range<usize>>> = Vec::new();
        let mut used = columns;
        for column in rest {
            let taken = 2 + column.len();
            if used + taken > columns || parts.is_empty() {
                parts.push(Vec::new());
                used = key.end;
            }
            used += taken;
            parts.last_mut()?.push(column);
            if used > columns {
                return None;
            }
        }
        let part = |part: &Vec<&Range<usize>>| -> String {
            let line = |row: &Vec<char>| {
                let cells = std::iter::once(&key).chain(part.iter().copied());
                let padded = |column: &Range<usize>| {
                    let cell: String = self.cell(row, column).iter().collect();
                    format!("{cell:<width$}", width = column.len())
                };
                let cells: Vec<_> = cells.map(padded).collect();
                format!("{}\n", cells.join("  ").trim_end())
            };
            self.rows.iter().map(line).collect()
        };
        Some(parts.iter().map(part).collect::<Vec<_>>().join("\n"))
    }

    /// How many columns it takes to tell the rows apart; one where no number does.
    fn keys(&self) -> usize {
        let tells_apart = |count: &usize| {
            let end = self.columns[count - 1].end;
            let mut seen = HashSet::new();
            self.rows.iter().all(|row| seen.insert(&row[..end.min(row.len())]))
        };
        (1..self.columns.len()).find(tells_apart).unwrap_or(1)
    }
}

fn folded_line(line: &str, columns: usize) -> String {
    let mut rest: Vec<char> = line.chars().collect();
    let begins_column = |at: &usize| {
        let before = [*at, at + 1].map(|at| rest[at] == ' ');
        before == [true, true] && rest[at + 2] != ' ' && at + 2 <= columns / 2
    };
    let indent = (0..rest.len().saturating_sub(2)).rev().find(begins_column).map_or(0, |at| at + 2);
    let mut folded = String::new();
    while rest.len() > columns + usize::from(rest.last() == Some(&'\n')) {
        let is_space = |at: &usize| rest[*at] == ' ';
        // A word that is longer than a line stays in one piece.
        let space = (indent + 1..=columns).rev().find(is_space);
        let space = space.or_else(|| (columns..rest.len()).find(is_space));
        let Some(space) = space else { break };
        let after: Vec<char> =
            rest.split_off(space).into_iter().skip_while(|c| *c == ' ').collect();
        folded.extend(rest);
        folded = folded.trim_end().to_owned();
        folded.push('\n');
        rest = vec![' '; indent];
        rest.extend(after);
    }
    folded.extend(rest);
    folded
}

#[cfg(test)]
mod tests {
    use super::folded;

    /// A table as commands write it: text, then numbers.
    fn numbers(rows: &[&str]) -> String {
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.split('|').map(str::to_owned).collect()).collect();
        let right: Vec<usize> = (1..rows[0].len()).collect();
        crate::text::table(&rows, &right)
    }

    #[test]
    fn a_wide_table_becomes_several() {
        let table =
            numbers(&["kernel|runs|total|median", "matmul|108|361 us|3.90 us", "add|7|1 us|83 ns"]);
        let text = format!("title\n{table}\nend\n");
        assert_eq!(folded(&text, 80), text);
        let parts = "title
  kernel  runs   total
  matmul   108  361 us
  add        7    1 us

  kernel   median
  matmul  3.90 us
  add       83 ns

end
";
        assert_eq!(folded(&text, 25), parts);
        // What is narrower than a cell is broken between words.
        assert_eq!(folded(&text, 10).lines().map(str::len).max(), Some(10));
    }

    #[test]
    fn rows_are_told_apart_in_each_part() {
        let table =
            numbers(&["name|ranks|time|bound", "reduce|2|33 us|37 us", "reduce|8|71 us|120 us"]);
        let parts = "  name    ranks   time
  reduce      2  33 us
  reduce      8  71 us

  name    ranks   bound
  reduce      2   37 us
  reduce      8  120 us
";
        assert_eq!(folded(&table, 25), parts);
    }

    #[test]
    fn a_wide_text_next_to_numbers_is_broken_between_words() {
        let table = numbers(&[
            "target|bound|found",
            "ours over the sweep, geometric mean|<= 2.5|55.0",
            "a task|<= 2|1.1",
        ]);
        let narrow = "  target                      bound  found
  ours over the sweep,       <= 2.5   55.0
  geometric mean
  a task                       <= 2    1.1
";
        assert_eq!(folded(&table, 42), narrow);
    }

    #[test]
    fn long_lines_go_on_below_their_value() {
        let text = "title\n\n  runtime      aicpu_build_graph, concurrent, lock-free fanout\n";
        let expected = "title\n\n  runtime      aicpu_build_graph,\n               concurrent, lock-free\n               fanout\n";
        assert_eq!(folded(text, 40), expected);
        assert_eq!(folded(text, 80), text);
        let word = "x".repeat(100);
        assert_eq!(folded(&format!("a {word} b\n"), 40), format!("a\n{word}\nb\n"));
        assert_eq!(folded("", 1) + &folded("a b", 0), "a\nb");
        assert_eq!(folded(&"1 2 3  ".repeat(30), 40).lines().map(str::len).max(), Some(40));
    }
}
