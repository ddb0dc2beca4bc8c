//! `acceptance --cann-headers DIR`: the sizes and offsets that this project assumes, against the headers that a user has.
//!
//! `bindings/acl/interface/layouts.tsv` lists the structures. Each is looked for in the headers below the folder, and a compiler compares it. Nothing of
//! the headers is in the project, and nothing of them is kept. The conformance suite is compiled against them too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Columns: structure, bytes, fields with their offsets, whether our headers have it.
const TABLE: &str = include_str!("../../../bindings/acl/interface/layouts.tsv");

/// The sources of the conformance suite.
const SUITE: &[&str] =
    &["main.c", "basics.c", "streams.c", "memory.c", "order.c", "kernels.c", "tiles.c", "rest.c"];

/// A structure as the table has it.
struct TableLayout {
    name: &'static str,
    bytes: &'static str,
    fields: Vec<(&'static str, &'static str)>,
    is_ours: bool,
}

/// What the headers say of a structure.
#[derive(Debug, PartialEq, Eq)]
enum HeaderMatch {
    Same,
    /// Size and offsets are not all the same, or do not compile: what the compiler says first.
    Differs(String),
    /// No header ends a structure with this name.
    Missing,
}

/// Compares every structure with the headers below `folder`.
pub(crate) fn run(target: &Path, folder: &Path) -> Result<(), String> {
    let headers = headers(folder)?;
    let work = target.join("acceptance-cann-headers");
    fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
    let outcomes = compare(layouts(), &headers, &work)?;
    let mut counts = [0; 3];
    for (layout, outcome) in &outcomes {
        let (index, text) = match outcome {
            HeaderMatch::Same => (0, format!("{} bytes, the same", layout.bytes)),
            HeaderMatch::Differs(why) => (1, format!("differs: {why}")),
            HeaderMatch::Missing if layout.is_ours => (2, "in no header".to_owned()),
            HeaderMatch::Missing => (2, "in no header; it is of the driver's packages".to_owned()),
        };
        counts[index] += 1;
        println!("{:32} {text}", layout.name);
    }
    let [same, different, missing] = counts;
    println!(
        "the same: {same}; different: {different}; in no header of {}: {missing}",
        folder.display()
    );
    match (same, different) {
        (_, 1..) => Err(format!("structures that differ: {different}")),
        (0, _) => Err(format!(
            "{} has none of the structures; name the folder of the headers",
            folder.display()
        )),
        _ => compile_suite(&headers),
    }
}

/// The conformance suite with the headers of the user, where `acl/acl.h` is among them.
fn compile_suite(headers: &[(PathBuf, String)]) -> Result<(), String> {
    let Some((header, _)) = headers.iter().find(|(path, _)| path.ends_with("acl/acl.h")) else {
        println!("the conformance suite: not compiled, because there is no acl/acl.h");
        return Ok(());
    };
    let folder = header.ancestors().nth(2).expect("a folder above acl");
    for source in SUITE {
        let mut command = Command::new("cc");
        command.args(["-D_GNU_SOURCE", "-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]);
        // The vendor calls some functions old; programs call them.
        command.arg("-Wno-deprecated-declarations").arg("-isystem").arg(folder);
        let source = crate::root::root().join("bindings/acl/tests/c/conformance").join(source);
        let output = command.arg(&source).output();
        let output = output.map_err(|error| format!("cc cannot be started: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{} does not compile: {said}", source.display()));
        }
    }
    println!("the conformance suite: {} sources compile", SUITE.len());
    Ok(())
}

fn layouts() -> Vec<TableLayout> {
    let layout = |row: &'static str| {
        let [name, bytes, fields, origin] = row.split('\t').collect::<Vec<_>>().try_into().ok()?;
        let fields = fields.split_whitespace().map(|field| field.split_once('@'));
        Some(TableLayout {
            name,
            bytes,
            fields: fields.collect::<Option<_>>()?,
            is_ours: origin == "ours",
        })
    };
    let read = |row| layout(row).unwrap_or_else(|| panic!("no structure: {row:?}"));
    TABLE.lines().skip(1).map(read).collect()
}

