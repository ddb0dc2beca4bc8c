//! The interactive page of one run, or of several below each other: one file that works offline. `view/timeline/` holds its parts.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::timeline::analysis::Analysis;
use crate::timeline::file::{PartRow, TASK_COLUMNS, TaskRow, part_row, row, skipped};
use crate::timeline::model::{EndFault, Trace};
use crate::timeline::svg::COLOURS;
use crate::timeline::text::percent;

const FRAME: &str = include_str!("view/timeline/page.html");
/// In the order in which they run.
const SCRIPTS: [&str; 14] = [
    include_str!("view/timeline/run.js"),
    include_str!("view/timeline/groups.js"),
    include_str!("view/timeline/waiting.js"),
    include_str!("view/timeline/counters.js"),
    include_str!("view/timeline/totals.js"),
    include_str!("view/timeline/axis.js"),
    include_str!("view/timeline/state.js"),
    include_str!("view/timeline/panel.js"),
    include_str!("view/timeline/lanes.js"),
    include_str!("view/timeline/measures.js"),
    include_str!("view/timeline/tables.js"),
    include_str!("view/timeline/side.js"),
    include_str!("view/timeline/input.js"),
    include_str!("view/timeline/main.js"),
];

/// A run on a page.
#[derive(Clone, Copy, Debug)]
pub struct ShownRun<'a> {
    /// What it is called where there are several, such as the name of its file.
    pub name: &'a str,
    /// The run.
    pub trace: &'a Trace,
    /// The analysis of the run.
    pub analysis: &'a Analysis,
}

/// What the script reads.
#[derive(Serialize)]
struct TimelineData<'a> {
    runs: Vec<RunData<'a>>,
    colours: &'a [&'static str],
}

#[derive(Serialize)]
struct RunData<'a> {
    name: &'a str,
    run: &'a BTreeMap<String, String>,
    summary: String,
    end_ns: u64,
    makespan_ns: Option<u64>,
    graph: [u64; 2],
    instances: u32,
    cores: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<&'a [String]>,
    kernels: &'a BTreeMap<u16, String>,
    task_columns: &'a [&'static str],
    tasks: Vec<TaskRow>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    task_names: &'a [String],
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

/// The page of one run.
#[must_use]
pub fn page(trace: &Trace, analysis: &Analysis) -> String {
    page_of(&[ShownRun { name: &called(trace), trace, analysis }])
}

/// The page of runs that are to be compared: below each other, with one axis of time.
#[must_use]
pub fn page_of(runs: &[ShownRun<'_>]) -> String {
    let title = match runs {
        [one] => called(one.trace),
        several => several.iter().map(|run| run.name).collect::<Vec<_>>().join(" and "),
    };
    let shown = TimelineData { runs: runs.iter().map(RunData::of).collect(), colours: &COLOURS };
    crate::timeline::page::page(FRAME, &SCRIPTS, &format!("{title}: timeline"), &shown)
}

fn called(trace: &Trace) -> String {
    let named = trace.run.get("example").or_else(|| trace.run.get("program"));
    named.cloned().unwrap_or_else(|| "a run".to_owned())
}

impl<'a> RunData<'a> {
    fn of(run: &ShownRun<'a>) -> Self {
        let ShownRun { name, trace, analysis } = *run;
        Self {
            name,
            run: &trace.run,
            summary: summary(analysis),
            end_ns: trace.end_ns,
            makespan_ns: trace.makespan_ns,
            graph: trace.graph().into(),
            instances: trace.instances,
            cores: trace.cores.iter().map(|kind| trace.kind_name(*kind)).collect(),
            rows: trace.names.as_ref().map(|names| &names.rows[..]),
            kernels: &trace.kernels,
            task_columns: &TASK_COLUMNS,
            tasks: trace.tasks.iter().map(row).collect(),
            task_names: &trace.task_names,
            parts: trace.parts.iter().map(part_row).collect(),
            edges: trace.edges.iter().flat_map(|edge| [edge.producer, edge.consumer]).collect(),
            chain: analysis.chain.links.iter().map(|link| link.task).collect(),
            skipped: skipped(trace),
            fault: fault(trace),
            dropped: trace.dropped(),
        }
    }
}

fn fault(trace: &Trace) -> Option<FaultNote<'_>> {
    let EndFault { sentence, remedy, core, task, .. } = trace.fault.as_ref()?;
    let text = trace.fault_text()?;
    Some(FaultNote { text, sentence, remedy, core: *core, task: *task })
}

fn summary(analysis: &Analysis) -> String {
    let overhead = percent(analysis.overhead_ns, analysis.graph_ns);
    format!("{:.2} x the lower bound, scheduler overhead {overhead}", analysis.over_bound())
}
