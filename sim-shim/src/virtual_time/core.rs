//! One core in virtual time: its own copies of its two handshake lines, its own clock, and the worker loop's
//! port over them.
//!
//! ```text
//! AICPU (the arena's lines)                       core (its own copies)
//! doorbell -> Order, seen doorbell_ns later  ---> scheduler's line is invalidated and read
//! poll     <- Report, seen finish_visible later <- worker's line is written and cleaned
//! ```
//! Neither side sees the other's line change at any other moment.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use pto_abi::CoreKind;
use pto_abi::handshake::{Command, Dispatch, Handshake, SchedulerLine, WorkerLine};
use pto_abi::sync::Ordering::Relaxed;

use super::inject::Trouble;
use crate::async_kernels::AsyncKernel;

/// The scheduler's line as it was when a doorbell was rung.
#[derive(Clone, Copy, Hash)]
pub(super) struct DoorbellSnapshot {
    pub(super) seen_ns: u64,
    aicpu_ready: u32,
    control: u32,
    doorbell: u32,
    dispatches: [Dispatch; SLOTS],
}

impl DoorbellSnapshot {
    pub(super) fn of(line: &SchedulerLine, seen_ns: u64) -> Self {
        Self {
            seen_ns,
            aicpu_ready: line.aicpu_ready.load(Relaxed),
            control: line.control.load(Relaxed),
            doorbell: line.doorbell.load(Relaxed),
            dispatches: [line.dispatch(0), line.dispatch(1)],
        }
    }

    fn write(&self, line: &SchedulerLine) {
        line.aicpu_ready.store(self.aicpu_ready, Relaxed);
        line.control.store(self.control, Relaxed);
        line.doorbell.store(self.doorbell, Relaxed);
        for (words, dispatch) in line.dispatches.iter().zip(&self.dispatches) {
            words.task.store(dispatch.task, Relaxed);
            words.kernel.store(dispatch.kernel, Relaxed);
            words.args.store(dispatch.args, Relaxed);
        }
    }
}

/// The worker's line as it was when the core reported.
#[derive(Clone, Copy, Hash)]
pub(super) struct Report {
    pub(super) visible_ns: u64,
    aicore_done: u32,
    core_id: u32,
    kind: u32,
    status: u32,
    tasks_run: u64,
    busy_ns: u64,
    chain: (u32, u32),
}

impl Report {
    pub(super) fn of(line: &WorkerLine, visible_ns: u64) -> Self {
        Self {
            visible_ns,
            aicore_done: line.aicore_done.load(Relaxed),
            core_id: line.core_id.load(Relaxed),
            kind: line.kind.load(Relaxed),
            status: line.status.load(Relaxed),
            tasks_run: line.tasks_run.load(Relaxed),
            busy_ns: line.busy_ns.load(Relaxed),
            chain: (line.chain_kernel.load(Relaxed), line.chain_func.load(Relaxed)),
        }
    }

    pub(super) fn write(&self, line: &WorkerLine) {
        line.aicore_done.store(self.aicore_done, Relaxed);
        line.core_id.store(self.core_id, Relaxed);
        line.kind.store(self.kind, Relaxed);
        line.status.store(self.status, Relaxed);
        line.tasks_run.store(self.tasks_run, Relaxed);
        line.busy_ns.store(self.busy_ns, Relaxed);
        line.chain_kernel.store(self.chain.0, Relaxed);
        line.chain_func.store(self.chain.1, Relaxed);
    }
}

/// Dispatches that a core may have at once: the one that it runs, and the next.
pub(super) const SLOTS: usize = 2;

/// A chain that a core is running.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct ChainRun {
    pub(super) task: u32,
    /// Kernels of it that have ended.
    pub(super) kernels: u64,
    /// What they took.
    pub(super) busy_ns: u64,
}

/// A kernel that goes on after its call has returned, and what its end needs.
pub(super) struct GoingOn {
    pub(super) kernel: Arc<dyn AsyncKernel>,
    pub(super) task: u32,
    /// The dispatch that is to be reported.
    pub(super) id: u32,
    pub(super) started_ns: u64,
    pub(super) trouble: Option<Trouble>,
}

