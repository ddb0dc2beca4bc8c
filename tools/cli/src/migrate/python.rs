//! The imports of a Python file, as far as lines tell them. The build script reads our own packages with the same functions.

/// One statement.
pub(super) struct Import {
    /// Its first line, from 1 on.
    pub(super) line: usize,
    /// Whether the file goes on where it fails: it is in a `try`, or is for type checkers alone.
    pub(super) is_guarded: bool,
    /// The module, with the dots of a relative import.
    pub(super) module: String,
    /// What is taken from the module, and how it is called then; empty for `import module`.
    pub(super) names: Vec<(String, String)>,
}

/// The imports of a file, in order.
pub(super) fn imports(text: &str) -> Vec<Import> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut imports, mut in_string) = (Vec::new(), false);
    for (at, line) in lines.iter().enumerate() {
        let quotes = line.matches("\"\"\"").count() + line.matches("'''").count();
        let was_in_string = in_string;
        in_string ^= quotes % 2 == 1;
        if was_in_string || quotes > 0 {
            continue;
        }
        let statement = || whole(&lines[at..]);
        let trimmed = line.trim_start();
        if trimmed.starts_with("from ") || trimmed.starts_with("import ") {
            for (module, names) in parts(&statement()) {
                let is_guarded = is_guarded(&lines[..at], indent(line));
                imports.push(Import { line: at + 1, is_guarded, module, names });
            }
        }
    }
    imports
}

/// A statement that may go on in brackets, or after a backslash, as one line.
fn whole(lines: &[&str]) -> String {
    let mut statement = String::new();
    for line in lines {
        let code = line.split('#').next().unwrap_or_default().trim();
        let goes_on = code.strip_suffix('\\');
        statement.push_str(goes_on.unwrap_or(code));
        statement.push(' ');
        let is_open = statement.contains('(') && !statement.contains(')');
        if goes_on.is_none() && !is_open {
            break;
        }
    }
    statement.replace(['(', ')'], " ")
}

/// Modules, and what is taken from each.
fn parts(statement: &str) -> Vec<(String, Vec<(String, String)>)> {
    let named = |part: &str| {
        let mut words = part.split_whitespace();
        let name = words.next()?.to_owned();
        let called = words.nth(1).map_or_else(|| name.clone(), str::to_owned);
        Some((name, called))
    };
    let statement = statement.trim();
    if let Some(modules) = statement.strip_prefix("import ") {
        let modules = modules.split(',').filter_map(named);
        return modules.map(|(module, _)| (module, Vec::new())).collect();
    }
    let Some((module, names)) =
        statement.strip_prefix("from ").and_then(|rest| rest.split_once(" import "))
    else {
        return Vec::new();
    };
    vec![(module.trim().to_owned(), names.split(',').filter_map(named).collect())]
}

/// Whether one of the blocks that a line of this indent is in catches what fails, or is never run.
fn is_guarded(before: &[&str], mut indent_of: usize) -> bool {
    for line in before.iter().rev().filter(|line| !line.trim().is_empty()) {
        if indent(line) < indent_of {
            indent_of = indent(line);
            let opener = line.trim_start();
            if opener.starts_with("try:") || opener.contains("TYPE_CHECKING") {
                return true;
            }
        }
    }
    false
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}
