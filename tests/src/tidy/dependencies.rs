//! What comes from others: which licences we take, which crates we do not, and that one version of each does
//! (docs/decisions/source-layout.md).

use std::collections::{BTreeMap, BTreeSet};

use spdx::{Expression, ParseMode};

use super::Finding;

/// Licences of what is linked into our programs: permissive ones. With `WITH`, the exception is a part of the name.
const LICENCES: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "NCSA",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates under another licence, and why that is right.
const EXCEPTIONS: &[(&str, &str)] = &[(
    "cbindgen",
    "MPL-2.0: it writes a header in a test, and is linked into nothing that is shipped",
)];

/// Crates that stay out, and what to take.
const BANNED: &[(&str, &str)] = &[
    ("bindgen", "the vendor's headers are not read; interfaces are written in Rust"),
    ("curl", "nothing here talks to a network"),
    ("hyper", "nothing here talks to a network"),
    ("native-tls", "nothing here talks to a network"),
    ("openssl-sys", "nothing here talks to a network"),
    ("reqwest", "nothing here talks to a network"),
    ("async-std", "threads and bounded steps do; there is no executor"),
];

/// Crates that stay out but for one that needs them, and why that is right.
const NEEDED_BY: &[(&str, &str)] = &[
    // Handles of one MPI are pointers, and those of another one numbers: its headers alone say which. Only the plug-in is built with it.
    ("bindgen", "mpi-sys"),
];

/// Crates that only tests and examples use, and what the library does instead.
const ONLY_FOR_TESTS: &[(&str, &str)] =
    &[("tokio", "threads and bounded steps do; only an example awaits on it")];

/// Crates of which there are several versions, because those that need them do not agree. Remove a line when they do.
const SEVERAL_VERSIONS: &[&str] = &["getrandom", "object", "shlex", "syn", "windows-sys", "winnow"];

/// A crate in the graph of dependencies.
#[derive(Clone, Debug)]
pub struct Dependency {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licences, as its manifest says.
    pub licence: Option<String>,
    /// Where it comes from; `None`: it is in this repository.
    pub source: Option<String>,
    /// The crates that need it.
    pub needed_by: BTreeSet<String>,
    /// Whether one of our crates needs it for more than its tests and examples.
    pub is_linked: bool,
}

impl Dependency {
    fn finding(&self, message: impl Into<String>) -> Finding {
        Finding { location: format!("{} {}", self.name, self.version), message: message.into() }
    }
}

/// Everything that is wrong with `all`, which has our own crates as well.
#[must_use]
pub fn unwelcome(all: &[Dependency]) -> Vec<Finding> {
    let mut findings: Vec<_> =
        all.iter().flat_map(|one| [licence(one), banned(one), source(one)]).flatten().collect();
    findings.extend(versions(all));
    findings
}

fn licence(one: &Dependency) -> Option<Finding> {
    // Our own crates say theirs in the workspace; the firmware for users to copy says none.
    if one.source.is_none() || EXCEPTIONS.iter().any(|(name, _)| *name == one.name) {
        return None;
    }
    let Some(text) = &one.licence else {
        return Some(
            one.finding("its manifest names no licence: ask its authors, or take another crate"),
        );
    };
    let Ok(expression) = Expression::parse_mode(text, ParseMode::LAX) else {
        return Some(one.finding(format!("\"{text}\" is no expression of SPDX")));
    };
    let is_accepted = expression.evaluate(|wanted| LICENCES.contains(&wanted.to_string().as_str()));
    (!is_accepted).then(|| {
        one.finding(format!(
            "its licence is {text}: take another crate, or say in dependencies.rs why it is right"
        ))
    })
}

fn banned(one: &Dependency) -> Option<Finding> {
    let is_right = |(name, by): &(&str, &str)| {
        *name == one.name && one.needed_by.len() == 1 && one.needed_by.contains(*by)
    };
    if NEEDED_BY.iter().any(is_right) {
        return None;
    }
    let of_tests = ONLY_FOR_TESTS.iter().filter(|_| one.is_linked);
    let (_, instead) = BANNED.iter().chain(of_tests).find(|(name, _)| *name == one.name)?;
    Some(one.finding(format!("it is banned: {instead}")))
}

fn source(one: &Dependency) -> Option<Finding> {
    let source = one.source.as_deref()?;
    // The registry's name is the same everywhere; the mirror follows it.
    let is_registry = source.starts_with("registry+") && source.ends_with("/crates.io-index");
    (!is_registry)
        .then(|| one.finding(format!("it comes from {source}: take a release from crates.io")))
}

