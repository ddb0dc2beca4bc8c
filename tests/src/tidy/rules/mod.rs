//! The rules for one source file.

mod arguments;

use super::Finding;
use super::source::Source;

pub use arguments::checked_arguments;

/// A rule: what it does not accept in a file.
pub type Rule = fn(&Source) -> Vec<Finding>;

/// Every rule, by the name that a failure shows.
pub const ALL: &[(&str, Rule)] = &[
    ("a file opens with //!", opens_with_doc),
    ("assembly only in linker", assembly),
    ("atomics are named in abi/src/sync.rs", atomics),
    ("an Ordering names its partner", orderings),
    ("no SeqCst", sequential_consistency),
    ("unsafe code is fenced", unsafe_code),
    ("expect, not allow", allow_attributes),
    ("a question changes nothing", questions),
    ("device crates are no_std", device_roots),
    ("the CANN interface has layers", interface_layers),
    ("arguments are checked above the plug-in", checked_arguments),
];

/// The crates that the rule about atomics holds for: those whose words are shared with the device.
const ATOMIC_CRATES: &[&str] = &["abi/", "aicpu-fw/", "aicore-kernels/", "sim-shim/"];
/// Where `unsafe` may stand. Tests of `abi` and of the firmware, which forbids it, make arenas of ordinary memory.
const UNSAFE_PLACES: &[&str] = &[
    "abi/src/gm.rs",
    "operators/src/kernel/",
    // Opens a device whose kernel calls are not checked.
    "tools/bench/src/device.rs",
    // Which structures are made of atomics only.
    "abi/src/live.rs",
    "abi/tests/",
    "aicpu-fw/tests/",
    "aicore-kernels/",
    "sim-shim/",
    "host/",
    "linker/",
    "bindings/",
    // Machine code of a plugin is called.
    "tests/system/plugins.rs",
    "tests/system/raw_access.rs",
    // Calls the C interface as C does.
    "tools/fuzz/src/targets/",
    "tools/cann-device/",
];
/// Where assembly may stand.
const ASSEMBLY_PLACES: &[&str] = &[
    "linker/",
    // A jump that knows neither the arguments nor the result of a function cannot be written in Rust.
    "bindings/acl/entry/src/entries.rs",
    "bindings/acl/graph/src/lib.rs",
];
/// The layers of the CANN interface, and what none of their files may name. The entry points know no device and no object of a handle; the common library knows neither
/// the devices nor the functions above it; the functions of the interface check arguments and keep errors, so that they hold nothing, submit no
/// commands, and know no session, file or environment; no layer has thread-local variables, for which a library that is loaded late has no room on some systems.
const INTERFACE_LAYERS: &[(&str, &[&str])] = &[
    (
        "bindings/acl/entry/src/",
        &["pto_host", "pto_native", "::handles", "pto_acl::", "thread_local!"],
    ),
    (
        "bindings/acl/src/common/",
        &["pto_host", "pto_native", "crate::api", "crate::device", "thread_local!"],
    ),
    ("bindings/acl/src/device/", &["crate::api", "thread_local!"]),
    (
        "bindings/acl/src/api/",
        &[
            "pto_host",
            "pto_native",
            "Mutex",
            "OnceLock",
            "sync::atomic",
            "Table<",
            "Command",
            "Work",
            "std::fs",
            "std::env",
            "libc::",
            "thread_local!",
        ],
    ),
    ("bindings/acl/interface/src/", &["thread_local!"]),
    // It checks the host, and shares nothing with it.
    ("tools/cann-device/src/stand_in/", &["pto_host", "pto_abi", "pto_graph", "pto_examples"]),
];
/// How many lines above an ordering its comment may begin.
const COMMENT_REACH: usize = 12;

fn is_in(source: &Source, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| source.path.starts_with(prefix))
}

/// The names and keywords of a line of code.
fn words(code: &str) -> impl Iterator<Item = &str> {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    code.split(move |letter| !is_name(letter)).filter(|word| !word.is_empty())
}

/// One finding for each line whose code is `bad`.
fn lines_where(source: &Source, message: &str, bad: impl Fn(&str) -> bool) -> Vec<Finding> {
    let found = source.lines().filter(|(_, _, code)| bad(code));
    found.map(|(number, ..)| finding(source, number, message)).collect()
}

fn finding(source: &Source, line: usize, message: &str) -> Finding {
    Finding { location: format!("{}:{line}", source.path), message: message.to_owned() }
}

/// The layers of the CANN interface call nothing above them.
#[must_use]
pub fn interface_layers(source: &Source) -> Vec<Finding> {
    let layer = INTERFACE_LAYERS.iter().find(|(folder, _)| source.path.starts_with(folder));
    let Some((folder, forbidden)) = layer else { return Vec::new() };
    let found = forbidden.iter().flat_map(|name| {
        let message = format!("{folder} names no {name}: move this into the layer that may");
        lines_where(source, &message, |code| code.contains(name))
    });
    found.collect()
}

/// A file says first what it is for.
#[must_use]
pub fn opens_with_doc(source: &Source) -> Vec<Finding> {
    if source.text.starts_with("//! ") {
        return Vec::new();
    }
    vec![finding(source, 1, "say in a first line `//! ...` what the file is for")]
}

