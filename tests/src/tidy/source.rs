//! Reading the tree, and telling code from comments and literals.

use std::fs;
use std::path::{Path, PathBuf};

/// A file of the project.
#[derive(Clone, Debug)]
pub struct Source {
    /// From the workspace's folder, with `/`.
    pub path: String,
    /// As it stands.
    pub text: String,
    /// The same lines; comments and the insides of literals are blank.
    pub code: String,
}

impl Source {
    /// A file with this text.
    #[must_use]
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let (path, text) = (path.into(), text.into());
        let code = code_of(&text);
        Self { path, text, code }
    }

    /// The lines with their numbers: as they stand, and their code.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str, &str)> {
        let lines = self.text.lines().zip(self.code.lines());
        (1..).zip(lines).map(|(number, (text, code))| (number, text, code))
    }
}

/// The workspace's folder.
#[must_use]
pub fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_path_buf()
}

/// Every file with this extension, in the order of the paths; build folders and hidden ones are left out.
///
/// # Panics
/// When a folder or file cannot be read, or a file is not UTF-8.
#[must_use]
pub fn files(root: &Path, extension: &str) -> Vec<Source> {
    let mut paths = Vec::new();
    collect(root, extension, &mut paths);
    paths.sort();
    let source = |path: &PathBuf| {
        let text = fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("{} cannot be read: {error}", path.display()));
        let relative = path.strip_prefix(root).unwrap_or(path);
        Source::new(relative.to_string_lossy().replace('\\', "/"), text)
    };
    paths.iter().map(source).collect()
}

fn collect(folder: &Path, extension: &str, to: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{} cannot be read: {error}", folder.display()));
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                collect(&path, extension, to);
            }
        } else if path.extension().is_some_and(|held| held == extension) {
            to.push(path);
        }
    }
}

/// `text` with comments and the insides of string and character literals blank; lines stay lines.
#[must_use]
pub fn code_of(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < characters.len() {
        let end = skip(&characters, at);
        if end == at {
            code.push(characters[at]);
            at += 1;
            continue;
        }
        let blank = |character: &char| if *character == '\n' { '\n' } else { ' ' };
        code.extend(characters[at..end].iter().map(blank));
        at = end;
    }
    code
}

/// The end of the comment or literal that begins at `at`; `at` itself when none does.
fn skip(text: &[char], at: usize) -> usize {
    let next = |offset: usize| text.get(at + offset).copied();
    match (text[at], next(1)) {
        ('/', Some('/')) => find(text, at, |rest| rest[0] == '\n'),
        ('/', Some('*')) => end_of_block_comment(text, at),
        ('"', _) => end_of_string(text, at),
        ('r', Some('"' | '#')) if is_word_start(text, at) => end_of_raw_string(text, at),
        // A lifetime has no closing quote two characters on.
        ('\'', Some('\\')) => (find(text, at + 3, |rest| rest[0] == '\'') + 1).min(text.len()),
        ('\'', Some(_)) if next(2) == Some('\'') => at + 3,
        _ => at,
    }
}

/// Whether the `r` at `at` begins a literal and does not end a name; `b` and `c` may stand before it.
fn is_word_start(text: &[char], at: usize) -> bool {
    let is_name = |index: usize| {
        text.get(index).is_some_and(|letter| letter.is_alphanumeric() || *letter == '_')
    };
    match at.checked_sub(1) {
        None => true,
        Some(before) if matches!(text[before], 'b' | 'c') => {
            before.checked_sub(1).is_none_or(|before| !is_name(before))
        }
        Some(before) => !is_name(before),
    }
}

fn find(text: &[char], from: usize, ends: impl Fn(&[char]) -> bool) -> usize {
    (from..text.len()).find(|at| ends(&text[*at..])).unwrap_or(text.len())
}

fn end_of_block_comment(text: &[char], start: usize) -> usize {
    let (mut depth, mut at) = (0, start);
    while at < text.len() {
        match &text[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn end_of_string(text: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < text.len() && text[at] != '"' {
        at += if text[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(text.len())
}

fn end_of_raw_string(text: &[char], start: usize) -> usize {
    let hashes = text[start + 1..].iter().take_while(|letter| **letter == '#').count();
    if text.get(start + 1 + hashes) != Some(&'"') {
        // A raw name such as r#type.
        return start;
    }
    let closes = |rest: &[char]| {
        rest[0] == '"'
            && rest[1..].iter().take(hashes).filter(|letter| **letter == '#').count() == hashes
    };
    let end = find(text, start + 2 + hashes, closes);
    (end + 1 + hashes).min(text.len())
}

#[cfg(test)]
mod tests {
    use super::{Source, code_of};

    #[test]
    fn comments_and_literals_are_blank_and_lines_stay() {
        let text = "a(\"x\\\"y\", 'z', '\\n'); // b\nfn f<'a>(c: &'a u8) {} /* d /* e */ f */ g";
        let code = code_of(text);
        assert_eq!(code.lines().count(), 2);
        assert_eq!(code.chars().count(), text.chars().count());
        let words: Vec<_> = code.split_whitespace().collect();
        assert_eq!(words, ["a(", ",", ",", ");", "fn", "f<'a>(c:", "&'a", "u8)", "{}", "g"]);
    }

    #[test]
    fn raw_literals_end_where_they_end() {
        let code = code_of("let a = r#\"in \" in\"#; let b = br\"in\"; let r#type = bar\"in\";");
        assert!(!code.contains("in"), "{code}");
        assert!(code.contains("let b = ") && code.contains("r#type = bar"), "{code}");
    }

    #[test]
    fn an_open_literal_ends_with_the_file() {
        for text in ["\"abc", "r#\"abc", "/* abc", "'\\", "\"\\"] {
            assert_eq!(code_of(text).trim_end().replace(' ', ""), "", "{text}");
        }
    }

    #[test]
    fn lines_pair_text_and_code() {
        let source = Source::new("x.rs", "a // b\nc");
        let lines: Vec<_> = source.lines().map(|(n, text, code)| (n, text, code.trim())).collect();
        assert_eq!(lines, [(1, "a // b", "a"), (2, "c", "c")]);
    }
}
