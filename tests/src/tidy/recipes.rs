//! The recipes of `docs/how-to/hacking.md` stay short: who adds an example writes a folder and a row of the table of examples, who adds
//! a kernel writes its arithmetic and a row of the table of kernels.
//!
//! That is true as long as no other file lists them all: a file that names every row of a table is a second table.

use super::Finding;
use super::source::Source;

/// The names of the rows of the table of examples: `"name" module Job (..) (..);`.
#[must_use]
pub fn examples(table: &str) -> Vec<&str> {
    let rows = table.lines().map(str::trim).filter(|line| line.ends_with(';'));
    rows.filter_map(|row| row.strip_prefix('"')?.split('"').next()).collect()
}

/// The names of the rows of the table of kernels: `0 ADD add AIV "..."`.
#[must_use]
pub fn kernels(table: &str) -> Vec<&str> {
    let name = |line| {
        let mut words = str::split_whitespace(line);
        words.next()?.parse::<u32>().ok()?;
        let (constant, name) = (words.next()?, words.next()?);
        (constant == name.to_uppercase()).then_some(name)
    };
    table.lines().filter_map(name).collect()
}

/// The files that name every row, in code or in texts.
#[must_use]
pub fn second_tables(names: &[&str], sources: &[Source], table: &[&str]) -> Vec<Finding> {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let names_all = |source: &&Source| {
        let words: std::collections::BTreeSet<&str> =
            source.text.split(|letter| !is_name(letter)).collect();
        names.iter().all(|name| words.contains(name))
    };
    let others = sources.iter().filter(|source| !table.contains(&source.path.as_str()));
    let finding = |source: &Source| Finding {
        location: source.path.clone(),
        message: format!("it names all {} rows of {}: take them from there", names.len(), table[0]),
    };
    others.filter(names_all).map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::{Source, examples, kernels, second_tables};

    #[test]
    fn rows_have_names() {
        let table = "    //! \"name\" module Job\n  \"matmul\" matmul Matmul (graph) ();\n \"a_b\" a_b AB () (stream);\n";
        assert_eq!(examples(table), ["matmul", "a_b"]);
        let table = "  0 ADD add AIV \"out = a + b\"\n  (a: In [n])\n  12 ROW_MAX row_max AIV\n 3 words here";
        assert_eq!(kernels(table), ["add", "row_max"]);
    }

    #[test]
    fn a_second_table_is_found() {
        let sources = [
            Source::new("table.rs", "\"matmul\" \"a_b\""),
            Source::new("sizes.rs", "(\"matmul\", 1), (\"a_b\", 2)"),
            Source::new("one.rs", "matmul::build, a_bc"),
        ];
        let found = second_tables(&["matmul", "a_b"], &sources, &["table.rs"]);
        assert_eq!(found.iter().map(|f| f.location.as_str()).collect::<Vec<_>>(), ["sizes.rs"]);
    }
}
