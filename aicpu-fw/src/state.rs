//! The words that builder and schedulers share, as typed views. Made from an arena, or by tests from
//! ordinary memory.
//!
//! Why it is so: `docs/decisions/termination.md`.

use pto_abi::runtime::{FaultLine, InstanceLine, Progress};
use pto_abi::stream::BlockLine;
use pto_abi::sync::{AtomicU64, Ordering};
use pto_abi::task::{EdgeChunk, SHAPED, Task};
use pto_abi::{CoreKind, GmAddr};

use crate::block_shapes::{BlockShapeMemory, List, has_predicate};
use crate::platform::Staged;
use crate::ready_queue::ReadyQueue;

/// Everything that the instances of one run share.
#[derive(Clone, Copy)]
pub struct SharedState<'a> {
    /// The tasks.
    pub tasks: &'a [Task],
    /// The argument words.
    pub payloads: &'a [AtomicU64],
    /// Where the argument words are in GM.
    pub payloads_address: GmAddr,
    /// The chunks of consumers.
    pub chunks: &'a [EdgeChunk],
    /// Ready tasks, by core kind.
    pub ready: [ReadyQueue<'a>; CoreKind::COUNT],
    /// Termination.
    pub progress: &'a Progress,
    /// The first fault.
    pub fault: &'a FaultLine,
    /// What each instance says of itself.
    pub instances: &'a [InstanceLine],
    /// Those of them that have cores.
    pub schedulers: &'a [InstanceLine],
    /// Shaped tasks, in a streaming run.
    pub shapes: Option<BlockShapeMemory<'a>>,
}

impl<'a> SharedState<'a> {
    /// The task in `slot`.
    #[inline]
    #[must_use]
    pub fn task(&self, slot: u32) -> Option<&'a Task> {
        self.tasks.get(slot as usize)
    }

    /// The ready queue of `kind`.
    #[inline]
    #[must_use]
    pub fn queue(&self, kind: CoreKind) -> &ReadyQueue<'a> {
        // COUNT is 2 and `index` is 0 or 1: no bounds check remains.
        &self.ready[kind.index()]
    }

    /// The dispatch of a task: the words that a core receives.
    #[inline]
    pub(crate) fn dispatch_of(&self, slot: u32, task: &Task) -> Staged {
        let payload = u64::from(task.payload.load(Ordering::Relaxed));
        Staged {
            task: slot,
            kernel: GmAddr(task.kernel.load(Ordering::Relaxed)),
            args: self.payloads_address.offset(8 * payload),
        }
    }

    /// Whether the last publish has been made.
    #[must_use]
    pub fn build_is_done(&self) -> bool {
        // Acquire: pairs with the Release store in `Builder::finish`; `outstanding` is then final or falling.
        self.progress.build_done.load(Ordering::Acquire) != 0
    }

    /// Tasks whose consumers have not all been released, the builder's reserve included.
    #[must_use]
    pub fn outstanding(&self) -> u64 {
        // Acquire: pairs with the Release subtraction in `Tally::flush`.
        self.progress.outstanding.load(Ordering::Acquire)
    }

    /// Puts a task with a block shape that has become ready where schedulers look: on its list, or among those whose predicate
    /// is to be read.
    pub(crate) fn post_ready(&self, slot: u32) {
        let Some(line) = self.shapes.and_then(|shapes| shapes.line(slot)) else { return };
        let list = if has_predicate(line) { Some(List::ARRIVALS) } else { List::of(line) };
        if let Some(list) = list {
            self.post(list, slot);
        }
    }

    /// Makes a task that no scheduler looks at yet a transfer; `false`: the run has no memory for such.
    pub(crate) fn set_transfer(&self, slot: u32) -> bool {
        let line = self.shapes.and_then(|shapes| shapes.line(slot));
        line.into_iter().for_each(BlockLine::set_transfer);
        line.is_some()
    }

    /// Whether a task with a block shape is one for the transfer engine.
    #[must_use]
    pub fn is_transfer(&self, slot: u32) -> bool {
        let line = self.shapes.and_then(|shapes| shapes.line(slot));
        line.is_some_and(|line| List::of(line) == Some(List::TRANSFERS))
    }

    /// Puts a task with a block shape on a list of the board, after the plain tasks that are in the ready queues.
    pub(crate) fn post(&self, list: List, slot: u32) {
        if let Some(shapes) = &self.shapes {
            shapes.post(list, slot, self.ready.map(|queue| queue.pushed()));
        }
    }

    /// Shaped tasks that are ready and wait for cores.
    #[must_use]
    pub fn shaped_waiting(&self) -> u32 {
        self.shapes.as_ref().map_or(0, BlockShapeMemory::waiting)
    }

    /// Sums a counter over all instances.
    #[must_use]
    pub fn sum(&self, counter: impl Fn(&InstanceLine) -> u64) -> u64 {
        self.instances.iter().map(counter).sum()
    }
}

/// The core kind of a task. The builder wrote it from a `CoreKind`.
#[inline]
pub(crate) fn kind_of(task: &Task) -> CoreKind {
    kind_in(task.kind.load(Ordering::Relaxed))
}

/// The core kind in the word of a task that says it.
#[inline]
pub(crate) const fn kind_in(kind: u8) -> CoreKind {
    if kind & 1 == 0 { CoreKind::AIC } else { CoreKind::AIV }
}

/// Whether a task has a block shape, by the word that says its kind.
#[inline]
pub(crate) const fn has_block_shape(kind: u8) -> bool {
    kind & SHAPED != 0
}
