//! Collects what a fault concerns (instance, task, kernel, core) until it is written to the epitaph.

use pto_abi::runtime::NOBODY;
use pto_abi::{Fault, TaskId};

/// A fault with its circumstances. Code on the hot path returns the bare [`Fault`] and stores this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blame {
    /// What happened.
    pub fault: Fault,
    /// The worker concerned, or `NOBODY`.
    pub worker: u32,
    /// The func id concerned, or `NOBODY`.
    pub func_id: u32,
    /// The task concerned, or `TaskId::NONE`.
    pub task: TaskId,
    /// For how long the cause had lasted.
    pub since_ns: u64,
    /// What was found, what was expected.
    pub detail: [u64; 2],
    /// The ring concerned plus 1, and the scope; zero: none.
    pub ring: (u32, u64),
    /// The argument concerned plus 1; zero: none.
    pub argument: u32,
    /// The part of the task, as its `BlockContext`; zero: it has one only.
    pub part: u64,
}

impl Blame {
    /// Names no culprit.
    #[must_use]
    pub const fn of(fault: Fault) -> Self {
        Self {
            fault,
            worker: NOBODY,
            func_id: NOBODY,
            task: TaskId::NONE,
            since_ns: 0,
            detail: [0; 2],
            ring: (0, 0),
            argument: 0,
            part: 0,
        }
    }

    /// Concerns this worker.
    #[must_use]
    pub const fn worker(mut self, worker: u32) -> Self {
        self.worker = worker;
        self
    }

    /// Concerns this part of the task.
    #[must_use]
    pub const fn part(mut self, context: u64) -> Self {
        self.part = context;
        self
    }

    /// Concerns this func id.
    #[must_use]
    pub const fn func(mut self, func_id: u32) -> Self {
        self.func_id = func_id;
        self
    }

    /// Concerns this task.
    #[must_use]
    pub const fn task(mut self, task: TaskId) -> Self {
        self.task = task;
        self
    }

    /// Concerns this ring, by its index in the stream's header, and this scope.
    #[must_use]
    pub const fn ring(mut self, ring: u32, scope: u64) -> Self {
        self.ring = (ring + 1, scope);
        self
    }

    /// Concerns this argument of the task.
    #[must_use]
    pub const fn argument(mut self, argument: u32) -> Self {
        self.argument = argument + 1;
        self
    }

    /// Has lasted for this long.
    #[must_use]
    pub const fn since(mut self, since_ns: u64) -> Self {
        self.since_ns = since_ns;
        self
    }

    /// What was found, what was expected.
    #[must_use]
    pub const fn detail(mut self, found: u64, expected: u64) -> Self {
        self.detail = [found, expected];
        self
    }
}

/// Keeps the circumstances of the last fault that was returned.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlameSlot(Option<Blame>);

impl BlameSlot {
    /// An empty slot.
    pub(crate) const fn new() -> Self {
        Self(None)
    }

    /// Stores `blame` and returns its fault.
    #[cold]
    #[inline(never)]
    pub fn leave(&mut self, blame: Blame) -> Fault {
        self.0 = Some(blame);
        blame.fault
    }

    /// The circumstances of `fault`, as far as they were left.
    #[must_use]
    pub fn of(&self, fault: Fault) -> Blame {
        self.0.filter(|blame| blame.fault == fault).unwrap_or(Blame::of(fault))
    }
}
