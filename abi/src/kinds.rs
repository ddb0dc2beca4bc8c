//! The closed sets of the interface: core kinds, runtime variants, build modes, fanout strategies, task
//! states, and the flag words.

use bitflags::bitflags;

use crate::closed_set;

closed_set! {
    /// Which compute cores a task runs on.
    pub struct CoreKind(u8) {
        /// Cube core.
        AIC = 0, "aic";
        /// Vector core.
        AIV = 1, "aiv";
    }
}

impl CoreKind {
    /// How many kinds there are.
    pub const COUNT: usize = Self::ALL.len();

    /// `0 .. COUNT`, to index per-kind tables.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        (self.get() & 1) as usize
    }
}

closed_set! {
    /// Who adds tasks, and how edges arise.
    pub struct RuntimeVariant(u32) {
        /// The host builds the graph and sends it as an image.
        HOST_BUILD_GRAPH = 1, "host_build_graph";
        /// AICPU instance 0 builds the graph; the others schedule.
        AICPU_BUILD_GRAPH = 2, "aicpu_build_graph";
        /// AICPU instance 0 submits tasks with tensors; edges follow from them, memory is bounded.
        TENSORMAP_AND_RINGBUFFER = 3, "tensormap_and_ringbuffer";
    }
}

impl RuntimeVariant {
    /// Whether AICPU instance 0 runs a builder program, and schedules nothing.
    #[must_use]
    pub const fn has_builder(self) -> bool {
        matches!(self, Self::AICPU_BUILD_GRAPH | Self::TENSORMAP_AND_RINGBUFFER)
    }
}

closed_set! {
    /// Whether schedulers wait for the builder.
    pub struct BuildMode(u32) {
        /// Schedulers start when the builder has returned.
        SEQUENTIAL = 0, "sequential";
        /// Schedulers run while the builder builds.
        CONCURRENT = 1, "concurrent";
    }
}

closed_set! {
    /// How an edge is added while its producer may complete.
    pub struct FanoutStrategy(u32) {
        /// The producer's own lock guards its fanout (the reference).
        LOCKED = 0, "locked";
        /// The fanout's count and its closing are one word (the fast one).
        LOCK_FREE = 1, "lock-free";
    }
}

closed_set! {
    /// How far a task is (DESIGN.md, Vocabulary). *finished* and *ready* are states of a core and of a
    /// queue, not of the task's line.
    pub struct TaskState(u8) {
        /// Storage without a task.
        NONE = 0, "none";
        /// Exists; the builder may still add edges.
        ADDED = 1, "added";
        /// Visible to schedulers.
        PUBLISHED = 2, "published";
        /// The task is on a core.
        DISPATCHED = 3, "dispatched";
        /// The task's consumers have been released.
        COMPLETED = 4, "completed";
    }
}

bitflags! {
    /// Switches of one run.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct RunFlags: u32 {
        /// Workers add the time that kernels take to their lines (two clock reads a task).
        const KERNEL_TIMES = 1 << 0;
        /// Cores stay in service after a run without a fault, for the next run of the same bring-up. Without it
        /// they leave their loops, and the next run of the arena needs a new `bring_up_epoch`.
        const KEEP_CORES = 1 << 1;
        /// A full trace ring takes no more events, instead of overwriting its oldest ones.
        const TRACE_KEEP_OLDEST = 1 << 2;
        /// The writer of a full trace ring waits until the host has read some of its events.
        const TRACE_WAITS = 1 << 3;
        /// The graph of the last run, which the arena still holds, runs again; its image is where it was. Only of
        /// `host_build_graph`, and not with trace rings: the events of loading would be missing.
        const RUN_AGAIN = 1 << 4;
    }
}

bitflags! {
    /// What a graph image says of itself.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct GraphFlags: u32 {
        /// Every producer comes before its consumers: the loader goes through the tasks once.
        const TOPOLOGICAL = 1 << 0;
        /// Some tasks are transfers.
        const TRANSFERS = 1 << 1;
    }
}
