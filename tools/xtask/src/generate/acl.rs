//! The headers of `bindings/acl`, and the table of its page, from the tables in `bindings/acl/interface`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// A header: its name, what it includes, and the file with its types.
struct Header {
    path: &'static str,
    name: &'static str,
    includes: &'static [&'static str],
    types: Option<&'static str>,
}

const HEADERS: &[Header] = &[
    Header {
        path: "bindings/acl/include/acl/acl_base_rt.h",
        name: "acl_base_rt.h",
        includes: &["<stddef.h>", "<stdint.h>", "\"acl/error_codes/rt_error_codes.h\""],
        types: Some("types_base.h"),
    },
    Header {
        path: "bindings/acl/include/acl/error_codes/rt_error_codes.h",
        name: "error_codes/rt_error_codes.h",
        includes: &[],
        types: None,
    },
    Header {
        path: "bindings/acl/include/acl/acl_rt.h",
        name: "acl_rt.h",
        includes: &["\"acl/acl_base_rt.h\""],
        types: Some("types_rt.h"),
    },
    Header {
        path: "bindings/acl/include/acl/acl_rt_allocator.h",
        name: "acl_rt_allocator.h",
        includes: &["\"acl/acl_rt.h\""],
        types: Some("types_allocator.h"),
    },
    Header {
        path: "bindings/acl/include/acl/acl_rt_memory_soma.h",
        name: "acl_rt_memory_soma.h",
        includes: &["\"acl/acl_rt.h\""],
        types: Some("types_soma.h"),
    },
    Header {
        path: "bindings/acl/include/acl/acl_base_mdl.h",
        name: "acl_base_mdl.h",
        includes: &["\"acl/acl_base_rt.h\""],
        types: Some("types_tensor.h"),
    },
    Header {
        path: "bindings/acl/include/acl/acl_op.h",
        name: "acl_op.h",
        includes: &["\"acl/acl_base.h\"", "\"acl/acl_rt.h\""],
        types: Some("types_op.h"),
    },
    Header {
        path: "bindings/acl/include/acl/acl_op_compiler.h",
        name: "acl_op_compiler.h",
        includes: &["\"acl/acl_op.h\""],
        types: None,
    },
    Header {
        path: "bindings/acl/include/acl/acl_mdl.h",
        name: "acl_mdl.h",
        includes: &["\"acl/acl_base.h\"", "\"acl/acl_rt.h\""],
        types: Some("types_mdl.h"),
    },
    Header {
        path: "bindings/acl/include/acl/acl_prof.h",
        name: "acl_prof.h",
        includes: &["\"acl/acl_base.h\"", "\"acl/acl_rt.h\""],
        types: Some("types_prof.h"),
    },
];

/// Headers that only include others.
const COLLECTIONS: &[(&str, &str)] = &[
    (
        "bindings/acl/include/acl/acl_base.h",
        "#include \"acl/acl_base_rt.h\"\n#include \"acl/acl_base_mdl.h\"\n",
    ),
    (
        "bindings/acl/include/acl/acl.h",
        "#include \"acl/acl_base.h\"\n#include \"acl/acl_rt.h\"\n#include \"acl/acl_rt_allocator.h\"\n#include \"acl/acl_rt_memory_soma.h\"\n#include \"acl/acl_mdl.h\"\n#include \"acl/acl_op.h\"\n#include \"acl/acl_op_compiler.h\"\n",
    ),
];

/// A row of `functions.tsv`.
struct AclFunction {
    tier: String,
    header: String,
    returns: String,
    name: String,
    parameters: String,
}

/// A row of `constants.tsv`.
struct Constant {
    header: String,
    kind: String,
    group: String,
    name: String,
    value: String,
}

/// The headers and the page's table.
pub(super) fn files(root: &Path) -> Result<Vec<(&'static str, String)>, String> {
    let interface = root.join("bindings/acl/interface");
    let functions = functions(&read(&interface.join("functions.tsv"))?)?;
    let constants = constants(&read(&interface.join("constants.tsv"))?)?;
    let mut files = Vec::new();
    for header in HEADERS {
        let types = header.types.map(|file| read(&interface.join(file))).transpose()?;
        let types = types.unwrap_or_default();
        files.push((header.path, render(header, &types, &functions, &constants)));
    }
    for (path, text) in COLLECTIONS {
        files.push((path, guarded(path, text)));
    }
    let refused = read(&root.join("bindings/acl/src/api/unsupported.rs"))?;
    files.push(("docs/reference/acl-functions.md", page(&functions, &refused)));
    Ok(files)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn rows(text: &str) -> impl Iterator<Item = [String; 5]> + '_ {
    text.lines().skip(1).filter_map(|line| {
        let cells: Vec<String> = line.split('\t').map(str::to_owned).collect();
        cells.try_into().ok()
    })
}

