//! What a run that succeeded reports.

use std::time::Duration;

use crate::timeline::Trace;
use pto_abi::arena::Arena;
use pto_abi::sync::Ordering;
use pto_abi::{CoreKind, RuntimeVariant};
#[cfg(feature = "sim")]
use pto_sim_shim::virtual_time::VirtualReport;

use crate::logs::LogMessage;
use crate::stream_report::StreamReport;

/// What happened in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunReport {
    /// Who built the graph.
    pub variant: RuntimeVariant,
    /// Tasks that the program submitted, and that were completed or skipped.
    pub tasks: u64,
    /// Kernels of these tasks: as many as its chain has, or one.
    pub kernels: u64,
    /// Pairs of tasks of which one had to wait for the other: those that it did wait for, and those that were satisfied already.
    pub edges: u64,
    /// Edges whose producer had completed when they were added.
    pub edges_satisfied: u64,
    /// From the launch to the last instance's return; in hosting mode `virtual`, in virtual time.
    pub makespan: Duration,
    /// Cores of the device, by [`CoreKind::index`].
    pub cores: [u32; CoreKind::COUNT],
    /// Time in kernels, summed over the cores of a kind; zero when it was not measured.
    pub busy: [Duration; CoreKind::COUNT],
    /// Parts that the cores of a kind ran: kernels of chains, and of each block of other tasks.
    pub parts_run: [u64; CoreKind::COUNT],
    /// What the firmware logged, in the order of its clocks.
    pub logs: Vec<LogMessage>,
    /// Log entries that were overwritten before the host read them.
    pub logs_dropped: u64,
    /// The timeline of the run, if it was recorded.
    pub trace: Option<Box<Trace>>,
    /// How much of its rings a streaming run used.
    pub stream: Option<StreamReport>,
    /// What the machine saw in virtual time, if that is how the run was hosted.
    #[cfg(feature = "sim")]
    pub virtual_report: Option<Box<VirtualReport>>,
}

impl RunReport {
    /// The report of this run and of a later one on the same device: what was done in both. Timelines are of single runs, and are left out.
    #[must_use]
    pub fn and_then(self, later: Self) -> Self {
        let sum = |ours: [u64; CoreKind::COUNT], theirs: [u64; CoreKind::COUNT]| {
            std::array::from_fn(|at| ours[at] + theirs[at])
        };
        Self {
            tasks: self.tasks + later.tasks,
            kernels: self.kernels + later.kernels,
            edges: self.edges + later.edges,
            edges_satisfied: self.edges_satisfied + later.edges_satisfied,
            makespan: self.makespan + later.makespan,
            busy: std::array::from_fn(|at| self.busy[at] + later.busy[at]),
            parts_run: sum(self.parts_run, later.parts_run),
            logs: self.logs.into_iter().chain(later.logs).collect(),
            logs_dropped: self.logs_dropped + later.logs_dropped,
            trace: None,
            ..later
        }
    }

    /// The part of the makespan, 0 to 1, that the cores of `kind` spent in kernels, on average.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    pub fn utilisation(&self, kind: CoreKind) -> f64 {
        let capacity = self.makespan.as_nanos() * u128::from(self.cores[kind.index()]);
        if capacity == 0 {
            0.0
        } else {
            self.busy[kind.index()].as_nanos() as f64 / capacity as f64
        }
    }

    /// From the first ready task to the last completion, or to the fault: as the machine in virtual time or the timeline says; `None`: neither
    /// does.
    #[must_use]
    pub fn graph(&self) -> Option<Duration> {
        #[cfg(feature = "sim")]
        if let Some(report) = &self.virtual_report {
            return Some(Duration::from_nanos(report.graph_ns));
        }
        self.trace.as_ref().map(|trace| Duration::from_nanos(trace.graph_ns()))
    }

    /// Tasks completed per second of makespan.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    pub fn tasks_per_second(&self) -> f64 {
        let seconds = self.makespan.as_secs_f64();
        if seconds > 0.0 { self.tasks as f64 / seconds } else { 0.0 }
    }
}

