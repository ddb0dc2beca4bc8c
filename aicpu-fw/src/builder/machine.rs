//! What a builder needs from the machine around it: the memory of the device, and a way to let the other agents take steps.

use core::hash::Hasher;

use pto_abi::trace::TracePoint;
use pto_abi::{FuncId, GmAddr};
use pto_graph::EdgeOutcome;

/// What a builder reads of the device beside the shared state.
pub trait DeviceMemory {
    /// Where the code of `func_id` is; null: not registered.
    fn kernel_addr(&self, func_id: FuncId) -> GmAddr;

    /// The word of GM at `address`; `None`: outside GM, or not aligned.
    fn read_u32(&self, address: GmAddr) -> Option<u32>;

    /// Whether [`read_element`](Self::read_element) could read an element there. Nothing is read: a kernel may be writing it.
    fn has_element(&self, _address: GmAddr, _bytes: u64) -> bool {
        false
    }

    /// The element of `bytes` bytes (1, 2, 4 or 8) at `address`; `None`: outside GM, or not aligned. Only for an element that
    /// no task under way writes.
    fn read_element(&self, _address: GmAddr, _bytes: u64) -> Option<u64> {
        None
    }

    /// Writes an element, as [`read_element`](Self::read_element) reads it.
    fn write_element(&self, _address: GmAddr, _bytes: u64, _value: u64) -> Option<()> {
        None
    }
}

/// What a builder does while it submits a range, for a host that charges for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeNote {
    /// A range begins.
    Range,
    /// An edge of the task that is added.
    Edge {
        /// The slot of the task that is waited for.
        producer: u32,
        /// The slot of the task that waits.
        consumer: u32,
        /// What became of the edge.
        outcome: EdgeOutcome,
    },
    /// The task in this slot was added, with its edges, and is about to be published.
    Task(u32),
    /// The same, of a range on tensors: edges are derived from so many of its arguments, and each has been
    /// [told](BuilderHost::derived).
    TensorTask {
        /// The slot of the task.
        slot: u32,
        /// How many of its arguments the tensor map is asked about, or told of.
        tensors: u32,
    },
}

/// What the machine does while a builder program, a plain function, is on the stack.
pub trait BuilderHost {
    /// A task was published. A host with one thread steps the schedulers from here now and then.
    fn published(&mut self);

    /// The loader has put a task of a graph image into this slot. Nothing runs before all of them stand: then
    /// [`published`](Self::published) is called, once.
    #[inline]
    fn loaded(&mut self, _slot: u32) {}

    /// A task was added to this slot, which may have held another one before.
    #[inline]
    fn added(&mut self, _slot: u32) {}

    /// Whether [`derived`](Self::derived) does anything; where not, the edges of a replay are not looked for to tell them.
    const NOTES_EDGES: bool = false;

    /// [`Abilities::TRANSFERS`](crate::Abilities::TRANSFERS).
    const TRANSFERS: bool = true;

    /// An edge was derived from tensors.
    #[inline]
    fn derived(&mut self, _producer: u32, _consumer: u32, _outcome: EdgeOutcome) {}

    /// A task of a recording was added to this slot, with its edges, and is about to be published.
    #[inline]
    fn replayed(&mut self, _slot: u32) {}

    /// A range is submitted.
    #[inline]
    fn in_range(&mut self, _what: RangeNote) {}

    /// In a search over all orders of steps: what a streaming builder hashes its state into before each turn of the others.
    #[inline]
    fn hasher(&mut self) -> Option<&mut dyn Hasher> {
        None
    }

    /// The program computes, and publishes nothing for a while. A host with one thread steps the schedulers from here.
    #[inline]
    fn turn(&mut self) {}

    /// The builder waits for schedulers. A host whose thread steps other instances gives them a turn.
    #[inline]
    fn relax(&mut self) {}

    /// As [`relax`](Self::relax), of a builder that has nothing to do and expects something soon: a host whose thread naps in `relax` stays
    /// awake here.
    #[inline]
    fn linger(&mut self) {
        self.relax();
    }

    /// The builder has nothing to do, and sleeps until somebody rings for it. `false`: nobody has, for as long as this machine lets a
    /// builder sleep, which may be no time at all.
    fn doze(&mut self) -> bool {
        false
    }

    /// Before a look at `bytes` bytes of GM that the host reads and writes by DMA while no instance runs, and behind a change of them.
    #[inline]
    fn refresh(&mut self, _address: GmAddr, _bytes: u64) {}

    /// Whether [`trace`](Self::trace) does anything; where not, nothing is computed for it.
    #[inline(always)]
    fn traces(&self) -> bool {
        false
    }

    /// The clock of the builder's instance, for events.
    #[inline]
    fn now_ns(&self) -> u64 {
        0
    }

    /// Whether others may have had a turn since the last call, or the builder has waited. Where not, the next event has the time of the last look
    /// at the clock.
    #[inline]
    fn took_time(&mut self) -> bool {
        true
    }

    /// Takes an event of the builder's instance.
    #[inline]
    fn trace(&mut self, _: TracePoint) {}
}

impl BuilderHost for () {
    fn published(&mut self) {}
}