fn functions(text: &str) -> Result<Vec<AclFunction>, String> {
    let of = |[tier, header, returns, name, parameters]: [String; 5]| AclFunction {
        tier,
        header,
        returns,
        name,
        parameters,
    };
    complete(text, rows(text).map(of).collect())
}

fn constants(text: &str) -> Result<Vec<Constant>, String> {
    let of = |[header, kind, group, name, value]: [String; 5]| Constant {
        header,
        kind,
        group,
        name,
        value,
    };
    complete(text, rows(text).map(of).collect())
}

fn complete<T>(text: &str, rows: Vec<T>) -> Result<Vec<T>, String> {
    if rows.len() + 1 == text.lines().count() {
        return Ok(rows);
    }
    Err("a table in bindings/acl/interface has a row without five columns".to_owned())
}

fn guarded(path: &str, body: &str) -> String {
    let name = path.rsplit("include/").next().unwrap_or(path);
    let guard: String = name
        .chars()
        .map(
            |letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' },
        )
        .collect();
    format!(
        "/* Generated by `cargo xtask generate` from bindings/acl/interface. SPDX-License-Identifier: Apache-2.0 OR MIT\n   \
         docs/reference/acl.md says what this interface is modelled on, and what works. */\n#ifndef PTO_{guard}\n#define \
         PTO_{guard}\n\n{body}\n#endif\n"
    )
}

fn render(
    header: &Header,
    types: &str,
    functions: &[AclFunction],
    constants: &[Constant],
) -> String {
    let mut body = String::new();
    for include in header.includes {
        let _ = writeln!(body, "#include {include}");
    }
    body.push_str("\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    let own: Vec<&Constant> = constants.iter().filter(|row| row.header == header.name).collect();
    if header.name == "acl_base_rt.h" {
        body.push_str(types);
    }
    body.push_str(&values(&own));
    if header.name != "acl_base_rt.h" {
        body.push_str(types);
    }
    body.push('\n');
    for function in functions.iter().filter(|row| row.header == header.name) {
        let AclFunction { returns, name, parameters, .. } = function;
        let _ = writeln!(body, "{returns} {name}({parameters});");
    }
    body.push_str("\n#ifdef __cplusplus\n}\n#endif\n");
    guarded(header.path, &body)
}

fn values(constants: &[&Constant]) -> String {
    let mut text = String::new();
    let mut seen = BTreeSet::new();
    for constant in constants {
        let Constant { kind, group, name, value, .. } = constant;
        match kind.as_str() {
            "macro" => {
                let _ = writeln!(text, "#define {name} {value}");
            }
            "const" => {
                let _ = writeln!(text, "static const int {name} = {value};");
            }
            _ if seen.insert(group) => text.push_str(&enumeration(group, constants)),
            _ => {}
        }
    }
    text
}

fn enumeration(group: &str, constants: &[&Constant]) -> String {
    let mut text = format!("\ntypedef enum {group} {{\n");
    for constant in constants.iter().filter(|row| row.group == group) {
        let _ = writeln!(text, "    {} = {},", constant.name, constant.value);
    }
    let _ = writeln!(text, "}} {group};\n");
    text
}

fn page(functions: &[AclFunction], refused: &str) -> String {
    let is_refused =
        |name: &str| refused.lines().any(|line| line.trim().trim_end_matches(',') == name);
    let mut text = String::from(
        "<!-- Generated by `cargo xtask generate`. -->\n# Functions of the CANN interface\n\nThis page lists every function of \
         [the CANN interface](../how-to/acl.md). Tier 1 is what known programs call most, tier 3 what they hardly call. A function \
         that is not supported returns 207000, and `aclGetRecentErrMsg` names it.\n",
    );
    for (tier, title) in [
        ("1", "Tier 1"),
        ("2", "Tier 2"),
        ("3", "Tier 3"),
        ("m", "Models"),
        ("o", "Tensors and single operators"),
        ("p", "Profiler"),
    ] {
        let own: Vec<&AclFunction> = functions.iter().filter(|row| row.tier == tier).collect();
        let works = own.iter().filter(|row| !is_refused(&row.name)).count();
        let _ = writeln!(text, "\n## {title}: {works} of {} work\n", own.len());
        text.push_str("| function | parameters | |\n|---|---|---|\n");
        for row in own {
            let state = if is_refused(&row.name) { "not supported" } else { "works" };
            let _ = writeln!(text, "| `{}` | `{}` | {state} |", row.name, row.parameters);
        }
    }
    text
}
