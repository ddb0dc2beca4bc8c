//! A package that is built alone is built from what the tests have compiled, as long as it asks for the features that the workspace asks for.
//!
//! Cargo gives a crate the features that the packages ask for that it is told to build. One feature more or less, and everything above
//! that crate is compiled a second time.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;

/// What `cargo tree --prefix none --format '{p}|{f}'` prints: each crate with its features. A crate is there more than once where macros and build
/// scripts have it with others than programs.
type Features<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// How cargo is asked, for the packages that the caller adds.
pub const TREE: [&str; 6] = ["tree", "--offline", "--prefix", "none", "--format", "{p}|{f}"];

fn features(tree: &str) -> Features<'_> {
    let mut features = Features::new();
    for line in tree.lines() {
        // After a crate that was above already.
        let line = line.strip_suffix(" (*)").unwrap_or(line);
        if let Some((of, named)) = line.split_once('|') {
            features.entry(of).or_default().insert(named);
        }
    }
    features
}

/// The crates below `package` that its build has with other features than that of the whole workspace.
#[must_use]
pub fn apart(package: &str, alone: &str, workspace: &str) -> Vec<Finding> {
    let workspace = features(workspace);
    let mut findings = Vec::new();
    for (of, named) in features(alone) {
        let there = workspace.get(of).cloned().unwrap_or_default();
        if let Some(other) = named.difference(&there).next() {
            let there: Vec<_> = there.iter().copied().collect();
            let message = format!(
                "{of} has the features [{other}], in the whole workspace [{}]: ask for the same, or the crates above it are compiled twice",
                there.join("] or [")
            );
            findings.push(Finding { location: package.to_owned(), message });
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::apart;

    #[test]
    fn a_feature_more_or_less_is_found() {
        let workspace = "top v1|\nlow v1|std\nlow v1|std\nlow v1|alloc,std (*)\nother v2|x\n";
        assert_eq!(apart("top", "top v1|\nlow v1|std (*)\n", workspace), []);
        for alone in ["low v1|", "low v1|alloc", "new v1|"] {
            let found = apart("top", alone, workspace);
            assert_eq!(found.len(), 1, "{alone}");
            assert_eq!(found[0].location, "top");
        }
        let text = apart("top", "low v1|", workspace)[0].to_string();
        assert!(
            text.contains(
                "low v1 has the features [], in the whole workspace [alloc,std] or [std]"
            ),
            "{text}"
        );
    }
}
