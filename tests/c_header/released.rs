//! The C interface of the releases: what a release has, every later one of its MINOR has as well, with the same meaning for a compiled program.
//!
//! `released/VERSION.txt` has the declarations of a release: a line for each function, constant and type, and for each field of a structure with its
//! place. `PTO_RELEASE=1 cargo test --workspace --test c_header` writes the file of the version that the workspace has.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A line for each declaration of a header.
fn declarations(header: &str) -> BTreeSet<String> {
    let mut code = String::new();
    let mut declared = BTreeSet::new();
    for line in without_comments(header).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match *words.as_slice() {
            ["#define", name, value] => {
                declared.insert(format!("{name} = {value}"));
            }
            [first, ..] if first.starts_with('#') || first.starts_with("PTO_ASSERT") => {}
            ["extern", ..] | ["}"] => {}
            _ => code += &format!("{} ", words.join(" ")),
        }
    }
    let mut rest = code.as_str();
    while let Some((before, after)) = rest.split_once(';') {
        match before.split_once('{') {
            Some((name, first)) => {
                let name = name.trim().trim_start_matches("typedef ");
                let (fields, end) = after.split_once('}').expect("a structure ends");
                let fields = [first].into_iter().chain(fields.split(';')).map(str::trim);
                for (place, field) in fields.filter(|field| !field.is_empty()).enumerate() {
                    declared.insert(format!("{name} [{place}] {field}"));
                }
                rest = end.split_once(';').map_or("", |(_, rest)| rest);
            }
            None => {
                declared.insert(before.trim().to_owned());
                rest = after;
            }
        }
    }
    declared
}

fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or_default().to_owned();
    let after = parts.filter_map(|part| part.split_once("*/")).map(|(_, after)| after);
    first + &after.collect::<String>()
}

fn released(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("c_header/released").join(format!("{version}.txt"))
}

/// MAJOR and MINOR of a version.
fn series(version: &str) -> &str {
    version.rsplit_once('.').map_or(version, |(series, _)| series)
}

#[test]
fn a_program_of_an_earlier_release_still_links_and_means_the_same() {
    let version = env!("CARGO_PKG_VERSION");
    let today = declarations(&super::generated());
    if std::env::var_os("PTO_RELEASE").is_some() {
        let lines: String = today.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(released(version), lines).expect("the file is writable");
    }
    let folder = released(version);
    let folder = folder.parent().expect("it is in a folder");
    let mut compared = 0;
    for file in std::fs::read_dir(folder).expect("there is a release") {
        let path = file.expect("it is readable").path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        if series(name) != series(version) {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("it is text");
        let lost: Vec<&str> = text.lines().filter(|line| !today.contains(*line)).collect();
        assert!(
            lost.is_empty(),
            "release {name} has what pto_runtime.h lacks or has otherwise; that needs a new MINOR (CONTRIBUTING.md, Versions):\n{}",
            lost.join("\n")
        );
        compared += 1;
    }
    assert!(compared > 0, "there is no release of {}: PTO_RELEASE=1 writes it", series(version));
}

#[test]
fn a_change_of_a_released_declaration_is_seen() {
    let before = "/* a */\n#define PTO_A 0x1\ntypedef struct s {\n  /* x */\n  uint32_t a;\n  uint64_t b[2];\n} s;\n\nint32_t f(int a,\n          int b);\n";
    let of = declarations(before);
    let lines: Vec<&str> = of.iter().map(String::as_str).collect();
    assert_eq!(
        lines,
        [
            "PTO_A = 0x1",
            "int32_t f(int a, int b)",
            "struct s [0] uint32_t a",
            "struct s [1] uint64_t b[2]"
        ]
    );
    let grown = before.replace("} s;", "  uint8_t c;\n} s;") + "int g(void);\n";
    assert!(of.is_subset(&declarations(&grown)));
    for (old, new) in
        [("0x1", "0x2"), ("int b);", "long b);"), ("uint32_t a;", "uint32_t z;\n  uint32_t a;")]
    {
        let changed = declarations(&before.replace(old, new));
        assert!(!of.is_subset(&changed), "{old} became {new}");
    }
}
