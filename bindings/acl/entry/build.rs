//! Writes the entry points: one for each function of the interface, with its index in the table, and the machine code of its checks.

use std::fmt::Write as _;
use std::path::Path;

use pto_acl_interface::{ArgumentRule, CHECKED, Check};

/// Functions of the library itself (`src/errors.rs`), and the constants with their indices in the table.
const OWN: [(&str, &str); 3] = [
    ("aclGetRecentErrMsg", "RECENT"),
    ("aclrtPeekAtLastError", "PEEK"),
    ("aclrtGetLastError", "GET"),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A program may close the library. Its plug-in stays, and so do the errors of threads, which the library frees when a thread ends.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    let architecture = std::env::var("CARGO_CFG_TARGET_ARCH").expect("cargo names the machine");
    let (mut entries, mut rows, mut own) = (String::new(), String::new(), String::new());
    let functions = pto_acl_interface::all().chain(pto_acl_interface::runtime());
    for (index, function) in functions.enumerate() {
        let (name, has_code) = (function.name, function.has_code);
        let checks: Vec<Check> =
            pto_acl_interface::checks().filter(|check| check.function == name).collect();
        let code: Vec<String> = checks.iter().map(|check| code(&architecture, check)).collect();
        // Text in memory can be written.
        let _ = match OWN.iter().find(|(own, _)| *own == name) {
            Some((_, constant)) => writeln!(own, "pub(crate) const {constant}: usize = {index};"),
            None => writeln!(entries, "    {index} {name} [{}],", code.join(", ")),
        };
        let checks: Vec<String> = checks.iter().map(constant).collect();
        let checks = checks.join(", ");
        let _ = writeln!(
            rows,
            "    EntryPoint {{ name: c\"{name}\", has_code: {has_code}, checks: &[{checks}] }},"
        );
    }
    write("entries.rs", &format!("entries! {{\n{entries}}}\n"));
    write("rows.rs", &format!("{own}\npub(crate) const ROWS: &[EntryPoint] = &[\n{rows}];\n"));
}

fn write(file: &str, text: &str) {
    let folder = std::env::var("OUT_DIR").expect("cargo names the folder");
    std::fs::write(Path::new(&folder).join(file), text).expect("the folder can be written");
}

/// A check as the source of a constant.
fn constant(check: &Check) -> String {
    let Check { function, index, name, rule } = check;
    format!(
        "Check {{ function: {function:?}, index: {index}, name: {name:?}, rule: ArgumentRule::{rule:?} }}"
    )
}

/// The lines of a check: they go to the label 2 where it does not hold, and leave every argument as it is.
fn code(architecture: &str, check: &Check) -> String {
    let index = check.index;
    let lines = match architecture {
        "x86_64" => {
            let wide = ["rdi", "rsi", "rdx", "rcx", "r8", "r9"];
            let narrow = ["edi", "esi", "edx", "ecx", "r8d", "r9d"];
            let (wide, narrow): ([&str; CHECKED], [&str; CHECKED]) = (wide, narrow);
            let (wide, narrow) = (wide[index], narrow[index]);
            match check.rule {
                ArgumentRule::Set | ArgumentRule::Positive => {
                    vec![format!("test {wide}, {wide}"), "je 2f".into()]
                }
                ArgumentRule::To(most) => vec![format!("cmp {narrow}, {most}"), "ja 2f".into()],
                ArgumentRule::Limit => vec![
                    format!("cmp {narrow}, -1"),
                    "jl 2f".into(),
                    format!("test {narrow}, {narrow}"),
                    "je 2f".into(),
                ],
            }
        }
        "aarch64" => match check.rule {
            ArgumentRule::Set | ArgumentRule::Positive => vec![format!("cbz x{index}, 2f")],
            ArgumentRule::To(most) => vec![format!("cmp w{index}, #{most}"), "b.hi 2f".into()],
            ArgumentRule::Limit => {
                vec![format!("cmn w{index}, #1"), "b.lt 2f".into(), format!("cbz w{index}, 2f")]
            }
        },
        other => panic!("no entry points are written for machines of the kind {other}"),
    };
    lines.iter().map(|line| format!("{line:?}")).collect::<Vec<_>>().join(", ")
}
