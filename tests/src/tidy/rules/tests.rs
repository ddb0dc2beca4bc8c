//! Each rule is known to fail where it should, and to be content where it should.

use super::{ALL, Rule};
use super::{
    allow_attributes, assembly, atomics, checked_arguments, device_roots, interface_layers,
    opens_with_doc, orderings, questions, sequential_consistency, unsafe_code,
};
use crate::tidy::source::Source;

/// The lines, by number, in which `rule` finds something.
fn found(rule: Rule, path: &str, text: &str) -> Vec<String> {
    let findings = rule(&Source::new(path, text));
    let line = |location: String| location.rsplit(':').next().unwrap_or("").to_owned();
    findings.into_iter().map(|finding| line(finding.location)).collect()
}

const NONE: [&str; 0] = [];

#[test]
fn a_file_opens_with_its_purpose() {
    assert_eq!(found(opens_with_doc, "a.rs", "use std;\n//! late"), ["1"]);
    assert_eq!(found(opens_with_doc, "a.rs", ""), ["1"]);
    assert_eq!(found(opens_with_doc, "a.rs", "//! What it is.\n"), NONE);
}

#[test]
fn a_layer_of_the_interface_that_calls_upward_is_found() {
    let text = "use crate::common::codes;\nuse crate::device::lane;\nuse crate::api::event;\nuse pto_host::Session;\nthread_local! {";
    let found_in = |path, text| found(interface_layers, path, text);
    let found = |path| found_in(path, text);
    assert_eq!(found("bindings/acl/src/common/log.rs"), ["4", "3", "2", "5"]);
    assert_eq!(found("bindings/acl/src/device/lane.rs"), ["3", "5"]);
    assert_eq!(found("bindings/acl/src/api/event.rs"), ["4", "5"]);
    let state = "static EVENTS: Table<Event> = Table::new();\nlet work: Work = work();\nlet stream = current::asked(stream)?;";
    assert_eq!(found_in("bindings/acl/src/api/event.rs", state), ["1", "2"]);
    assert_eq!(found_in("bindings/acl/src/device/event.rs", state), NONE);
    assert_eq!(found("bindings/acl/entry/src/plugin.rs"), ["4", "5"]);
    assert_eq!(found("bindings/c/src/session.rs"), NONE);
}

#[test]
fn an_argument_that_only_the_plug_in_checks_is_found() {
    let found = |text: &str| found(checked_arguments, "bindings/acl/src/api/event.rs", text);
    let function = |name: &str, body: &str| {
        format!(
            "api! {{\n    fn {name}(event: Handle,\n        status: Out<u32>) {{\n        {body}\n    }}\n}}\n"
        )
    };
    let checked = "let place = status.place(\"status\")?;";
    assert_eq!(found(&function("aclrtQueryEventStatus", checked)), NONE);
    assert_eq!(found(&function("aclrtNoSuchFunction", checked)), ["2"]);
    assert_eq!(found(&function("aclrtQueryEventStatus", "let limit = limit(status)?;")), ["2"]);
    assert_eq!(found(&function("aclrtNoSuchFunction", "other.status.place(1)")), NONE);
    // Functions that return something else than a code, and files of another layer.
    assert_eq!(found("\n    fn aclA(a: Text) -> u64, 0, {\n        a.read(\"a\")\n    }"), NONE);
    let elsewhere = function("aclrtNoSuchFunction", checked);
    assert_eq!(
        self::found(checked_arguments, "bindings/acl/src/device/event.rs", &elsewhere),
        NONE
    );
}

#[test]
fn a_question_that_changes_something_is_found() {
    let text = "fn is_a(&mut self) -> bool {\nfn has_b(\n    self,\n    to: &mut [u8],\n) -> bool;\nfn was_c(&self) {";
    assert_eq!(found(questions, "a.rs", text), ["1", "2", "6"]);
    let text = "fn is_a(&self) -> bool { f(&mut 1) }\nfn has_b() -> bool;\nfn this(&mut self) {}\n// fn is_c(&mut self)";
    assert_eq!(found(questions, "a.rs", text), NONE);
}