/// One core.
pub(super) struct Core {
    pub(super) worker: u32,
    pub(super) kind: CoreKind,
    /// The instance that rang it last.
    pub(super) owner: usize,
    /// The core's own time: until when it is occupied.
    pub(super) now_ns: u64,
    /// When its last kernel ends.
    pub(super) kernel_end_ns: u64,
    /// Dispatches that were rung and have not been started.
    pub(super) unstarted: usize,
    /// The lines as the schedulers see them.
    pub(super) arena_lines: &'static Handshake,
    pub(super) orders: VecDeque<DoorbellSnapshot>,
    pub(super) reports: VecDeque<Report>,
    /// In a kernel that does not return, or never started.
    pub(super) is_hung: bool,
    /// In a kernel that goes on after its call has returned.
    pub(super) going_on: Option<GoingOn>,
    pub(super) lines: Handshake,
    pub(super) tasks_started: u64,
    pub(super) slowdown: u64,
    pub(super) ghost: Option<u32>,
    pub(super) chain: Option<ChainRun>,
}

impl Core {
    /// A core as the arena's lines show it.
    pub(super) fn new(worker: u32, kind: CoreKind, arena_lines: &'static Handshake) -> Self {
        let lines = Handshake::default();
        DoorbellSnapshot::of(&arena_lines.scheduler, 0).write(&lines.scheduler);
        Report::of(&arena_lines.worker, 0).write(&lines.worker);
        Self {
            worker,
            kind,
            owner: 0,
            now_ns: 0,
            kernel_end_ns: 0,
            unstarted: 0,
            arena_lines,
            orders: VecDeque::new(),
            reports: VecDeque::new(),
            is_hung: false,
            going_on: None,
            lines,
            tasks_started: 0,
            slowdown: 1,
            ghost: None,
            chain: None,
        }
    }

    /// Hashes what it has, and what is under way from it and to it.
    pub(super) fn hash_state(&self, into: &mut impl Hasher) {
        let Self {
            worker: _,
            kind: _,
            owner,
            now_ns,
            kernel_end_ns,
            unstarted,
            arena_lines: _,
            orders,
            reports,
            is_hung,
            going_on,
            lines,
            tasks_started,
            slowdown,
            ghost,
            chain,
        } = self;
        // Searches run kernels of the library, which return with their call.
        going_on.is_some().hash(into);
        (owner, now_ns, kernel_end_ns, unstarted, orders, reports, is_hung).hash(into);
        (tasks_started, slowdown, ghost, chain).hash(into);
        (DoorbellSnapshot::of(&lines.scheduler, 0), Report::of(&lines.worker, 0)).hash(into);
    }

    /// Takes in the orders that it can see by now.
    #[inline]
    pub(super) fn look(&mut self) {
        while self.orders.front().is_some_and(|order| order.seen_ns <= self.now_ns) {
            if let Some(order) = self.orders.pop_front() {
                order.write(&self.lines.scheduler);
            }
        }
    }

    /// Shows the scheduler what has become visible by `now_ns`.
    #[inline]
    pub(super) fn show(&mut self, now_ns: u64) {
        while self.reports.front().is_some_and(|report| report.visible_ns <= now_ns) {
            if let Some(report) = self.reports.pop_front() {
                report.write(&self.arena_lines.worker);
            }
        }
    }

    /// Whether it can be given a dispatch: it has fewer than [`SLOTS`], started or not.
    pub(super) fn is_free(&self, now_ns: u64) -> bool {
        let running = usize::from(self.now_ns > now_ns || self.is_occupied());
        self.unstarted + running < SLOTS
    }

    /// What it was rung for last.
    #[cfg(test)]
    pub(super) fn newest(&self) -> Dispatch {
        let line = &self.lines.scheduler;
        line.dispatch(line.doorbell.load(Relaxed))
    }

    /// Whether it is in a kernel whose end is not known.
    pub(super) const fn is_occupied(&self) -> bool {
        self.is_hung || self.going_on.is_some()
    }

    /// Whether it has a dispatch that it could start at once.
    pub(super) fn has_more(&self) -> bool {
        !self.is_occupied() && matches!(self.lines.command(), Command::Run(_) | Command::Quit)
    }
}
