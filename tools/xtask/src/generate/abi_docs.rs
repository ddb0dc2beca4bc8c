//! `docs/reference/abi.md`: the interface as tables.

use std::fmt::Write as _;

use pto_abi::fault;

use super::constants::{ConstantValue, groups};
use super::model::{AbiModel, Struct};

const OPENING: &str = "\
# The bytes that host, AICPU and AICore share

This page is for engineers who write a part of the runtime, or read its memory in a debugger. It is generated from the tables of `abi` by `cargo xtask generate`;
do not edit it. The same tables are checked at compile time in Rust, and are in the C header `bindings/include/pto_abi.h`.

Everything is little-endian. Shared structs have no implicit padding and no pointers; where a word is
polled by another agent, its line of 64 bytes has one writer. Words marked *atomic* may change at any
time.
";

/// The page's text. Writing to a `String` does not fail, here and below.
pub(crate) fn render(model: &AbiModel) -> String {
    let mut text = OPENING.to_owned();
    text.push_str("\n## Structs\n");
    for layout in &model.structs {
        render_struct(&mut text, layout);
    }
    text.push_str("\n## Constants\n");
    for group in groups() {
        let _ = writeln!(
            text,
            "\n### {}\n\n| constant | value | meaning |\n|---|---|---|",
            group.title
        );
        for constant in group.constants {
            let value = number(constant.value);
            let _ = writeln!(text, "| `{}` | {value} | {} |", constant.name, constant.meaning);
        }
    }
    render_faults(&mut text);
    text
}

fn number(value: ConstantValue) -> String {
    match value {
        ConstantValue::Count(value) => value.to_string(),
        ConstantValue::Word(value) => format!("{value:#010x}"),
        ConstantValue::Long(value) => format!("{value:#018x}"),
    }
}

fn render_struct(text: &mut String, layout: &Struct) {
    let Struct { name, doc, size, align, fields, .. } = layout;
    let _ = writeln!(text, "\n### {name}\n\n{doc}\n\n{size} bytes, aligned to {align}.\n");
    text.push_str("| offset | bytes | field | type | meaning |\n|---|---|---|---|---|\n");
    for field in fields {
        let atomic = if field.is_atomic { "*atomic* " } else { "" };
        let kind = match field.count {
            Some(count) => format!("{atomic}{}[{count}]", field.c_type),
            None => format!("{atomic}{}", field.c_type),
        };
        let (offset, size, name) = (field.offset, field.size, field.name);
        let _ = writeln!(text, "| {offset} | {size} | `{name}` | {kind} | {} |", field.doc);
    }
}

fn render_faults(text: &mut String) {
    text.push_str(
        "\n## Faults\n\nThe subsystem is in the high half of a code, the cause in the low half.\n",
    );
    let mut subsystem = "";
    for entry in fault::TABLE {
        if entry.fault.subsystem() != subsystem {
            subsystem = entry.fault.subsystem();
            let _ = writeln!(
                text,
                "\n### {subsystem}\n\n| code | name | what happened | what to do |\n|---|---|---|---|"
            );
        }
        let code = entry.fault.code();
        let _ = writeln!(
            text,
            "| {code:#010x} | `{}` | {} | {} |",
            entry.name, entry.sentence, entry.remedy
        );
    }
}
