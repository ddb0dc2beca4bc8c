//! The interactive page: one file that works offline. `view/` holds its parts; `view.js` says what it does.

use std::collections::BTreeMap;

use pto_abi::CoreKind;
use serde::Serialize;

use crate::analysis::Analysis;
use crate::file::{PartRow, TASK_COLUMNS, TaskRow, part_row, row, skipped};
use crate::model::{EndFault, Trace};
use crate::svg::COLOURS;
use crate::text::{escaped, percent};

const PAGE: &str = include_str!("view/page.html");
const STYLE: &str = include_str!("view/style.css");
const SCRIPT: &str = include_str!("view/view.js");

/// What the script reads.
#[derive(Serialize)]
struct Data<'a> {
    run: &'a BTreeMap<String, String>,
    summary: String,
    makespan_ns: u64,
    instances: u32,
    cores: Vec<&'static str>,
    kernels: &'a BTreeMap<u16, String>,
    colours: &'a [&'static str],
    task_columns: &'a [&'static str],
    tasks: Vec<TaskRow>,
    parts: Vec<PartRow>,
    edges: Vec<u32>,
    chain: Vec<u32>,
    skipped: Vec<u32>,
    fault: Option<FaultNote<'a>>,
    dropped: u64,
}

/// The fault that ended the run.
#[derive(Serialize)]
struct FaultNote<'a> {
    text: String,
    sentence: &'a str,
    remedy: &'a str,
    core: Option<u32>,
    task: Option<u32>,
}

/// The page.
#[must_use]
pub fn page(trace: &Trace, analysis: &Analysis) -> String {
    let data = Data {
        run: &trace.run,
        summary: summary(analysis),
        makespan_ns: trace.makespan_ns,
        instances: trace.instances,
        cores: trace.cores.iter().copied().map(CoreKind::name).collect(),
        kernels: &trace.kernels,
        colours: &COLOURS,
        task_columns: &TASK_COLUMNS,
        tasks: trace.tasks.iter().map(row).collect(),
        parts: trace.parts.iter().map(part_row).collect(),
        edges: trace.edges.iter().flat_map(|edge| [edge.producer, edge.consumer]).collect(),
        chain: analysis.chain.links.iter().map(|link| link.task).collect(),
        skipped: skipped(trace),
        fault: fault(trace),
        dropped: trace.dropped(),
    };
    // Maps with numbers as keys become objects with names; nothing here can fail to be written.
    let data = serde_json::to_string(&data).unwrap_or_default();
    // No text of the data may end the script element that it stands in.
    let data = data.replace('<', "\\u003c");
    let example = trace.run.get("example").map_or("a run", String::as_str);
    let title = format!("{}: timeline", escaped(example));
    filled(&[("@TITLE@", &title), ("@STYLE@", STYLE), ("@DATA@", &data), ("@SCRIPT@", SCRIPT)])
}

fn fault(trace: &Trace) -> Option<FaultNote<'_>> {
    let EndFault { sentence, remedy, core, task, .. } = trace.fault.as_ref()?;
    let text = trace.fault_text()?;
    Some(FaultNote { text, sentence, remedy, core: *core, task: *task })
}

fn summary(analysis: &Analysis) -> String {
    let overhead = percent(analysis.overhead_ns, analysis.makespan_ns);
    format!("{:.2} x the lower bound, scheduler overhead {overhead}", analysis.over_bound())
}

/// The page with its parts; a part is not searched for further marks.
fn filled(parts: &[(&str, &str)]) -> String {
    let mut page = String::new();
    let mut rest = PAGE;
    loop {
        let found = parts.iter().filter_map(|(mark, part)| Some((rest.find(mark)?, *mark, *part)));
        let Some((at, mark, part)) = found.min() else { return page + rest };
        page += &rest[..at];
        page += part;
        rest = &rest[at + mark.len()..];
    }
}
