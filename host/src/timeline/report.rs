//! An analysis as text.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::timeline::analysis::{Analysis, Chain, KindTime};
use crate::timeline::bound::Limit;
use crate::timeline::model::Trace;
use crate::timeline::text::{counted, grouped, percent, table, time};

/// Tasks of the chain that are listed one by one; of a longer one, the first and the last half of them.
const CHAIN_SHOWN: usize = 12;

/// The analysis, for people.
#[must_use]
pub fn text(trace: &Trace, analysis: &Analysis) -> String {
    let mut text = String::new();
    for (name, fact) in &trace.run {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {name:<12}  {fact}");
    }
    if let (Some(ended), Some(fault)) = (trace.fault_text(), &trace.fault) {
        let _ = writeln!(text, "  {:<12}  {ended}: {}", "FAULT", fault.sentence);
        let _ = writeln!(text, "  {:<12}  {}", "", fault.remedy);
    }
    text += &head(trace, analysis);
    text += "\nwhere the time of the cores went, of cores x graph\n";
    text += &kinds(trace, analysis);
    let overhead = percent(analysis.overhead_ns, analysis.graph_ns);
    let _ = writeln!(
        text,
        "\n  scheduler overhead: an idle core and a ready task of its kind at once for {}, {overhead} of the graph{}",
        time(analysis.overhead_ns),
        overhead_by_kind(trace, analysis)
    );
    text += "\nthe chain that the last task waited for\n";
    text += &chain(trace, &analysis.chain);
    text += "\nkernels on the critical path\n";
    text += &critical(trace, analysis);
    text += "\nkernels\n";
    text += &kernels(trace, analysis);
    text += "\nworst waits, from ready to started\n";
    text += &waits(trace, analysis);
    text
}

/// The overhead of each kind, as a run in virtual time reports it; nothing if there is one kind alone.
fn overhead_by_kind(trace: &Trace, analysis: &Analysis) -> String {
    let kind = |kind: &KindTime| {
        let share = percent(kind.overhead_span_ns, analysis.graph_ns);
        format!("{} {share}", trace.kind_name(kind.kind))
    };
    match &analysis.kinds[..] {
        [] | [_] => String::new(),
        kinds => format!(" ({})", kinds.iter().map(kind).collect::<Vec<_>>().join(", ")),
    }
}

fn head(trace: &Trace, analysis: &Analysis) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<12}  {value}");
    };
    let skipped = match analysis.tasks_skipped {
        0 => String::new(),
        skipped => format!(", {skipped} skipped by their predicates"),
    };
    let [tasks, edges] = [analysis.tasks, analysis.edges].map(|count| count as u64);
    let edges = counted(edges, "edge");
    let unfinished = match analysis.parts_unfinished {
        0 => String::new(),
        unfinished => format!(", {unfinished} more did not end"),
    };
    let parts = grouped(analysis.parts_run as u64);
    line("tasks", format!("{}{skipped}, {edges}", grouped(tasks)));
    line("parts", format!("{parts}{unfinished}"));
    let known = analysis.tasks_timed + analysis.tasks_skipped;
    if known < analysis.tasks {
        let left = counted((analysis.tasks - known) as u64, "task");
        line("INCOMPLETE", format!("{left} without a start or an end: left out"));
    }
    if analysis.events_dropped > 0 {
        let dropped = counted(analysis.events_dropped, "event");
        line("INCOMPLETE", format!("{dropped} dropped: record with larger --trace-events"));
    }
    if let Some(makespan) = analysis.makespan_ns {
        line("makespan", time(makespan));
    }
    line("graph", time(analysis.graph_ns));
    let tasks = counted(analysis.critical_path.len() as u64, "task");
    let bounds = &analysis.bounds;
    let path = percent(bounds.critical_path_ns, analysis.graph_ns);
    let critical = time(bounds.critical_path_ns);
    if bounds.traced_path_ns < bounds.critical_path_ns {
        // The edges from tasks that had retired are not in the trace.
        let traced = time(bounds.traced_path_ns);
        line("lower bounds", format!("critical path {critical}, {path}"));
        line("", format!("of which the edges of the trace show {traced}: {tasks}"));
    } else {
        line("lower bounds", format!("critical path {critical}, {path}: {tasks}"));
    }
    for work in &bounds.work {
        let share = percent(work.bound_ns, analysis.graph_ns);
        let (bound, sum) = (time(work.bound_ns), time(work.work_ns));
        let (kind, cores) = (trace.kind_name(work.kind), counted(work.cores as u64, "core"));
        line("", format!("{kind} work {bound}, {share}: {sum} on {cores}"));
    }
    let ratio = analysis.over_bound();
    line("", format!("the graph takes {ratio:.2} times the largest of them"));
    if let Some(Limit { name, ns, change }) = Limit::of(trace, analysis) {
        let share = percent(ns, analysis.graph_ns);
        line("bound by", format!("{name}, {share}: {change}"));
    }
    text
}

