//! Two runs against each other: what of the second differs, and by how much.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::timeline::analysis::{Analysis, KernelStats, KindTime};
use crate::timeline::text::{percent, table, time};

/// A figure of both runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pair {
    /// What it is the figure of.
    pub name: String,
    /// In the run that is looked at; `None`: it has no such thing.
    pub run: Option<u64>,
    /// In the run that it is compared with.
    pub against: Option<u64>,
}

/// The figures of two runs, in nanoseconds unless the field says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// Figures of the whole run: makespan, time of the graph, lower bounds, scheduler overhead, and the chain of tasks that the last task
    /// waited for.
    pub whole_ns: Vec<Pair>,
    /// How the cores of each kind spent their time, in core time.
    pub cores_ns: Vec<Pair>,
    /// Time in each kernel, summed over its runs.
    pub kernels_ns: Vec<Pair>,
    /// How often each kernel ran.
    pub kernel_runs: Vec<Pair>,
}

type Figures = Vec<(String, u64)>;

impl Comparison {
    /// Compares a run with another one.
    #[must_use]
    pub fn of(run: &Analysis, against: &Analysis) -> Self {
        let paired = |figures: &dyn Fn(&Analysis) -> Figures| pairs(figures(run), figures(against));
        Self {
            whole_ns: paired(&whole),
            cores_ns: paired(&|run| run.kinds.iter().flat_map(cores).collect()),
            kernels_ns: paired(&|run| kernels(run, |kernel| kernel.total_ns)),
            kernel_runs: paired(&|run| kernels(run, |kernel| kernel.count as u64)),
        }
    }

    /// The comparison, for people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::from("the run against the other\n");
        text += &shown(&self.whole_ns, time);
        text += "\nwhere the time of the cores went: core time\n";
        text += &shown(&self.cores_ns, time);
        text += "\nkernels: time in all runs\n";
        text += &shown(&self.kernels_ns, time);
        text += "\nkernels: runs\n";
        text + &shown(&self.kernel_runs, |count| count.to_string())
    }
}

fn whole(run: &Analysis) -> Figures {
    let chain = &run.chain;
    let work =
        run.bounds.work.iter().map(|work| (format!("{} work bound", work.kind), work.bound_ns));
    let mut figures = vec![
        ("graph".to_owned(), run.graph_ns),
        ("critical path".to_owned(), run.bounds.critical_path_ns),
    ];
    if let Some(makespan_ns) = run.makespan_ns {
        figures.insert(0, ("makespan".to_owned(), makespan_ns));
    }
    figures.extend(work);
    let chained = [
        ("scheduler overhead", run.overhead_ns),
        ("last chain: builder", chain.building_ns),
        ("last chain: seeing ends", chain.collecting_ns),
        ("last chain: dispatching", chain.dispatching_ns),
        ("last chain: starting", chain.starting_ns),
        ("last chain: running", chain.running_ns),
    ];
    figures.extend(chained.map(|(name, figure)| (name.to_owned(), figure)));
    figures
}

fn cores(kind: &KindTime) -> Figures {
    let parts = [
        ("busy", kind.busy_ns),
        ("staged", kind.staged_ns),
        ("overhead", kind.overhead_ns),
        ("polling", kind.polling_ns),
        ("producers", kind.no_work.producers_ns),
        ("builder", kind.no_work.builder_ns),
        ("nothing left", kind.no_work.nothing_left_ns),
    ];
    parts.map(|(name, figure)| (format!("{} {name}", kind.kind), figure)).into()
}

/// A kernel that runs on both kinds of cores has a row for each.
fn kernels(run: &Analysis, figure: impl Fn(&KernelStats) -> u64) -> Figures {
    run.kernels
        .iter()
        .map(|kernel| (format!("{} ({})", kernel.kernel, kernel.kind), figure(kernel)))
        .collect()
}

/// The figures of the run in their order, followed by those that only the other one has.
fn pairs(run: Figures, against: Figures) -> Vec<Pair> {
    let mut others: BTreeMap<&str, u64> =
        against.iter().map(|(name, figure)| (name.as_str(), *figure)).collect();
    let mut pairs: Vec<Pair> = Vec::with_capacity(run.len());
    for (name, figure) in run {
        let other = others.remove(name.as_str());
        pairs.push(Pair { name, run: Some(figure), against: other });
    }
    let alone = against.iter().filter(|(name, _)| others.contains_key(name.as_str()));
    let alone =
        alone.map(|(name, figure)| Pair { name: name.clone(), run: None, against: Some(*figure) });
    pairs.extend(alone.collect::<Vec<_>>());
    pairs
}

fn shown(pairs: &[Pair], figure: impl Fn(u64) -> String) -> String {
    let mut rows = vec![["", "this run", "the other", "change"].map(str::to_owned).to_vec()];
    let text = |known: Option<u64>| known.map_or_else(|| "-".to_owned(), &figure);
    for pair in pairs {
        rows.push(vec![pair.name.clone(), text(pair.run), text(pair.against), pair.change()]);
    }
    table(&rows, &[])
}

impl Pair {
    /// By how much the run has more or less than the other one, in percent of the other.
    #[must_use]
    pub fn change(&self) -> String {
        match (self.run, self.against) {
            (Some(run), Some(against)) if against > 0 || run == against => {
                // What is shown as nothing has no sign.
                match percent(run.abs_diff(against), against.max(1)).as_str() {
                    "0.0 %" => "0.0 %".to_owned(),
                    change if run > against => format!("+{change}"),
                    change => format!("-{change}"),
                }
            }
            _ => "-".to_owned(),
        }
    }
}
