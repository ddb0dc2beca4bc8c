//! `bindings/include/pto_abi.h`: the interface for C11 and C++17, with every size and offset asserted.

use std::fmt::Write as _;

use pto_abi::fault;

use super::constants::{ConstantValue, groups};
use super::model::{AbiModel, Field, Struct};

const OPENING: &str = r"/* The bytes that host, AICPU and AICore of the PTO Runtime share.
 *
 * Generated from pto_abi by `cargo xtask generate`; do not edit. Little-endian, 64-bit addresses.
 * Fields marked `atomic` may be written by others at any time: read and write them by atomic
 * operations of their width. */
#ifndef PTO_ABI_H
#define PTO_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define PTO_ALIGN(bytes) alignas(bytes)
#define PTO_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define PTO_ALIGN(bytes) _Alignas(bytes)
#define PTO_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

/* A device address in global memory. */
typedef uint64_t pto_gm_addr;

/* A task: its slot, and the generation of that slot. */
typedef struct pto_task_id {
    uint32_t slot;
    uint32_t generation;
} pto_task_id;
";

/// The header's text. Writing to a `String` does not fail, here and below.
pub(crate) fn render(model: &AbiModel) -> String {
    let mut text = OPENING.to_owned();
    for group in groups() {
        let _ = writeln!(text, "\n/* {} */", group.title);
        for constant in group.constants {
            let value = literal(constant.value);
            let define = format!("#define PTO_{} {value}", constant.name);
            let _ = writeln!(text, "{define:<60} /* {} */", constant.meaning);
        }
    }
    text.push_str("\n/* Faults: what happened, and what to do */\n");
    for entry in fault::TABLE {
        let code = format!("UINT32_C({:#010x})", entry.fault.code());
        let _ = writeln!(text, "/* {} {} */", entry.sentence, entry.remedy);
        let _ = writeln!(text, "#define PTO_FAULT_{} {code}", entry.name);
    }
    for layout in &model.structs {
        render_struct(&mut text, layout);
    }
    text.push_str("\n#endif /* PTO_ABI_H */\n");
    text
}

fn literal(value: ConstantValue) -> String {
    match value {
        ConstantValue::Count(value) => format!("UINT32_C({value})"),
        ConstantValue::Word(value) => format!("UINT32_C({value:#010x})"),
        ConstantValue::Long(value) => format!("UINT64_C({value:#018x})"),
    }
}

fn render_struct(text: &mut String, layout: &Struct) {
    let Struct { c_name, doc, size, align, fields, .. } = layout;
    let _ = writeln!(text, "\n/* {doc} */\ntypedef struct {c_name} {{");
    for (index, field) in fields.iter().enumerate() {
        // The first member's alignment is that of the struct.
        let align = if index == 0 { format!("PTO_ALIGN({align}) ") } else { String::new() };
        let _ = writeln!(text, "    {}\n    {align}{};", comment(field), declaration(field));
    }
    let _ = writeln!(text, "}} {c_name};");
    let assert = |text: &mut String, condition: String, what: &str| {
        let _ = writeln!(text, "PTO_STATIC_ASSERT({condition}, \"{what}\");");
    };
    assert(text, format!("sizeof({c_name}) == {size}"), &format!("size of {c_name}"));
    for field in fields {
        let condition = format!("offsetof({c_name}, {}) == {}", field.name, field.offset);
        assert(text, condition, &format!("offset of {c_name}.{}", field.name));
    }
}

fn comment(field: &Field) -> String {
    let atomic = if field.is_atomic { "atomic: " } else { "" };
    format!("/* {atomic}{} */", field.doc)
}

fn declaration(field: &Field) -> String {
    match field.count {
        Some(count) => format!("{} {}[{count}]", field.c_type, field.name),
        None => format!("{} {}", field.c_type, field.name),
    }
}
