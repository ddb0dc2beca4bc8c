//! Relative links in documentation lead to files.

use super::Finding;
use super::source::Source;

/// The relative links of a page whose target does not exist. `exists` judges a path from the workspace's
/// folder.
pub fn broken(page: &Source, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let folder = page.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut findings = Vec::new();
    for (number, target) in targets(&page.text) {
        let file = target.split('#').next().unwrap_or("");
        if is_elsewhere(target) || file.is_empty() {
            continue;
        }
        let path = match file.strip_prefix('/') {
            Some(from_root) => from_root.to_owned(),
            None => format!("{folder}/{file}").trim_start_matches('/').to_owned(),
        };
        if !exists(&path) {
            findings.push(Finding {
                place: format!("{}:{number}", page.path),
                message: format!("the link leads to {target}, which does not exist"),
            });
        }
    }
    findings
}

/// Marks of a template that nobody has replaced: `@@NAME@@`.
pub fn unreplaced(page: &Source) -> Vec<Finding> {
    let lines = (1..).zip(page.text.lines());
    let marked = lines.filter(|(_, line)| line.split("@@").nth(1).is_some_and(is_mark));
    let finding = |(number, line): (usize, &str)| Finding {
        place: format!("{}:{number}", page.path),
        message: format!("the mark in '{line}' stands for something that nobody has written"),
    };
    marked.map(finding).collect()
}

fn is_mark(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
}

fn is_elsewhere(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

/// The targets of the links on a page, with their lines; what stands in code is left out.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut targets = Vec::new();
    let mut in_code = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            // Every second part stands between backticks.
            let prose = line.split('`').step_by(2);
            targets.extend(prose.flat_map(targets_of).map(|target| (number, target)));
            targets.extend(definition(line).map(|target| (number, target)));
        }
    }
    targets
}

/// `b` of each `[a](b "title")`. The text of a link may have been cut off with its code.
fn targets_of(prose: &str) -> Vec<&str> {
    let links = prose.split("](").skip(1);
    let inside = links.filter_map(|rest| rest.split_once(')')).map(|(inside, _)| inside);
    inside.filter_map(|inside| inside.split_whitespace().next()).collect()
}

/// `b` of `[a]: b`.
fn definition(line: &str) -> Option<&str> {
    let (_, target) = line.strip_prefix('[')?.split_once("]: ")?;
    target.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::broken;
    use crate::tidy::source::Source;

    fn found(text: &str) -> Vec<String> {
        let page = Source::new("docs/page.md", text);
        let exists = |path: &str| path == "docs/there.md" || path == "docs/../README.md";
        broken(&page, exists).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn marks_of_templates_are_found() {
        let found = |text: &str| super::unreplaced(&Source::new("docs/page.md", text)).len();
        assert_eq!(found("a\n\n@@TABLE@@\n"), 1);
        assert_eq!(found("a@@b.c, @@ -1,2 +1,2 @@, @DATA@\n"), 0);
    }

    #[test]
    fn a_broken_link_is_found() {
        let message = "the link leads to gone.md#part, which does not exist";
        assert_eq!(found("x\nsee [it](gone.md#part)."), [format!("docs/page.md:2: {message}")]);
        assert_eq!(found("[a](there.md) ![b](gone.png \"title\")").len(), 1);
        assert_eq!(found("[`code`](gone.md)").len(), 1);
        assert_eq!(found("[a]: gone.md").len(), 1);
        assert_eq!(found("[a](/there.md)").len(), 1);
    }

    #[test]
    fn links_that_lead_somewhere_or_elsewhere_are_fine() {
        let text = "[a](there.md#x) [b](../README.md) [c](https://example.org) [d](#here)\n\
                    `[e](gone.md)`\n```\n[f](gone.md)\n```\n[g]: there.md";
        assert_eq!(found(text), Vec::<String>::new());
    }
}
