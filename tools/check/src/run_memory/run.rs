//! The words that the instances of a run share.

use std::fmt;

use pto_abi::launch_args::LaunchArgs;
use pto_abi::ready::{QueueEnds, slots_for};
use pto_abi::runtime::{FaultLine, InstanceLine, Progress};
use pto_abi::sync::AtomicU64;
use pto_abi::task::{EdgeChunk, Task};
use pto_abi::{CoreKind, GmAddr};
use pto_aicpu_fw::SharedState;
use pto_aicpu_fw::builder::BuilderInputs;
use pto_aicpu_fw::ready_queue::ReadyQueue;

use super::many;

/// Where the argument words are in GM.
pub const PAYLOADS: GmAddr = GmAddr(0x10_0000);
/// The generation of the ids.
pub const GENERATION: u32 = 7;

/// What a run provides for.
#[derive(Clone, Copy, Debug)]
pub struct RunSizes {
    /// Task slots.
    pub tasks: u32,
    /// Argument words, with one of block context a task.
    pub payloads: usize,
    /// Chunks of edges.
    pub chunks: usize,
    /// AICPU instances.
    pub instances: usize,
}

/// The memory behind a [`SharedState`].
pub struct RunWords {
    /// The task slots.
    pub tasks: Vec<Task>,
    /// The argument words.
    pub payloads: Vec<AtomicU64>,
    /// The chunks of edges.
    pub chunks: Vec<EdgeChunk>,
    /// The ends of the ready queues.
    pub ends: [QueueEnds; CoreKind::COUNT],
    slots: [Vec<AtomicU64>; CoreKind::COUNT],
    /// How far the run has come.
    pub progress: Progress,
    /// The first fault.
    pub fault: FaultLine,
    /// A line for each instance.
    pub instances: Vec<InstanceLine>,
}

impl RunWords {
    /// Words of these sizes, all zero.
    #[must_use]
    pub fn new(sizes: RunSizes) -> Self {
        let queue = || many(slots_for(sizes.tasks) as usize);
        Self {
            tasks: many(sizes.tasks as usize),
            payloads: many(sizes.payloads),
            chunks: many(sizes.chunks),
            ends: Default::default(),
            slots: [queue(), queue()],
            progress: Progress::default(),
            fault: FaultLine::default(),
            instances: many(sizes.instances),
        }
    }

    /// The words as the firmware sees them; `None`: a queue cannot have this many slots.
    #[must_use]
    pub fn state(&self) -> Option<SharedState<'_>> {
        let queue = |kind: usize| ReadyQueue::new(&self.ends[kind], &self.slots[kind]);
        Some(SharedState {
            tasks: &self.tasks,
            payloads: &self.payloads,
            payloads_address: PAYLOADS,
            chunks: &self.chunks,
            ready: [queue(0)?, queue(1)?],
            progress: &self.progress,
            fault: &self.fault,
            instances: &self.instances,
            schedulers: &self.instances,
            shapes: None,
        })
    }

    /// What the builder on instance 0 is given.
    #[must_use]
    pub fn inputs<'w>(&'w self, args: LaunchArgs<'w>) -> Option<BuilderInputs<'w>> {
        Some(BuilderInputs {
            state: self.state()?,
            line: self.instances.first()?,
            args,
            generation: GENERATION,
            has_kind: [true; CoreKind::COUNT],
        })
    }
}

impl fmt::Debug for RunWords {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = (self.tasks.len(), self.payloads.len(), self.chunks.len());
        to.debug_tuple("RunWords").field(&sizes).finish()
    }
}
