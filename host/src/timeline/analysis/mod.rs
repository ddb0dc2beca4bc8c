//! A run against its lower bounds, and where the difference went. Definitions: `docs/how-to/timeline.md`.
//!
//! ```text
//! Analysis::of -- order.rs   a topological order, or the cycle's existence
//!              |- path.rs    longest chain of kernels; the chain that the run really waited for
//!              |- time.rs    every instant of every core: busy, staged, overhead, polling, no ready work
//!              '- stats.rs   per kernel; the worst waits
//! ```

mod kind;
mod order;
mod path;
mod stats;
mod time;

use pto_abi::CoreKind;
use serde::Serialize;

use crate::timeline::model::Trace;

use kind::kind_name;
pub(crate) use order::topological;
pub use path::{Chain, Link};
pub use stats::{KernelStats, Wait};
pub use time::{KindTime, NoWork};

/// Why a trace cannot be analysed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnalysisError {
    /// The edges of the trace have a cycle, which no run can complete.
    #[error(
        "the trace's edges have a cycle through task {0}: this is not the trace of a run that ended well"
    )]
    Cycle(u32),
    /// There is nothing in it.
    #[error("the trace has no task that ran: record a run with `pto run EXAMPLE --trace FILE`")]
    Empty,
    /// No task ran before the run ended.
    #[error("no task ran before the run ended with the fault {0}")]
    Faulted(String),
}

/// The numbers of a trace. Times in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// From the launch to the return of the last instance; `None`: it was not launched as a graph.
    pub makespan_ns: Option<u64>,
    /// From the first ready task to the last completion, or to the fault that ended the run.
    pub graph_ns: u64,
    /// Tasks that the program submitted.
    pub tasks: usize,
    /// Tasks whose kernel is known to have run; those that are neither timed nor skipped are left out of everything.
    pub tasks_timed: usize,
    /// Tasks that no core was given, because their predicates were false.
    pub tasks_skipped: usize,
    /// Parts that cores ran from a start to an end: each kernel of a chain, and each kernel of each block of a task.
    pub parts_run: usize,
    /// Parts that a core had begun, and not ended, when the run ended.
    pub parts_unfinished: usize,
    /// Pairs of tasks of which one had to wait for the other.
    pub edges: usize,
    /// Events that the rings had no room for: with any, everything here is a part of the truth.
    pub events_dropped: u64,
    /// What no schedule can be faster than.
    pub bounds: Bounds,
    /// Where the time of the cores went, by kind; kinds without cores are left out.
    pub kinds: Vec<KindTime>,
    /// Time in which, for some kind, an idle core and a ready task existed at once.
    pub overhead_ns: u64,
    /// The tasks of the longest chain of kernels.
    pub critical_path: Vec<u32>,
    /// The chain that the last task really waited for.
    pub chain: Chain,
    /// Statistics of each kernel, the kernel with the most time first.
    pub kernels: Vec<KernelStats>,
    /// The ten longest times from ready to started.
    pub waits: Vec<Wait>,
}

/// Lower bounds of the time of the graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bounds {
    /// The kernels of the longest chain of all dependencies, without a pause.
    pub critical_path_ns: u64,
    /// The kernels of the longest chain along the edges of the trace, which are not all dependencies where producers had retired
    /// before their consumers were added.
    pub traced_path_ns: u64,
    /// All kernels of a kind, spread evenly over its cores.
    pub work: Vec<WorkBound>,
    /// The largest of them.
    pub largest_ns: u64,
}

/// The bound of one core kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkBound {
    /// Which cores.
    #[serde(serialize_with = "kind_name")]
    pub kind: CoreKind,
    /// How many.
    pub cores: usize,
    /// Time in kernels, summed.
    pub work_ns: u64,
    /// That, over the cores.
    pub bound_ns: u64,
}

impl Analysis {
    /// Analyses a trace.
    ///
    /// # Errors
    /// `Cycle`, `Empty`.
    pub fn of(trace: &Trace) -> Result<Self, AnalysisError> {
        let tasks_timed = trace.tasks.iter().filter(|task| task.span().is_some()).count();
        if tasks_timed == 0 {
            let empty = AnalysisError::Empty;
            return Err(trace.fault_text().map_or(empty, AnalysisError::Faulted));
        }
        let (producers, consumers) = (trace.producers(), trace.consumers());
        let order =
            topological(trace.tasks.len(), &producers, &consumers).map_err(AnalysisError::Cycle)?;
        let (critical_path, traced_path_ns) = path::longest(trace, &order, &producers);
        // A path through tasks that are not in the trace bounds nothing that is.
        let stated = trace.critical_path_ns.filter(|_| trace.dropped() == 0);
        let critical_path_ns = traced_path_ns.max(stated.unwrap_or(0));
        let work = work_bounds(trace);
        let largest_work = work.iter().map(|bound| bound.bound_ns).max().unwrap_or(0);
        let (times, kernels) = (time::Times::of(trace), stats::kernels(trace));
        Ok(Self {
            makespan_ns: trace.makespan_ns,
            graph_ns: trace.graph_ns(),
            tasks: trace.tasks.len(),
            tasks_timed,
            tasks_skipped: trace.skipped(),
            parts_run: kernels.iter().map(|kernel| kernel.count).sum(),
            parts_unfinished: trace.runs().filter(|run| run.run.is_unfinished()).count(),
            edges: trace.edges.len(),
            events_dropped: trace.dropped(),
            bounds: Bounds {
                critical_path_ns,
                traced_path_ns,
                work,
                largest_ns: critical_path_ns.max(largest_work),
            },
            overhead_ns: times.overhead_ns,
            waits: stats::worst_waits(trace, &times),
            kinds: times.kinds,
            critical_path,
            chain: path::realised(trace, &producers),
            kernels,
        })
    }

    /// The time of the graph over the largest lower bound: 1 cannot be beaten.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub fn over_bound(&self) -> f64 {
        self.graph_ns as f64 / self.bounds.largest_ns.max(1) as f64
    }
}

fn work_bounds(trace: &Trace) -> Vec<WorkBound> {
    let bound = |kind: &CoreKind| {
        let cores = trace.core_count(*kind);
        let of_kind = trace.runs().map(|run| run.run).filter(|run| run.kind == *kind);
        let work_ns = of_kind.map(crate::timeline::model::Task::duration_ns).sum::<u64>();
        (cores > 0).then(|| WorkBound {
            kind: *kind,
            cores,
            work_ns,
            bound_ns: work_ns.div_ceil(cores as u64),
        })
    };
    CoreKind::ALL.iter().filter_map(bound).collect()
}
