//! Pages of decisions state whether they hold and which code they bind, and what sources say of them leads to a page.

use super::Finding;
use super::source::Source;

const FOLDER: &str = "docs/decisions/";

/// Whether this is the page of a decision. The index is generated.
#[must_use]
pub fn is_page(path: &str) -> bool {
    path.starts_with(FOLDER) && path != "docs/decisions/index.md"
}

/// What a page lacks: its status, its date, and paths of code that it binds. `exists` judges a path from the workspace's folder.
pub fn incomplete(page: &Source, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |number: usize, message: String| {
        findings.push(Finding { location: format!("{}:{number}", page.path), message });
    };
    let line = |start: &str| (1..).zip(page.text.lines()).find(|(_, line)| line.starts_with(start));
    match line("Status: ") {
        Some((_, status)) if holds(status) => (),
        Some((number, _)) => add(number, "write 'Status: in force.' or 'Status: superseded by [..](..).', then 'Decided: 2026-11-20.'".to_owned()),
        None => add(1, "it has no line 'Status: '".to_owned()),
    }
    let Some((number, binds)) = line("Binds: ") else {
        add(1, "it has no line 'Binds: ' with paths of the code that it binds".to_owned());
        return findings;
    };
    // Every second part stands between backticks.
    let paths: Vec<_> = binds.split('`').skip(1).step_by(2).collect();
    if paths.is_empty() {
        add(number, "it binds no code: name a file or a folder in backticks".to_owned());
    }
    for path in paths.iter().filter(|path| !exists(path)) {
        add(number, format!("it binds {path}, which does not exist"));
    }
    findings
}

fn holds(status: &str) -> bool {
    let state = status.trim_start_matches("Status: ");
    let dated = status.split_once("Decided: ").is_some_and(|(_, date)| {
        date.len() >= 10 && date[..10].split('-').all(|part| part.parse::<u32>().is_ok())
    });
    dated && (state.starts_with("in force. ") || state.starts_with("superseded by ["))
}

/// The pages that a source names and that do not exist.
pub fn unknown(source: &Source, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(source.text.lines()) {
        for rest in line.split(FOLDER).skip(1) {
            let is_name = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
            let end = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
            let name = rest[..end].trim_end_matches('.');
            if !name.is_empty() && !exists(&format!("{FOLDER}{name}")) {
                let message = format!("it names {FOLDER}{name}, which does not exist");
                findings.push(Finding { location: format!("{}:{number}", source.path), message });
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{FOLDER, incomplete, is_page, unknown};
    use crate::tidy::source::Source;

    const PAGE: &str = "# A\n\nStatus: in force. Decided: 2026-11-20. Theme: Memory.\n\n";

    fn found(text: &str) -> Vec<String> {
        let page = Source::new(format!("{FOLDER}a.md"), text);
        incomplete(&page, |path| path == "abi/src/gm.rs").iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_page_that_binds_what_is_there_is_fine() {
        assert_eq!(found(&format!("{PAGE}Binds: `abi/src/gm.rs`.\n")), Vec::<String>::new());
        let superseded = "Status: superseded by [b](b.md). Decided: 2026-11-20. Theme: Memory.";
        assert_eq!(found(&format!("{superseded}\nBinds: `abi/src/gm.rs`.")), Vec::<String>::new());
        assert!(is_page(&format!("{FOLDER}a.md")) && !is_page(&format!("{FOLDER}index.md")));
    }

    #[test]
    fn what_a_page_lacks_is_found() {
        let gone = format!("{FOLDER}a.md:5: it binds abi/src/gone.rs, which does not exist");
        assert_eq!(found(&format!("{PAGE}Binds: `abi/src/gm.rs`, `abi/src/gone.rs`.")), [gone]);
        let none =
            format!("{FOLDER}a.md:5: it binds no code: name a file or a folder in backticks");
        assert_eq!(found(&format!("{PAGE}Binds: everything.")), [none]);
        assert_eq!(found(PAGE).len(), 1);
        assert_eq!(
            found("# A\n\nStatus: in force. Theme: Memory.\nBinds: `abi/src/gm.rs`").len(),
            1
        );
        assert_eq!(found("Status: old. Decided: 2026-11-20.\nBinds: `abi/src/gm.rs`").len(), 1);
        assert_eq!(found("# A\n").len(), 2);
    }

    #[test]
    fn a_page_that_a_source_names_exists() {
        let found = |text: String| {
            let source = Source::new("a.rs", text);
            unknown(&source, |path| path.ends_with("/pool.md")).len()
        };
        assert_eq!(found(format!("// {FOLDER}pool.md, and {FOLDER}pool.md.")), 0);
        assert_eq!(found(format!("// {FOLDER}0046: {FOLDER}gone.md")), 2);
        assert_eq!(found(format!("join(\"{FOLDER}\")")), 0);
    }
}
