//! The partner of an `Ordering`: the function that its comment names must exist.
//!
//! A comment says `pairs with .. in `Window::advance``, `as in `close`` or `see `ring``. A name with a path stands for a function of that type, trait
//! or module anywhere in the workspace, or of that C++ header; a name alone, for a function of the same crate. Every such comment names one, or points to the lines `above` or
//! `below`, or says that the operation pairs with `itself`.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::source::Source;

/// The phrases after which a comment names the partner.
const PHRASES: [&str; 6] = ["pairs with", "pair with", "as in `", "as `", "see `", "with itself"];
/// What a comment may say instead of a name: its partner is in the same function, or is the same operation.
const NEARBY: [&str; 3] = ["above", "below", "itself"];

/// The functions of the workspace.
#[derive(Default)]
pub struct Functions {
    /// The type, trait or module, and the function in it.
    scoped: BTreeSet<(String, String)>,
    /// The crate's folder -> its functions.
    of_crate: BTreeMap<String, BTreeSet<String>>,
}

impl Functions {
    /// The functions that these files declare.
    #[must_use]
    pub fn of(sources: &[Source]) -> Self {
        let mut functions = Self::default();
        for source in sources {
            functions.add(source);
        }
        functions
    }

    fn add(&mut self, source: &Source) {
        let file = module_of(&source.path);
        let names = self.of_crate.entry(crate_of(&source.path).to_owned()).or_default();
        let tokens = tokens_of(&source.code);
        let mut scopes: Vec<Option<String>> = Vec::new();
        let mut opens = None;
        for (at, token) in tokens.iter().enumerate() {
            match *token {
                "{" => scopes.push(opens.take()),
                "}" => drop(scopes.pop()),
                "mod" | "trait" => opens = tokens.get(at + 1).map(ToString::to_string),
                "impl" if begins_item(&tokens[..at]) => opens = type_of_impl(&tokens[at + 1..]),
                "fn" => {
                    let Some(name) = tokens.get(at + 1) else { continue };
                    names.insert((*name).to_owned());
                    let scope = scopes.iter().rev().flatten().next();
                    for scope in scope.into_iter().chain([&file]) {
                        self.scoped.insert((scope.clone(), (*name).to_owned()));
                    }
                }
                _ => {}
            }
        }
    }

    /// The functions of a header in C or C++ are called `header::function`.
    pub fn add_header(&mut self, header: &Source) {
        let scope = module_of(&header.path);
        let tokens = tokens_of(&header.code);
        let calls = tokens.windows(2).filter(|pair| pair[1] == "(" && is_name(pair[0]));
        self.scoped.extend(calls.map(|pair| (scope.clone(), pair[0].to_owned())));
    }

    /// Whether a comment of the file at `path` may call its partner so.
    fn has(&self, name: &str, path: &str) -> bool {
        let mut parts = name.rsplit("::");
        let function = parts.next().unwrap_or(name);
        match parts.next() {
            Some(scope) => self.scoped.contains(&(scope.to_owned(), function.to_owned())),
            None => self.of_crate.get(crate_of(path)).is_some_and(|names| names.contains(function)),
        }
    }
}

/// The comments of `source` that name a partner which does not exist, or none at all.
#[must_use]
pub fn missing(source: &Source, functions: &Functions) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, comment) in comments(source) {
        let names = partners(&comment);
        for name in names.iter().filter(|name| !functions.has(name, &source.path)) {
            findings.push(Finding {
                location: format!("{}:{line}", source.path),
                message: format!("the partner `{name}` is no function here: name the one with the other half, with its type if it is in another crate"),
            });
        }
        let is_near = NEARBY.iter().any(|word| comment.contains(word));
        if names.is_empty() && !is_near {
            findings.push(Finding {
                location: format!("{}:{line}", source.path),
                message: "name the function with the other half, as `Type::function`".to_owned(),
            });
        }
    }
    findings
}

/// The comments that argue an ordering: the line on which each begins, and its text on one line.
fn comments(source: &Source) -> Vec<(usize, String)> {
    let mut blocks: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (number, text, code) in source.lines() {
        let comment = text.trim().strip_prefix("//").filter(|_| code.trim().is_empty());
        let comment = comment.filter(|rest| !rest.starts_with(['/', '!'])).map(str::trim);
        match (comment, blocks.last_mut()) {
            (Some(more), Some((_, block))) if goes_on => {
                block.push(' ');
                block.push_str(more);
            }
            (Some(first), _) => blocks.push((number, first.to_owned())),
            _ => {}
        }
        goes_on = comment.is_some();
    }
    let argues = |block: &String| {
        ["Acquire:", "Release:", "AcqRel:", "pairs with the", "pair with the"]
            .iter()
            .any(|phrase| block.contains(phrase))
    };
    blocks.retain(|(_, block)| argues(block));
    blocks
}

