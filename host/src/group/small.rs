//! Options for runs of small groups: rings of a few slots, which programs go around more than once.

use std::time::Duration;

use crate::options::RunOptions;

/// What differs from one kind of small run to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct SmallRun {
    pub(super) aicpu_instances: u32,
    pub(super) stall_budget: Duration,
    /// Tasks of the run, and of them those that may be under way.
    pub(super) tasks: u32,
    pub(super) window: u32,
    /// Bytes of a heap; there are four.
    pub(super) heap_bytes: u64,
}

impl SmallRun {
    pub(super) fn options(self) -> RunOptions {
        let Self { aicpu_instances, stall_budget, tasks, window, heap_bytes } = self;
        let mut options = RunOptions { aicpu_instances, stall_budget, ..RunOptions::default() };
        let capacities = &mut options.capacities;
        capacities.tasks = tasks;
        capacities.stream.window = window;
        capacities.stream.map_entries = 4096;
        capacities.stream.heap_rings = 4;
        capacities.stream.heap_bytes = heap_bytes;
        options
    }
}