fn versions(all: &[Dependency]) -> Vec<Finding> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for one in all {
        versions.entry(&one.name).or_default().insert(&one.version);
    }
    let finding =
        |location: &str, message: String| Finding { location: location.to_owned(), message };
    let several = versions.iter().filter(|(_, held)| held.len() > 1);
    let new =
        several.clone().filter(|(name, _)| !SEVERAL_VERSIONS.contains(name)).map(|(name, held)| {
            let held: Vec<_> = held.iter().copied().collect();
            finding(
                name,
                format!("there are versions {}: take one that all agree on", held.join(" and ")),
            )
        });
    let several: BTreeSet<_> = several.clone().map(|(name, _)| *name).collect();
    let gone = SEVERAL_VERSIONS.iter().filter(|name| !several.contains(*name)).map(|name| {
        finding(
            name,
            "there is one version of it now: remove it from SEVERAL_VERSIONS in dependencies.rs"
                .into(),
        )
    });
    new.chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::{Dependency, SEVERAL_VERSIONS, unwelcome};
    use std::collections::BTreeSet;

    const REGISTRY: &str = "registry+https://example.org/crates.io-index";

    fn one(name: &str, version: &str, licence: &str) -> Dependency {
        let source = Some(REGISTRY.to_owned());
        let licence = (!licence.is_empty()).then(|| licence.to_owned());
        Dependency {
            name: name.to_owned(),
            version: version.to_owned(),
            licence,
            source,
            needed_by: BTreeSet::new(),
            is_linked: true,
        }
    }

    /// What is said of `more`, besides the crates of which several versions are accepted.
    fn said(more: &[Dependency]) -> String {
        let accepted = SEVERAL_VERSIONS
            .iter()
            .flat_map(|name| [one(name, "1.0.0", "MIT"), one(name, "2.0.0", "MIT")]);
        let all: Vec<_> = accepted.chain(more.iter().cloned()).collect();
        unwelcome(&all).iter().map(|finding| format!("{finding}\n")).collect()
    }

    #[test]
    fn what_one_crate_may_need_no_other_may() {
        let needed_by = |names: &[&str]| Dependency {
            needed_by: names.iter().map(ToString::to_string).collect(),
            ..one("bindgen", "1.0.0", "MIT")
        };
        assert_eq!(said(&[needed_by(&["mpi-sys"])]), "");
        for others in [&[][..], &["pto-host"], &["mpi-sys", "pto-host"]] {
            assert!(said(&[needed_by(others)]).contains("it is banned"), "{others:?}");
        }
    }

    #[test]
    fn licences_are_read_as_expressions() {
        for good in
            ["MIT", "MIT OR GPL-3.0-only", "MIT/Apache-2.0", "(MIT OR Apache-2.0) AND Unicode-3.0"]
        {
            assert_eq!(said(&[one("a", "1.0.0", good)]), "", "{good}");
        }
        for bad in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "LGPL-2.1-or-later", "nonsense", ""] {
            assert!(said(&[one("a", "1.0.0", bad)]).starts_with("a 1.0.0: "), "{bad}");
        }
    }

    #[test]
    fn crates_that_stay_out_are_told_with_what_to_take() {
        assert!(said(&[one("tokio", "1.0.0", "MIT")]).contains("it is banned: threads"));
        let for_tests = Dependency { is_linked: false, ..one("tokio", "1.0.0", "MIT") };
        assert_eq!(said(&[for_tests]), "");
        assert!(said(&[one("reqwest", "1.0.0", "MIT")]).contains("it is banned: nothing"));
        let mut strange = one("a", "1.0.0", "MIT");
        strange.source = Some("git+https://example.org/a".to_owned());
        assert!(said(&[strange.clone()]).contains("take a release"));
        strange.source = None;
        assert_eq!(said(&[strange]), "");
    }

    #[test]
    fn a_second_version_is_told_and_so_is_a_line_that_nobody_needs() {
        let two = [one("a", "1.0.0", "MIT"), one("a", "2.0.0", "MIT")];
        assert!(said(&two).contains("versions 1.0.0 and 2.0.0"));
        assert!(unwelcome(&[]).iter().all(|finding| finding.message.contains("remove it")));
        assert_eq!(unwelcome(&[]).len(), SEVERAL_VERSIONS.len());
    }
}