/// The functions that a comment names after one of [`PHRASES`], up to the end of the sentence.
fn partners(comment: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for phrase in PHRASES {
        for (at, _) in comment.match_indices(phrase) {
            let sentence = &comment[at..];
            let end = [". ", "; ", ": "].iter().filter_map(|stop| sentence.find(stop)).min();
            let sentence = &sentence[..end.unwrap_or(sentence.len())];
            let quoted = sentence.split('`').skip(1).step_by(2);
            found.extend(
                quoted.filter(|name| is_name(name) && !found.contains(name)).collect::<Vec<_>>(),
            );
        }
    }
    found
}

fn is_name(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
    };
    text.split("::").all(is_part)
}

/// The crate's folder: what is before `/src/`, `/tests/`, `/benches/` or `/examples/`.
fn crate_of(path: &str) -> &str {
    let ends =
        ["/src/", "/tests/", "/benches/", "/examples/"].iter().filter_map(|part| path.find(part));
    ends.min().map_or(path, |end| &path[..end])
}

/// The module that a file is.
fn module_of(path: &str) -> String {
    let path = path.trim_end_matches(".rs").trim_end_matches(".h").trim_end_matches("/mod");
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// Names, and every other character that is no space.
fn tokens_of(code: &str) -> Vec<&str> {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = if is_name(first) {
            rest.find(|letter| !is_name(letter))
        } else {
            Some(first.len_utf8())
        };
        let (token, behind) = rest.split_at(end.unwrap_or(rest.len()));
        tokens.push(token);
        rest = behind.trim_start();
    }
    tokens
}

/// Whether an `impl` after these tokens is a block, and not a type in a signature.
fn begins_item(before: &[&str]) -> bool {
    before.last().is_none_or(|last| matches!(*last, "}" | "{" | ";" | "]" | "unsafe"))
}

/// The type that an `impl` block is for, given what follows the keyword.
fn type_of_impl(header: &[&str]) -> Option<String> {
    let mut depth = 0_i32;
    let mut name = None;
    for (at, token) in header.iter().enumerate() {
        match *token {
            "<" => depth += 1,
            // The end of an arrow closes nothing.
            ">" if at > 0 && header[at - 1] != "-" => depth -= 1,
            "{" | "where" if depth == 0 => break,
            "for" if depth == 0 => name = None,
            token if depth == 0 && is_name(token) => name = Some(token.to_owned()),
            _ => {}
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::{Functions, missing};
    use crate::tidy::source::Source;

    fn found(comment: &str) -> Vec<String> {
        let code = "impl<T: Fn() -> u8> Deep for crate::Ring<T> where T: Copy { fn put(&self) { let x = 1; } }\ntrait Bell { fn ring(&self); }\nfn alone() -> impl Copy { 1 }";
        let sources = [
            Source::new("a/src/ring.rs", code),
            Source::new("b/src/lib.rs", format!("fn own() {{\n{comment}\n}}")),
        ];
        let functions = Functions::of(&sources);
        missing(&sources[1], &functions).into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn a_partner_that_exists_is_found() {
        for name in ["Ring::put", "Bell::ring", "ring::alone", "own", "crate::Ring::put"] {
            assert!(
                found(&format!("// Release: pairs with the Acquire load in `{name}`.")).is_empty(),
                "{name}"
            );
        }
        assert!(
            found(
                "// Acquire: pairs with the Release store\n// in `Ring::put`; `nothing` is read."
            )
            .is_empty()
        );
        assert!(found("// Acquire: pairs with the Release below.").is_empty());
        assert!(found("// Acquire: as in `own`.").is_empty());
    }

    #[test]
    fn a_partner_that_is_gone_is_reported() {
        for name in ["Ring::take", "Deep::put", "put", "Bell::own", "ring::own"] {
            let found = found(&format!("// Release: pairs with the Acquire load in `{name}`."));
            assert!(
                found.len() == 1 && found[0].starts_with("b/src/lib.rs:2: "),
                "{name}: {found:?}"
            );
        }
        assert_eq!(found("// Acquire: as in `gone`.").len(), 1);
    }

    #[test]
    fn a_comment_without_a_partner_is_reported() {
        assert_eq!(found("// Release: pairs with the Acquire load of whoever waits.").len(), 1);
        assert!(found("// Reads the word.").is_empty());
    }
}