#[test]
fn assembly_is_found_outside_linker() {
    let text = "// asm!\ncore::arch::asm!(\"nop\");\nglobal_asm!(\"\");";
    assert_eq!(found(assembly, "host/src/a.rs", text), ["2", "3"]);
    assert_eq!(found(assembly, "linker/src/a.rs", text), NONE);
}

#[test]
fn atomics_are_found_outside_their_module() {
    let text = "use core::sync::atomic::AtomicU32;\nuse std::sync::{Arc, atomic};\nuse crate::sync::AtomicU8;";
    assert_eq!(found(atomics, "aicpu-fw/src/a.rs", text), ["1", "2"]);
    assert_eq!(found(atomics, "abi/src/sync.rs", text), NONE);
    assert_eq!(found(atomics, "host/src/a.rs", text), NONE);
}

#[test]
fn an_ordering_without_a_partner_is_found() {
    let bare = "word.load(Ordering::Acquire);";
    assert_eq!(found(orderings, "a.rs", bare), ["1"]);
    assert_eq!(found(orderings, "a.rs", "use Ordering::{AcqRel, Release};"), ["1"]);
    assert_eq!(found(orderings, "a.rs", &format!("// loads the word\n{bare}")), ["2"]);
    assert_eq!(found(orderings, "a.rs", &format!("let s = \"pairs with\";\n{bare}")), ["2"]);
    let far = format!("// pairs with b\n{}{bare}", "\n".repeat(12));
    assert_eq!(found(orderings, "a.rs", &far), ["14"]);
    assert_eq!(found(orderings, "a.rs", &format!("// It pairs with `b`.\n{bare}")), NONE);
    assert_eq!(
        found(orderings, "a.rs", "// Release: see b.\nx.store(1, Ordering::Release);"),
        NONE
    );
    assert_eq!(found(orderings, "aicpu-fw/tests/loom/a.rs", bare), NONE);
    assert_eq!(found(orderings, "a.rs", "struct Release { slot: u32 }"), NONE);
    assert_eq!(found(orderings, "a.rs", "x.load(Relaxed); // Ordering::Acquire"), NONE);
}

#[test]
fn a_total_order_is_found() {
    assert_eq!(found(sequential_consistency, "a.rs", "// SeqCst\nx.load(SeqCst)"), ["2"]);
}

#[test]
fn unsafe_code_is_found_outside_its_places() {
    let text = "#![forbid(unsafe_code)]\nlet s = \"unsafe\";\nunsafe { f() }";
    assert_eq!(found(unsafe_code, "examples/src/a.rs", text), ["3"]);
    assert_eq!(found(unsafe_code, "abi/src/arena/mod.rs", text), ["3"]);
    assert_eq!(found(unsafe_code, "abi/src/gm.rs", text), NONE);
    assert_eq!(found(unsafe_code, "host/src/gm.rs", text), NONE);
}

#[test]
fn an_allow_is_found() {
    let text = "#[allow(dead_code)]\n#![ allow (x)]\n#[expect(x, reason = \"#[allow(y)]\")]";
    assert_eq!(found(allow_attributes, "a.rs", text), ["1", "2"]);
}

#[test]
fn a_device_crate_that_could_use_std_is_found() {
    assert_eq!(found(device_roots, "abi/src/lib.rs", "// #![no_std]"), ["1"]);
    assert_eq!(found(device_roots, "aicpu-fw/src/lib.rs", "#![no_std]"), ["1"]);
    assert_eq!(
        found(device_roots, "aicpu-fw/src/lib.rs", "#![no_std]\n#![forbid(unsafe_code)]"),
        NONE
    );
    assert_eq!(found(device_roots, "host/src/lib.rs", ""), NONE);
}

#[test]
fn rules_have_names_of_their_own() {
    for (index, (name, _)) in ALL.iter().enumerate() {
        assert!(ALL[..index].iter().all(|(other, _)| other != name), "{name}");
    }
}
