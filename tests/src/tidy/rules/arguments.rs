//! What the functions of the CANN interface refuse by their arguments alone is refused above every plug-in as well.

use super::super::Finding;
use super::super::source::Source;

/// The checks that the library of entry points makes: function, parameter, name, rule.
const CHECKS: &str = include_str!("../../../../bindings/acl/interface/checks.tsv");
/// The functions that the rule holds for.
const FUNCTIONS: &str = "bindings/acl/src/api/";
/// Arguments that every machine passes in registers; others are checked in the plug-in alone.
const IN_REGISTERS: usize = 6;
/// Functions with an argument that is a structure: where the others are depends on the machine.
const WITH_STRUCTURES: &[&str] = &["aclrtIpcOpenEventHandle"];
/// How a function refuses a null pointer, after the name of the argument.
const NULL: [&str; 5] = [".place(", ".get(", ".read(", ".put(", ".required("];

/// A function that returns a code: its name, its parameters, and its text from the line on that it begins at.
struct Function<'a> {
    name: &'a str,
    parameters: Vec<&'a str>,
    line: usize,
    body: String,
}

/// An argument that a function checks by itself has its check in the table.
#[must_use]
pub fn checked_arguments(source: &Source) -> Vec<Finding> {
    if !source.path.starts_with(FUNCTIONS) {
        return Vec::new();
    }
    functions(&source.code).iter().flat_map(|function| missing(source, function)).collect()
}

fn missing(source: &Source, function: &Function<'_>) -> Vec<Finding> {
    let indexed = function.parameters.iter().enumerate().take(IN_REGISTERS);
    let found = indexed.filter_map(|(index, parameter)| {
        let rule = rule_of(&function.body, parameter)?;
        let row = |row: &str| {
            let cells: Vec<&str> = row.split('\t').collect();
            cells.first() == Some(&function.name)
                && cells.get(1) == Some(&&*(index + 1).to_string())
                && cells.get(3) == Some(&rule)
        };
        if CHECKS.lines().any(row) {
            return None;
        }
        let message = format!(
            "{} refuses {parameter} by itself: give bindings/acl/interface/checks.tsv a row with `{rule}`",
            function.name
        );
        Some(Finding { location: format!("{}:{}", source.path, function.line), message })
    });
    found.collect()
}

/// The rule that a function makes for an argument.
fn rule_of(body: &str, parameter: &str) -> Option<&'static str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let uses =
        |word: String| body.match_indices(&word).any(|(at, _)| !body[..at].ends_with(is_word));
    if NULL.iter().any(|method| uses(format!("{parameter}{method}"))) {
        return Some("set");
    }
    uses(format!("limit({parameter})")).then_some("limit")
}

/// The functions that stand in `api!`: indented once, without a type after the parameters.
fn functions(code: &str) -> Vec<Function<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(offset) = code[at..].find("\n    fn ") {
        let start = at + offset + "\n    fn ".len();
        at = start;
        let Some(open) = code[start..].find('(') else { break };
        let Some(brace) = code[start..].find('{') else { break };
        let (name, head) = (&code[start..start + open], &code[start + open + 1..start + brace]);
        let end = code[start..].find("\n    }").map_or(code.len(), |end| start + end);
        let Some((parameters, "")) = head.trim_end().rsplit_once(')') else { continue };
        if WITH_STRUCTURES.contains(&name) {
            continue;
        }
        let parts = parameters.split(", ").flat_map(|part| part.split(",\n"));
        let names = parts.filter_map(|part| part.split(':').next()).map(str::trim);
        let parameters = names.filter(|name| !name.is_empty()).collect();
        let line = 1 + code[..start].matches('\n').count();
        found.push(Function { name, parameters, line, body: code[start + brace..end].to_owned() });
    }
    found
}