fn kinds(trace: &Trace, analysis: &Analysis) -> String {
    let head = [
        "",
        "cores",
        "busy",
        "staged",
        "overhead",
        "polling",
        "producers",
        "builder",
        "nothing left",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(analysis.kinds.iter().map(|kind| kind_row(trace, kind, analysis.graph_ns)));
    table(&rows, &[])
}

fn kind_row(trace: &Trace, kind: &KindTime, graph_ns: u64) -> Vec<String> {
    let whole = kind.cores as u64 * graph_ns;
    let parts = [
        kind.busy_ns,
        kind.staged_ns,
        kind.overhead_ns,
        kind.polling_ns,
        kind.no_work.producers_ns,
        kind.no_work.builder_ns,
        kind.no_work.nothing_left_ns,
    ];
    let mut row = vec![trace.kind_name(kind.kind), kind.cores.to_string()];
    row.extend(parts.map(|part| percent(part, whole)));
    row
}

fn chain(trace: &Trace, chain: &Chain) -> String {
    let mut text = format!(
        "  {}: builder {}, seeing ends {}, dispatching {}, starting {}, running {}\n",
        counted(chain.links.len() as u64, "task"),
        time(chain.building_ns),
        time(chain.collecting_ns),
        time(chain.dispatching_ns),
        time(chain.starting_ns),
        time(chain.running_ns)
    );
    let head =
        ["task", "kernel", "core", "builder", "seeing", "dispatching", "starting", "running"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let links = &chain.links;
    for (index, link) in links.iter().enumerate() {
        let shown = index < CHAIN_SHOWN / 2 || index + CHAIN_SHOWN / 2 >= links.len();
        if index == CHAIN_SHOWN / 2 && !shown {
            rows.push(vec!["..".to_owned(), format!("{} more", links.len() - CHAIN_SHOWN)]);
        }
        let Some(task) = trace.task(link.task).filter(|_| shown) else { continue };
        let core = task.core.map_or_else(String::new, |core| trace.core_name(core));
        let mut row = vec![link.task.to_string(), trace.called(link.task, task.func_id), core];
        let parts = [
            link.building_ns,
            link.collecting_ns,
            link.dispatching_ns,
            link.starting_ns,
            link.running_ns,
        ];
        row.extend(parts.map(time));
        rows.push(row);
    }
    text += &table(&rows, &[1, 2]);
    text
}

fn critical(trace: &Trace, analysis: &Analysis) -> String {
    let mut kernels: BTreeMap<u16, (usize, u64)> = BTreeMap::new();
    let times = trace.kernel_times();
    for slot in &analysis.critical_path {
        let Some((task, time)) = trace.task(*slot).zip(times.get(*slot as usize)) else { continue };
        let (count, sum) = kernels.entry(task.func_id).or_default();
        (*count, *sum) = (*count + 1, *sum + time);
    }
    let row = |(func, (count, sum)): (u16, (usize, u64))| {
        let share = percent(sum, analysis.bounds.traced_path_ns);
        vec![trace.kernel(func), count.to_string(), time(sum), share]
    };
    let mut rows = vec![["kernel", "tasks", "time", "share"].map(str::to_owned).to_vec()];
    rows.extend(kernels.into_iter().map(row));
    table(&rows, &[])
}

fn kernels(trace: &Trace, analysis: &Analysis) -> String {
    let head = ["kernel", "kind", "runs", "total", "min", "median", "p95", "max", "mean wait"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for kernel in &analysis.kernels {
        let mut row =
            vec![kernel.kernel.clone(), trace.kind_name(kernel.kind), kernel.count.to_string()];
        let times =
            [kernel.total_ns, kernel.min_ns, kernel.median_ns, kernel.p95_ns, kernel.max_ns];
        row.extend(times.map(time));
        row.push(time(kernel.mean_wait_ns));
        rows.push(row);
    }
    table(&rows, &[1])
}

fn waits(trace: &Trace, analysis: &Analysis) -> String {
    let head =
        ["task", "kernel", "core", "ready at", "waited", "dispatching", "a core idle", "starting"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for wait in &analysis.waits {
        let func_id = trace.task(wait.task).map(|task| task.func_id);
        let called = func_id.map_or_else(String::new, |func_id| trace.called(wait.task, func_id));
        let mut row = vec![wait.task.to_string(), called, wait.core.clone()];
        let times =
            [wait.ready_ns, wait.wait_ns, wait.dispatching_ns, wait.idle_core_ns, wait.starting_ns];
        row.extend(times.map(time));
        rows.push(row);
    }
    table(&rows, &[1, 2])
}