/// Assembly belongs to the images.
#[must_use]
pub fn assembly(source: &Source) -> Vec<Finding> {
    if is_in(source, ASSEMBLY_PLACES) {
        return Vec::new();
    }
    let is_assembly = |word: &str| matches!(word, "asm" | "global_asm" | "naked_asm");
    lines_where(source, "assembly belongs to linker", |code| words(code).any(is_assembly))
}

/// One module names the atomics, so that the model checkers can replace them.
#[must_use]
pub fn atomics(source: &Source) -> Vec<Finding> {
    if !is_in(source, ATOMIC_CRATES) || source.path == "abi/src/sync.rs" {
        return Vec::new();
    }
    let message = "take atomics from pto_abi::sync, which the model checkers can replace";
    lines_where(source, message, |code| words(code).any(|word| word == "atomic"))
}

/// Every ordering stronger than `Relaxed` says what it pairs with. Tests are exempt: those of the model
/// checkers break protocols on purpose.
#[must_use]
pub fn orderings(source: &Source) -> Vec<Finding> {
    if source.path.contains("/tests/") {
        return Vec::new();
    }
    let lines: Vec<_> = source.lines().collect();
    let mut findings = Vec::new();
    for (index, (number, _, code)) in lines.iter().enumerate() {
        let above = &lines[index.saturating_sub(COMMENT_REACH)..=index];
        if imports_ordering(code) {
            findings.push(finding(source, *number, "write Ordering::Release, so that it is seen"));
        } else if uses_ordering(code) && !above.iter().any(|(_, text, _)| names_partner(text)) {
            let message = "say in a comment above what the ordering pairs with";
            findings.push(finding(source, *number, message));
        }
    }
    findings
}

fn is_strong(word: &str) -> bool {
    matches!(word, "Acquire" | "Release" | "AcqRel")
}

/// `Ordering::Release`, alone or at the end of a longer path.
fn uses_ordering(code: &str) -> bool {
    code.split("Ordering::").skip(1).any(|rest| words(rest).next().is_some_and(is_strong))
}

/// `use Ordering::{Acquire, Release}` or `use Ordering::Release`.
fn imports_ordering(code: &str) -> bool {
    let is_import = words(code).any(|word| word == "use") && code.contains("Ordering::");
    is_import && words(code).any(is_strong)
}

fn names_partner(line: &str) -> bool {
    let Some((_, comment)) = line.split_once("//") else { return false };
    ["pairs with", "pair with", "Acquire:", "Release:", "AcqRel:"]
        .iter()
        .any(|phrase| comment.contains(phrase))
}

/// Nothing here needs a total order.
#[must_use]
pub fn sequential_consistency(source: &Source) -> Vec<Finding> {
    let message = "name the pair that the ordering is for: Acquire, Release or AcqRel";
    lines_where(source, message, |code| words(code).any(|word| word == "SeqCst"))
}

/// Unsafe code stands where foreign memory and foreign calls are.
#[must_use]
pub fn unsafe_code(source: &Source) -> Vec<Finding> {
    if is_in(source, UNSAFE_PLACES) {
        return Vec::new();
    }
    let message = format!("unsafe code stands in {} only", UNSAFE_PLACES.join(", "));
    lines_where(source, &message, |code| words(code).any(|word| word == "unsafe"))
}

/// An exception to a lint gives its reason, and goes when it is not needed any more.
#[must_use]
pub fn allow_attributes(source: &Source) -> Vec<Finding> {
    let is_allow = |code: &str| {
        let code = code.replace(' ', "");
        code.contains("#[allow(") || code.contains("#![allow(")
    };
    lines_where(source, "use #[expect(lint, reason = \"...\")]", is_allow)
}

/// A function called `is_*`, `was_*` or `has_*` answers, and has nothing that it could change.
#[must_use]
pub fn questions(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, at) in functions(&source.code) {
        let signature = source.code[at..].split(['{', ';']).next().unwrap_or("");
        let name = words(signature).nth(1).unwrap_or("");
        if !["is_", "was_", "has_"].iter().any(|start| name.starts_with(start)) {
            continue;
        }
        if signature.contains("&mut ") || !signature.contains("->") {
            let message = format!("{name} is a question: it answers, and takes nothing by &mut");
            findings.push(finding(source, number, &message));
        }
    }
    findings
}

/// Where each function begins: line and byte.
fn functions(code: &str) -> impl Iterator<Item = (usize, usize)> {
    let starts = code.match_indices("fn ").filter(|(at, _)| {
        code[..*at].chars().next_back().is_none_or(|before| before.is_whitespace() || before == '(')
    });
    starts.map(|(at, _)| (1 + code[..at].matches('\n').count(), at))
}

/// The crates that run on the device say that they need no std, and the firmware that it is safe.
#[must_use]
pub fn device_roots(source: &Source) -> Vec<Finding> {
    let needed: &[&str] = match source.path.as_str() {
        "abi/src/lib.rs" | "aicore-kernels/src/lib.rs" => &["#![no_std]"],
        "aicpu-fw/src/lib.rs" => &["#![no_std]", "#![forbid(unsafe_code)]"],
        _ => &[],
    };
    let missing = needed.iter().filter(|attribute| !source.code.contains(**attribute));
    missing.map(|attribute| finding(source, 1, &format!("{attribute} is missing"))).collect()
}

#[cfg(test)]
mod tests;
