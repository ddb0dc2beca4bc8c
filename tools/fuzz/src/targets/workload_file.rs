//! Workload files: the reader accepts or refuses any text. What it accepts is printed and read again as the same text, and a workload
//! that passes its check is compiled to a plan that the firmware accepts.

use pto_host::graph::plan::Plan;
use pto_host::workloads::{Workload, plan};

/// Reads the bytes as a text; invalid text is read with replacement characters.
pub(super) fn read(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(workload) = Workload::parse(&text) else { return };
    let printed = workload.to_string();
    let again = Workload::parse(&printed)
        .unwrap_or_else(|error| panic!("what was printed is not read: {error}\n{printed}"));
    assert_eq!(again.to_string(), printed, "a workload changes when it is printed");
    let Ok(checked) = workload.check() else { return };
    let Ok(compiled) = plan::compile(&checked) else { return };
    if let Err(stop) = Plan::accept(compiled.words()) {
        panic!("a compiled workload is refused: {}", stop.fault);
    }
}
