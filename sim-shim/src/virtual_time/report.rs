//! The report of a run in virtual time.

use pto_abi::CoreKind;

use super::account::KindTime;
use super::ledger::{Violation, Waits};
use super::trace::Event;

/// One core kind in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindReport {
    /// Cores of the kind.
    pub cores: u32,
    /// Parts that they ran.
    pub parts: u64,
    /// Time in kernels, over all of them, in nanoseconds.
    pub busy_ns: u64,
    /// Where their time went.
    pub time: KindTime,
}

impl KindReport {
    /// The makespan is not shorter than this: the work over the cores, in nanoseconds.
    #[must_use]
    pub const fn work_bound_ns(&self) -> u64 {
        match self.cores {
            0 => 0,
            cores => self.busy_ns.div_ceil(cores as u64),
        }
    }
}

/// One AICPU instance in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstanceReport {
    /// Steps that were made; idle ones that changed nothing were skipped and are not counted.
    pub steps: u64,
    /// Time in steps that moved something, in nanoseconds, the building of the graph included.
    pub worked_ns: u64,
    /// When it returned, in nanoseconds from the launch.
    pub returned_ns: u64,
}

/// The report of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VirtualReport {
    /// From launch to the last return, in nanoseconds.
    pub makespan_ns: u64,
    /// From the first ready task to the last completion, in nanoseconds.
    pub graph_ns: u64,
    /// Tasks that were completed.
    pub tasks: u64,
    /// Kernels of these tasks: as many as its chain has, or one.
    pub kernels: u64,
    /// The hash of the trace.
    pub trace_hash: u64,
    /// Choices that had more than one alternative.
    pub choices: u64,
    /// Turns that instances, their alarms, cores and the transfer engine took: what it costs to simulate the run.
    pub turns: u64,
    /// Faults that were injected.
    pub injections: u32,
    /// The longest path of kernels along edges, in nanoseconds.
    pub critical_path_ns: u64,
    /// What tasks waited for.
    pub waits: Waits,
    /// By core kind.
    pub kinds: [KindReport; CoreKind::COUNT],
    /// By AICPU instance.
    pub instances: Vec<InstanceReport>,
    /// The events that were kept, in the order in which the machine made them.
    pub events: Vec<Event>,
    /// Events that were not kept although some were asked for.
    pub events_dropped: u64,
    /// What must never happen, and did: the first ones.
    pub violations: Vec<Violation>,
    /// How many there were.
    pub violation_count: u64,
}

impl VirtualReport {
    /// The larger lower bound of [`graph_ns`](Self::graph_ns): critical path, or work over cores of a kind.
    #[must_use]
    pub fn lower_bound_ns(&self) -> u64 {
        let work = self.kinds.iter().map(KindReport::work_bound_ns);
        work.fold(self.critical_path_ns, u64::max)
    }

    /// The part of the makespan, 0 to 1, that the cores of `kind` spent in kernels, on average.
    #[must_use]
    pub fn utilisation(&self, kind: CoreKind) -> f64 {
        let KindReport { cores, busy_ns, .. } = self.kinds[kind.index()];
        ratio(busy_ns, u64::from(cores) * self.makespan_ns)
    }

    /// Scheduler overhead: the part of the time of the graph in which a core of the kind was idle while a
    /// task of the kind was ready and undispatched, 0 to 1.
    #[must_use]
    pub fn overhead(&self, kind: CoreKind) -> f64 {
        ratio(self.kinds[kind.index()].time.overhead_ns, self.graph_ns)
    }

    /// Time of all AICPU instances in steps that moved something, over the kernels, in nanoseconds. `builders`:
    /// how many of the first instances only build, and are left out.
    #[must_use]
    pub fn aicpu_ns_per_kernel(&self, builders: usize) -> f64 {
        let worked = self.instances.iter().skip(builders).map(|instance| instance.worked_ns).sum();
        ratio(worked, self.kernels)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
