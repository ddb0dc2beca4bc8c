//! Relative links in documentation lead to files and to parts of pages, and every page is near README.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::source::Source;

/// The relative links of a page whose target does not exist. `exists` judges a path from the workspace's
/// folder.
pub fn broken(page: &Source, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, target) in targets(&page.text) {
        let file = target.split('#').next().unwrap_or("");
        if is_elsewhere(target) || file.is_empty() {
            continue;
        }
        let path = path_of(page, file);
        if !exists(&path) {
            findings.push(Finding {
                location: format!("{}:{number}", page.path),
                message: format!("the link leads to {target}, which does not exist"),
            });
        }
    }
    findings
}

/// The links whose page exists and has no such part, `page.md#part`.
pub fn without_part(pages: &[Source]) -> Vec<Finding> {
    let parts: BTreeMap<_, _> =
        pages.iter().map(|page| (page.path.clone(), parts_of(&page.text))).collect();
    let mut findings = Vec::new();
    for page in pages {
        for (number, target) in targets(&page.text) {
            let Some((file, part)) = target.split_once('#').filter(|_| !is_elsewhere(target))
            else {
                continue;
            };
            let path =
                if file.is_empty() { page.path.clone() } else { normal(&path_of(page, file)) };
            if parts.get(&path).is_some_and(|parts| !parts.contains(part)) {
                let location = format!("{}:{number}", page.path);
                findings.push(Finding { location, message: format!("{path} has no part #{part}") });
            }
        }
    }
    findings
}

/// The pages to which more than `steps` links lead from the page `start`, and those to which none leads.
pub fn out_of_reach(pages: &[Source], start: &str, steps: usize) -> Vec<Finding> {
    let mut reached = BTreeSet::from([start.to_owned()]);
    for _ in 0..steps {
        let from = pages.iter().filter(|page| reached.contains(&page.path));
        let links =
            from.flat_map(|page| targets(&page.text).into_iter().map(move |it| (page, it.1)));
        let paths = links.map(|(page, target)| {
            normal(&path_of(page, target.split('#').next().unwrap_or_default()))
        });
        let paths: Vec<_> = paths.collect();
        reached.extend(paths);
    }
    let far = pages.iter().filter(|page| !reached.contains(&page.path));
    let message = format!("{steps} links do not lead from {start} here: list the page");
    far.map(|page| Finding { location: page.path.clone(), message: message.clone() }).collect()
}

/// The file of a link, from the workspace's folder.
fn path_of(page: &Source, file: &str) -> String {
    let folder = page.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    match file.strip_prefix('/') {
        Some(from_root) => from_root.to_owned(),
        None => format!("{folder}/{file}").trim_start_matches('/').to_owned(),
    }
}

/// A path without `..`.
fn normal(path: &str) -> String {
    let mut plain = Vec::new();
    for part in path.split('/') {
        match part {
            "." => (),
            ".." => drop(plain.pop()),
            _ => plain.push(part),
        }
    }
    plain.join("/")
}

/// What `#` may name on a page: its headings, as GitHub and mdBook call them, and its anchors.
fn parts_of(text: &str) -> BTreeSet<String> {
    let mut parts = BTreeSet::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code && line.starts_with('#') {
            parts.insert(name_of(line.trim_start_matches('#')));
        }
        let anchors = line.split("<a id=\"").skip(1).filter_map(|rest| rest.split_once('"'));
        parts.extend(anchors.map(|(name, _)| name.to_owned()));
    }
    parts
}

fn name_of(heading: &str) -> String {
    let is_kept = |letter: &char| letter.is_alphanumeric() || " -_".contains(*letter);
    let kept: String = heading.trim().chars().filter(is_kept).collect();
    kept.to_lowercase().replace(' ', "-")
}

/// Marks of a template that nobody has replaced: `@@NAME@@`.
pub fn unreplaced(page: &Source) -> Vec<Finding> {
    let lines = (1..).zip(page.text.lines());
    let marked = lines.filter(|(_, line)| line.split("@@").nth(1).is_some_and(is_mark));
    let finding = |(number, line): (usize, &str)| Finding {
        location: format!("{}:{number}", page.path),
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

/// The targets of the links on a page, with their lines; what is in code is left out.
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
    use super::{broken, out_of_reach, without_part};
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
    fn a_link_to_a_part_that_is_not_there_is_found() {
        let there = Source::new("docs/there.md", "# A `b`: c\n<a id=\"d\">\n```\n# e\n```\n");
        let text = "[x](there.md#a-b-c) [x](there.md#d) [x](there.md#e) [x](#f)\n";
        let pages = [there, Source::new("docs/page.md", text)];
        let found: Vec<_> = without_part(&pages).iter().map(ToString::to_string).collect();
        let none = |path, part| format!("docs/page.md:1: {path} has no part #{part}");
        assert_eq!(found, [none("docs/there.md", "e"), none("docs/page.md", "f")]);
    }

    #[test]
    fn a_page_that_is_too_far_away_is_found() {
        let page = |path: &str, text: &str| Source::new(path, text);
        let pages = [
            page("README.md", "[a](docs/a.md)"),
            page("docs/a.md", "[b](x/b.md#part)"),
            page("docs/x/b.md", "[c](../c.md)"),
            page("docs/c.md", ""),
            page("docs/alone.md", ""),
        ];
        let found = |steps| {
            let found = out_of_reach(&pages, "README.md", steps);
            found.into_iter().map(|finding| finding.location).collect::<Vec<_>>()
        };
        assert_eq!(found(2), ["docs/c.md", "docs/alone.md"]);
        assert_eq!(found(3), ["docs/alone.md"]);
    }

    #[test]
    fn links_that_lead_somewhere_or_elsewhere_are_fine() {
        let text = "[a](there.md#x) [b](../README.md) [c](https://example.org) [d](#here)\n\
                    `[e](gone.md)`\n```\n[f](gone.md)\n```\n[g]: there.md";
        assert_eq!(found(text), Vec::<String>::new());
    }
}
