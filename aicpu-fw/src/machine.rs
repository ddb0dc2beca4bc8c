//! The machine around the agents of the firmware. Generic and static, never `dyn`.
//!
//! One trait is implemented by three things: the machine of an instance, to which its scheduler has the [`Platform`](crate::Platform) as well; the machine
//! below the lines of GM ([`LinesPlatform`](crate::LinesPlatform)), which is the same one wherever cores look at such lines; and the machine below a
//! builder program, which is a plain function: where it waits or publishes, a machine with one thread steps the other agents. What a machine does not need
//! to say has a default, and where an ability is missing nothing is computed for it.

use core::hash::Hasher;

use pto_abi::GmAddr;
use pto_abi::handshake::{Dispatch, Handshake};
use pto_abi::trace::TracePoint;
use pto_graph::EdgeOutcome;

/// On which terms a step runs tasks from within the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How many it runs at most.
    pub most: u32,
    /// Whether another agent may [ask](Machine::asked_for) for some meanwhile.
    pub has_borrowers: bool,
}

impl Terms {
    /// The terms of an agent that runs everything itself.
    pub const ALONE: Self = Self { most: u32::MAX, has_borrowers: false };
}

/// What a builder does while it submits a range, for a machine that charges for it.
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
    /// The same, of a range on tensors: edges are derived from this many of its arguments, and each was a call of [`Machine::derived`].
    TensorTask {
        /// The slot of the task.
        slot: u32,
        /// How many of its arguments are looked up or noted in the tensor map.
        tensors: u32,
    },
}

/// See the module.
pub trait Machine {
    /// Dispatches that a core may have at once: 1, or 2 where it starts the next one without waiting for AICPU.
    const SLOTS: usize = 1;

    /// Whether a [`poll`](crate::Platform::poll) is worth avoiding.
    const POLLS_COST: bool = false;

    /// Whether dispatches are staged ahead of their tasks ([`Platform::stage_ahead`](crate::Platform::stage_ahead)).
    const STAGES_AHEAD: bool = false;

    /// Whether the doorbell is written as soon as a dispatch is staged, on a machine on which a batch with one barrier saves nothing. Only with one slot.
    const RINGS_AT_ONCE: bool = false;

    /// Whether a core may run a dispatch from within the ring ([`Platform::run`](crate::Platform::run)), which then has finished when it returns.
    const RUNS_AT_ONCE: bool = false;

    /// Whether tasks may have block shapes: not where there is no streaming runtime.
    const BLOCK_SHAPES: bool = true;

    /// Whether there may be sessions. Where not, the program that serves them is a builder that the firmware does not have (`BUILD_NO_BUILDER`).
    const SESSIONS: bool = true;

    /// Whether there may be an engine that moves transfers. Where not, they are refused (`TRANSFER_NO_ENGINE`).
    const TRANSFERS: bool = true;

    /// Whether [`derived`](Self::derived) does anything; where not, no edge of a replay is looked up for it.
    const NOTES_EDGES: bool = false;

    // Time and waiting.

    /// This instance's clock; monotonic, the same origin on every instance of a run.
    fn now_ns(&self) -> u64;

    /// Whether other agents may have run since the last call, or the builder has waited. Where not, the next event has the time of the last look
    /// at the clock.
    #[inline]
    fn took_time(&mut self) -> bool {
        true
    }

    /// Nothing to do just now. A machine whose thread steps other instances gives them a turn.
    #[inline]
    fn relax(&mut self) {}

    /// As [`relax`](Self::relax), of an agent that expects something soon: a machine whose thread sleeps in `relax` stays awake here.
    #[inline]
    fn spin(&mut self) {
        self.relax();
    }

    /// The builder has nothing to do, and sleeps until its doorbell is written. `false`: it was not, for as long as this machine lets a builder
    /// sleep, which may be no time at all.
    fn park(&mut self) -> bool {
        false
    }

    /// The builder program computes, and publishes nothing for a while. A machine with one thread steps the schedulers from here.
    #[inline]
    fn step_others(&mut self) {}

    // Siblings and memory.

    /// Siblings that sleep should look: ready tasks are in a shared queue, or the run is over.
    fn wake_siblings(&mut self) {}

    /// The instance is about to look at the line of a sibling, which that one writes.
    #[inline]
    fn fetch_sibling(&mut self) {}

    /// Before a look at `bytes` bytes of GM that another agent, or the host by DMA, may have written, and after a change of them.
    #[inline]
    fn refresh(&mut self, _address: GmAddr, _bytes: u64) {}

    // The cores that read lines in GM: what has to happen in addition to a write so that a core takes its step.

    /// `worker` is one of this instance's from now on.
    #[inline]
    fn own(&mut self, _worker: u32) {}

    /// `worker` finds something new in its line.
    #[inline]
    fn ring(&mut self, _worker: u32) {}

    /// `worker` finds this dispatch in its lines. Whether it has run and reported it when this returns. Only with one slot.
    #[inline]
    fn run_dispatch(&mut self, worker: u32, _lines: &Handshake, _dispatch: &Dispatch) -> bool {
        self.ring(worker);
        false
    }

    // Other agents that take work of this instance; with `RUNS_AT_ONCE`.

    /// Whether cores run from within the ring just now.
    #[inline]
    fn runs_now(&self) -> bool {
        false
    }

    /// A step begins that runs tasks from within the ring.
    #[inline]
    fn begin_step(&mut self) -> Terms {
        Terms::ALONE
    }

    /// That step has run so many tasks.
    #[inline]
    fn end_step(&mut self, _tasks: u32) {}

    /// How many further dispatches other agents of the machine ask for just now, in addition to those that this one runs itself.
    #[inline]
    fn asked_for(&self) -> usize {
        0
    }

    /// What was staged and committed since the last call goes to the agents that asked.
    #[inline]
    fn lend(&mut self) {}

    // Events of the timeline.

    /// Whether [`trace`](Self::trace) does anything; where not, nothing is computed for it.
    #[inline(always)]
    fn traces(&self) -> bool {
        false
    }

    /// Takes an event of this instance.
    #[inline]
    fn trace(&mut self, _: TracePoint) {}

    // What a builder has done, for a machine that charges for it or steps others.

    /// A task was published. A machine with one thread steps the schedulers from here now and then.
    #[inline]
    fn published(&mut self) {}

    /// The loader has put a task of a graph image into this slot. Nothing runs before all of them are loaded: then
    /// [`published`](Self::published) is called, once.
    #[inline]
    fn loaded(&mut self, _slot: u32) {}

    /// A task was added to this slot, which may have held another one before.
    #[inline]
    fn added(&mut self, _slot: u32) {}

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
}

/// A machine whose clock does not advance, and on which nothing has to be done.
impl Machine for () {
    fn now_ns(&self) -> u64 {
        0
    }
}