/// Every header below a folder, with its text.
fn headers(folder: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let folder = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
    let (mut found, mut left) = (Vec::new(), vec![folder]);
    while let Some(folder) = left.pop() {
        let entries =
            fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for entry in entries {
            let entry = entry.map_err(|error| error.to_string())?;
            let (path, kind) =
                (entry.path(), entry.file_type().map_err(|error| error.to_string())?);
            if kind.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|ending| ending == "h") {
                // A header with another encoding still has its names.
                let bytes =
                    fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                found.push((path, String::from_utf8_lossy(&bytes).into_owned()));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn compare(
    layouts: Vec<TableLayout>,
    headers: &[(PathBuf, String)],
    work: &Path,
) -> Result<Vec<(TableLayout, HeaderMatch)>, String> {
    let compared = layouts.into_iter().map(|layout| {
        let outcome = outcome(&layout, headers, work)?;
        Ok((layout, outcome))
    });
    compared.collect()
}

/// Of several headers that define a structure, one that agrees counts: others may be of other programs.
fn outcome(
    layout: &TableLayout,
    headers: &[(PathBuf, String)],
    work: &Path,
) -> Result<HeaderMatch, String> {
    let mut first = HeaderMatch::Missing;
    for (path, _) in headers.iter().filter(|(_, text)| defines(text, layout.name)) {
        let outcome = compile(layout, path, headers, work)?;
        if outcome == HeaderMatch::Same {
            return Ok(outcome);
        }
        if first == HeaderMatch::Missing {
            first = outcome;
        }
    }
    Ok(first)
}

/// Whether a text ends a structure or a union with this name: `} NAME;`, or begins one: `struct NAME {`.
fn defines(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (text[..at].trim_end(), text[at + name.len()..].trim_start());
        before.ends_with('}') && after.starts_with(';')
            || (before.ends_with("struct") || before.ends_with("union")) && after.starts_with('{')
    })
}

fn compile(
    layout: &TableLayout,
    header: &Path,
    headers: &[(PathBuf, String)],
    work: &Path,
) -> Result<HeaderMatch, String> {
    let TableLayout { name, bytes, fields, .. } = layout;
    let mut text = format!(
        "#include <cstddef>\n#include <cstdint>\n#include \"{}\"\nstatic_assert(sizeof({name}) == {bytes}, \"the size of {name} is not {bytes}\");\n",
        header.display()
    );
    for (field, offset) in fields {
        text += &format!(
            "static_assert(offsetof({name}, {field}) == {offset}, \"{name}::{field} does not stand at {offset}\");\n"
        );
    }
    let source = work.join(format!("{name}.cpp"));
    fs::write(&source, text).map_err(|error| format!("{}: {error}", source.display()))?;
    let mut command = Command::new("c++");
    command.args(["-std=c++17", "-fsyntax-only", "-w", "-Wno-invalid-offsetof"]);
    for folder in folders(header, headers) {
        command.arg("-I").arg(folder);
    }
    let output = command.arg(&source).output();
    let output = output.map_err(|error| format!("c++ cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(HeaderMatch::Same);
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = said.lines().find(|line| line.contains("error")).unwrap_or(&said);
    Ok(HeaderMatch::Differs(line.rsplit("error: ").next().unwrap_or(line).to_owned()))
}

/// Where a header may look for others: the folders above it, and those that headers are in, the nearest first.
fn folders(header: &Path, headers: &[(PathBuf, String)]) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = headers
        .iter()
        .flat_map(|(path, _)| path.ancestors().skip(1).take(4))
        .map(Path::to_path_buf)
        .collect();
    all.sort();
    all.dedup();
    let shared = |folder: &PathBuf| {
        folder.components().zip(header.components()).take_while(|(one, other)| one == other).count()
    };
    all.sort_by_key(|folder| std::cmp::Reverse(shared(folder)));
    all
}

#[cfg(test)]
mod tests {
    use super::{HeaderMatch, compare, headers, layouts};
    use std::fs;
    use std::path::Path;

    fn outcomes(folder: &Path) -> Vec<(&'static str, bool, HeaderMatch)> {
        let work = tempfile::tempdir().expect("a folder");
        let found = compare(layouts(), &headers(folder).expect("headers"), work.path());
        let found = found.expect("a compiler").into_iter();
        found.map(|(layout, outcome)| (layout.name, layout.is_ours, outcome)).collect()
    }

    #[test]
    fn our_headers_have_every_structure_that_is_ours() {
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/acl/include");
        for (name, is_ours, outcome) in outcomes(&include) {
            let wanted = if is_ours { HeaderMatch::Same } else { HeaderMatch::Missing };
            assert_eq!(outcome, wanted, "{name}");
        }
    }

    #[test]
    fn a_structure_that_differs_is_named_with_what_differs() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            fs::create_dir_all(folder.path().join("runtime/inner")).expect("a folder");
            fs::write(folder.path().join(name), text).expect("a file");
        };
        // Each names another header by a path of its own, as those of a user do.
        write("runtime/base.h", "#pragma once\n#include <stdint.h>\ntypedef uint32_t base_word;\n");
        write(
            "runtime/inner/kernel.h",
            "#include \"runtime/base.h\"
            typedef struct tag { base_word magic, version; const void *data; uint64_t length; } rtDevBinary_t;
            typedef struct { void *list; uint32_t count; } rtLoadBinaryConfig_t;
            struct rtKernelLaunchCfg_t { void *list; };
            typedef struct { uint8_t qos, part, cross, schemMode; uint32_t blockDimOffset, more, localMemorySize; uint8_t d2dCross; } rtTaskCfgInfo_t;
            rtArgsEx_t;",
        );
        let found = outcomes(folder.path());
        let of = |name: &str| {
            let found = found.iter().find(|(known, ..)| *known == name);
            &found.expect("a structure of the table").2
        };
        // The header as a whole does not compile because of its last line.
        assert!(
            matches!(of("rtDevBinary_t"), HeaderMatch::Differs(why) if why.contains("rtArgsEx_t"))
        );
        assert_eq!(of("rtArgsEx_t"), &HeaderMatch::Missing);
        let text = fs::read_to_string(folder.path().join("runtime/inner/kernel.h")).expect("text");
        write("runtime/inner/kernel.h", &text.replace("rtArgsEx_t;", ""));
        let found = outcomes(folder.path());
        let of = |name: &str| &found.iter().find(|(known, ..)| *known == name).expect("one").2;
        assert_eq!(of("rtDevBinary_t"), &HeaderMatch::Same);
        // Sixteen bytes as well, because of the alignment.
        assert_eq!(of("rtLoadBinaryConfig_t"), &HeaderMatch::Same);
        for (name, why) in [
            ("rtKernelLaunchCfg_t", "the size of rtKernelLaunchCfg_t is not 16"),
            ("rtTaskCfgInfo_t", "the size of rtTaskCfgInfo_t is not 16"),
        ] {
            assert!(
                matches!(of(name), HeaderMatch::Differs(said) if said.contains(why)),
                "{:?}",
                of(name)
            );
        }
    }
}
