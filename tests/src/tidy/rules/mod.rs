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
    ("names say what a thing is", vague_names),
    ("a question changes nothing", questions),
    ("a recording is a build that is kept", recordings),
    ("a shape is a tensor's extents", shapes),
    ("device crates are no_std", device_roots),
    ("the CANN interface has layers", interface_layers),
    ("arguments are checked above the plug-in", checked_arguments),
];

/// The crates that the rule about atomics holds for: those whose words are shared with the device.
const ATOMIC_CRATES: &[&str] = &["abi/", "aicpu-fw/", "aicore-kernels/", "sim-shim/"];
/// Where `unsafe` may stand. Tests of `abi` and of the firmware, which forbids it, make arenas of ordinary memory.
const UNSAFE_PLACES: &[&str] = &[
    "abi/src/gm.rs",
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
];
/// Where assembly may stand.
const ASSEMBLY_PLACES: &[&str] = &[
    "linker/",
    // A jump that knows neither the arguments nor the result of a function cannot be written in Rust.
    "bindings/acl/entry/src/entries.rs",
];
/// The layers of the CANN interface, and what none of their files may name. The entry points know no device and no object of a handle; the common library knows neither
/// the devices nor the functions above it; the functions of the interface check arguments and keep errors, so that they hold nothing, submit no
/// commands, and know no session, file or environment; no layer has thread-local variables, for which a library that is loaded late has no room on some systems.
const INTERFACE_LAYERS: &[(&str, &[&str])] = &[
    (
        "bindings/acl/entry/src/",
        &["pto_host", "pto_native", "pto_handles", "pto_acl_a2a3sim", "thread_local!"],
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
    ("bindings/acl/handles/src/", &["thread_local!"]),
];
/// How many lines above an ordering its comment may begin.
const COMMENT_REACH: usize = 12;
/// Where builds are recorded, to be built again, and may be called so.
const RECORDING_PLACES: &[&str] = &[
    "abi/src/session/mod.rs",
    "abi/src/session/recording.rs",
    "aicpu-fw/src/resident/replay.rs",
    "aicpu-fw/src/stream/builder/mod.rs",
    "aicpu-fw/src/stream/builder/record.rs",
    "aicpu-fw/src/stream/recording",
    "aicpu-fw/tests/stream/ranges.rs",
    "aicpu-fw/tests/stream/replay.rs",
    "aicpu-fw/tests/stream/stuck.rs",
    "bindings/foreign/src/build.rs",
    "examples/src/task_shapes/",
    "graph/src/lib.rs",
    "graph/src/stream.rs",
    "graph/src/tensor.rs",
    "host/src/session/mod.rs",
    "host/src/session/",
    "host/src/stitch/of_recording.rs",
    "host/tests/device/sessions/",
    "host/tests/device/stitching/mod.rs",
    "host/tests/device/block_shapes/replays.rs",
    "host/tests/device/streaming/pieces.rs",
    "sim-shim/src/builders/beside.rs",
    "tests/system/held/",
    "tools/bench/benches/submission/",
    "tools/bench/src/sessions/mod.rs",
    "tools/bench/src/stream.rs",
    // A graph file is a build that is kept, and is built again from the file.
    "tools/check/",
    "tools/cli/src/program.rs",
    "tools/cli/src/programs.rs",
    "tools/cli/src/dump.rs",
    "tools/cli/tests/command/checks.rs",
    "tools/fuzz/src/targets/plan.rs",
    "sim-shim/src/virtual_time/soak/derived.rs",
];
/// Where events of streams are recorded, as the field says (`aclrtRecordEvent`).
const EVENT_PLACES: &[&str] = &[
    "abi/src/session/command.rs",
    "aicpu-fw/src/resident/visit.rs",
    "bindings/acl/",
    "bindings/c/src/handle.rs",
    "bindings/c/src/kernel_stream.rs",
    "bindings/native/src/stitch/",
    "bindings/python/src/kernel_stream.rs",
    "host/src/group/submitters.rs",
    "host/src/session/",
    "host/src/stitch/stream.rs",
    "host/tests/device/sessions/",
    "linker/cann/image/tests/images/sessions.rs",
    "tests/system/abandoned.rs",
    "tests/system/virt.rs",
    "tools/bench/src/sessions/",
    "host/examples/serve",
    "tools/cli/tests/command/mpi/sessions.rs",
    // Calls of `aclrt*` are kept and made again; other tools for such interfaces call this record and replay, too.
    "tools/cli/src/acl.rs",
    "tools/cli/src/args/acl.rs",
];
/// Names of other people's interfaces: the crate `log`, and the field's class `Runtime`.
const FOREIGN_NAMES: &[&str] = &["log::Record", "record_tensor_pair", "record_device_alloc"];
/// The words that belong to recordings.
const WORDS_OF_RECORDINGS: &[&str] = &["record", "records", "recorder", "recorders", "recorded"];
/// Where a shape that is declared is that of tensors: the sizes of an example's problem, and the example of tasks with block shapes.
const SHAPE_PLACES: &[&str] = &["examples/src/", "bindings/field/tests/field/main.rs"];
/// Words that say nothing about a thing.
const VAGUE: &[&str] =
    &["manager", "managers", "helper", "helpers", "util", "utils", "utility", "utilities"];

fn is_in(source: &Source, places: &[&str]) -> bool {
    places.iter().any(|place| source.path.starts_with(place))
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
    Finding { place: format!("{}:{line}", source.path), message: message.to_owned() }
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

/// What is kept of a build, to be built again, is a recording. Everything else has a name of its own.
#[must_use]
pub fn recordings(source: &Source) -> Vec<Finding> {
    if is_in(source, RECORDING_PLACES) || is_in(source, EVENT_PLACES) {
        return Vec::new();
    }
    let message = "a recording is a build that is kept, to be built again: call other things by what they are";
    lines_where(source, message, |code| {
        let ours = FOREIGN_NAMES.iter().fold(code.to_owned(), |code, name| code.replace(name, ""));
        words(&ours).any(speaks_of_recordings)
    })
}

/// Whether a part of the name is `record`, `records`, `recorder` or `recorded`.
fn speaks_of_recordings(name: &str) -> bool {
    parts_of(name).iter().any(|part| WORDS_OF_RECORDINGS.contains(&part.as_str()))
}

/// Where each function begins: line and byte.
fn functions(code: &str) -> impl Iterator<Item = (usize, usize)> {
    let starts = code.match_indices("fn ").filter(|(at, _)| {
        code[..*at].chars().next_back().is_none_or(|before| before.is_whitespace() || before == '(')
    });
    starts.map(|(at, _)| (1 + code[..at].matches('\n').count(), at))
}

/// A type or module is called by what it is.
#[must_use]
pub fn vague_names(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let stem = source.path.rsplit('/').next().unwrap_or("").trim_end_matches(".rs");
    if is_vague(stem) {
        findings.push(finding(source, 1, "the file's name does not say what is in it"));
    }
    for (number, _, code) in source.lines() {
        let words: Vec<_> = words(code).collect();
        for pair in words.windows(2) {
            if is_declaration(pair[0]) && is_vague(pair[1]) {
                let message = format!("{} does not say what it is", pair[1]);
                findings.push(finding(source, number, &message));
            }
        }
    }
    findings
}

fn is_vague(name: &str) -> bool {
    parts_of(name).iter().any(|part| VAGUE.contains(&part.as_str()))
}

/// A shape is the extents of a tensor. What a task needs beyond one kernel on one core is its block shape, and a type or module
/// for it is called so.
#[must_use]
pub fn shapes(source: &Source) -> Vec<Finding> {
    if is_in(source, SHAPE_PLACES) {
        return Vec::new();
    }
    let message = "a shape is the extents of a tensor: call this a block shape, or by what it is";
    lines_where(source, message, |code| {
        let words: Vec<_> = words(code).collect();
        words.windows(2).any(|pair| is_declaration(pair[0]) && speaks_of_shapes(pair[1]))
    })
}

/// Whether `shape` or `shapes` is a part of the name, and no `block` stands before it.
fn speaks_of_shapes(name: &str) -> bool {
    let parts = parts_of(name);
    let is_shape = |at: &usize| matches!(parts[*at].as_str(), "shape" | "shapes");
    let is_of_blocks = |at: usize| at.checked_sub(1).is_some_and(|at| parts[at] == "block");
    (0..parts.len()).filter(is_shape).any(|at| !is_of_blocks(at))
}

fn is_declaration(word: &str) -> bool {
    matches!(word, "struct" | "enum" | "trait" | "type" | "mod" | "union")
}

/// The words that a name is made of, in small letters: of `TraceLane`, `trace_lane` and `TRACE_LANE` the same.
fn parts_of(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_small = true;
    for letter in name.chars() {
        if letter == '_' || (letter.is_uppercase() && was_small) {
            parts.push(String::new());
        }
        was_small = !letter.is_uppercase();
        if let Some(part) = parts.last_mut() {
            part.extend(letter.to_lowercase().filter(|letter| *letter != '_'));
        }
    }
    parts
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