#[cfg(feature = "sim")]
impl RunReport {
    /// The machine in virtual time has followed the paths of tasks that had retired; the timeline gets their length.
    pub(crate) fn know_critical_path(&mut self) {
        if let Some((trace, virtual_report)) = self.trace.as_mut().zip(self.virtual_report.as_ref())
        {
            trace.critical_path_ns = Some(virtual_report.critical_path_ns);
        }
    }
}

/// What the AICPU instances say of a run, summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InstanceTotals {
    pub(crate) completed: u64,
    /// Kernels of chains, without the first of each.
    pub(crate) chained: u64,
    pub(crate) edges: u64,
    pub(crate) edges_satisfied: u64,
}

impl InstanceTotals {
    /// Only when all instances have returned.
    pub(crate) fn read(arena: &Arena<'_>) -> Self {
        let mut totals = Self::default();
        for line in arena.instances() {
            totals.completed += line.completed.load(Ordering::Relaxed);
            totals.chained += line.chained.load(Ordering::Relaxed);
            totals.edges += line.edges.load(Ordering::Relaxed);
            totals.edges_satisfied += line.edges_satisfied.load(Ordering::Relaxed);
        }
        totals
    }
}

/// What the cores say since their arena was made, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CoreTotals {
    tasks_run: [u64; CoreKind::COUNT],
    busy_ns: [u64; CoreKind::COUNT],
}

impl CoreTotals {
    /// Only while no core runs. The first `cores[AIC]` workers are AIC.
    pub(crate) fn read(arena: &Arena<'_>, cores: [u32; CoreKind::COUNT]) -> Self {
        let mut totals = Self::default();
        let kinds = CoreKind::ALL
            .iter()
            .flat_map(|kind| std::iter::repeat_n(kind.index(), cores[kind.index()] as usize));
        for (worker, kind) in arena.workers().iter().zip(kinds) {
            let line = &worker.worker;
            totals.tasks_run[kind] += line.tasks_run.load(Ordering::Relaxed);
            totals.busy_ns[kind] += line.busy_ns.load(Ordering::Relaxed);
        }
        totals
    }

    /// Tasks run and time in kernels since `before`.
    pub(crate) fn since(
        &self,
        before: &Self,
    ) -> ([u64; CoreKind::COUNT], [Duration; CoreKind::COUNT]) {
        let difference = |kind: usize| self.tasks_run[kind].wrapping_sub(before.tasks_run[kind]);
        let busy = |kind: usize| self.busy_ns[kind].wrapping_sub(before.busy_ns[kind]);
        let kinds = [CoreKind::AIC.index(), CoreKind::AIV.index()];
        (kinds.map(difference), kinds.map(busy).map(Duration::from_nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::RunReport;
    use pto_abi::{CoreKind, RuntimeVariant};
    use std::time::Duration;

    #[test]
    fn rates_are_per_makespan_and_never_divide_by_zero() {
        let mut report = RunReport {
            variant: RuntimeVariant::HOST_BUILD_GRAPH,
            tasks: 500,
            kernels: 500,
            edges: 0,
            edges_satisfied: 0,
            makespan: Duration::from_millis(10),
            cores: [0, 4],
            busy: [Duration::ZERO, Duration::from_millis(30)],
            parts_run: [0, 500],
            logs: Vec::new(),
            logs_dropped: 0,
            trace: None,
            stream: None,
            #[cfg(feature = "sim")]
            virtual_report: None,
        };
        assert!((report.utilisation(CoreKind::AIV) - 0.75).abs() < 1e-9);
        assert!(report.utilisation(CoreKind::AIC).abs() < 1e-9);
        assert!((report.tasks_per_second() - 50_000.0).abs() < 1e-6);
        report.makespan = Duration::ZERO;
        assert!(report.tasks_per_second().abs() < 1e-9);
        assert!(report.utilisation(CoreKind::AIV).abs() < 1e-9);
    }
}
