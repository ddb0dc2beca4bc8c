//! What the firmware needs of the machine it runs on. Generic and static, never `dyn`.
//!
//! ```text
//! Platform: the cores of one instance (attach, greet, answer, poll, stage, commit, stop, stopped)
//!   + Machine      the clock, what idling means, siblings      every machine says it
//!   + Abilities    what is worth doing on this machine         constants with defaults, as
//!   + Traces       where events go                             everything below: a machine
//!   + StagesAhead  dispatches before their tasks are ready     that can no more says
//!   + RunsAtOnce   cores that run from within the ring         `impl Traces for M {}`
//!   + Predicates   words that other agents write
//! ```
//! Barriers and cache maintenance are inside these operations: a `Finished` answer has acquired what the
//! core wrote; `commit` makes everything written before it visible to the cores that it rings.

use pto_abi::sync::Sharing;
use pto_abi::trace::TracePoint;
use pto_abi::{Fault, GmAddr};

/// How far a core is with what it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreStatus {
    /// It was given nothing, or its last task has been collected.
    Idle,
    /// It has not finished.
    Busy,
    /// It has finished; what it wrote is visible. Answered once for each dispatch; of two, for the older first.
    Finished,
    /// As `Finished`, for the older of two dispatches; the newer one has finished too, as the next answer says.
    FinishedMore,
    /// It reports this, which it was not given.
    Foreign(u32),
}

/// One dispatch, as policy decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staged {
    /// Slot of the task.
    pub task: u32,
    /// The kernel's code.
    pub kernel: GmAddr,
    /// The task's arguments.
    pub args: GmAddr,
}

/// The machine around the cores, as one AICPU instance sees it.
pub trait Machine {
    /// This instance's clock; monotonic, the same origin on every instance of a run.
    fn now_ns(&self) -> u64;

    /// Nothing to do just now.
    fn relax(&mut self);

    /// Siblings that sleep should look: ready tasks are in a shared queue, or the run is over.
    fn wake_siblings(&mut self) {}

    /// The instance is about to look at the line of a sibling, which that one writes.
    #[inline]
    fn fetch_sibling(&mut self) {}
}

/// What is worth doing on a machine. Where something is not, nothing is computed for it.
pub trait Abilities {
    /// Dispatches that a core may have at once: 1, or 2 where it starts the next one without waiting for AICPU.
    const SLOTS: usize = 1;

    /// Whether a [`poll`](Platform::poll) is worth avoiding.
    const POLLS_COST: bool = false;

    /// Whether dispatches are staged ahead of their tasks ([`StagesAhead`]).
    const STAGES_AHEAD: bool = false;

    /// Whether a core may run a dispatch from within the ring ([`RunsAtOnce`]), which then has finished when it returns.
    const RUNS_AT_ONCE: bool = false;

    /// Whether tasks may have block shapes: not where there is no streaming runtime.
    const BLOCK_SHAPES: bool = true;

    /// Whether there may be sessions. Where not, the program that serves them is a builder that the firmware does not have (`BUILD_NO_BUILDER`).
    const SESSIONS: bool = true;

    /// Whether there may be an engine that moves transfers. Where not, they are refused (`TRANSFER_NO_ENGINE`).
    const TRANSFERS: bool = true;
}

/// Where events go.
pub trait Traces {
    /// Whether [`trace`](Self::trace) does anything; where not, nothing is computed for it.
    #[inline(always)]
    fn traces(&self) -> bool {
        false
    }

    /// Takes an event of this instance.
    #[inline]
    fn trace(&mut self, _: TracePoint) {}
}

/// Dispatches that are written before their tasks are ready; with [`Abilities::STAGES_AHEAD`].
pub trait StagesAhead {
    /// The instance is about to look at the line of a task that others may be dealing with.
    #[inline]
    fn fetch(&mut self, _task: u32) {}

    /// Writes a dispatch of a task that is not ready yet for a core that has fewer than [`SLOTS`](Abilities::SLOTS), and
    /// none that is staged. Nothing comes of it unless it is rung; whatever is staged for the core next replaces it.
    #[inline]
    fn stage_ahead(&mut self, _core: usize, _dispatch: Staged) {}

    /// A barrier, if something was staged ahead since the last one.
    #[inline]
    fn settle(&mut self) {}

    /// Rings a core at once for `task`, which was staged ahead for it and not replaced; after a barrier, if it has not
    /// been [settled](Self::settle).
    ///
    /// # Errors
    /// `SCHEDULE_CORE_NOT_FREE`.
    #[inline]
    fn ring_ahead(&mut self, _core: usize, _task: u32) -> Result<(), Fault> {
        Err(Fault::SCHEDULE_CORE_NOT_FREE)
    }
}

/// On which terms a step runs tasks from within the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How many it runs at most.
    pub most: u32,
    /// Whether anybody may [ask](Lends::asked_for) for some meanwhile.
    pub has_borrowers: bool,
}

impl Terms {
    /// Of an agent that runs everything itself.
    pub const ALONE: Self = Self { most: u32::MAX, has_borrowers: false };
}

/// Other agents of the machine that take work of this instance; with [`Abilities::RUNS_AT_ONCE`].
pub trait Lends {
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

    /// How many further dispatches other agents of the machine ask for just now, beside those that this one runs itself.
    #[inline]
    fn asked_for(&self) -> usize {
        0
    }

    /// What was staged and committed since the last call goes to those who asked.
    #[inline]
    fn lend(&mut self) {}
}

/// Cores that run a dispatch from within the ring; with [`Abilities::RUNS_AT_ONCE`].
pub trait RunsAtOnce: Lends {
    /// Writes a dispatch for a free core, rings it, and lets it run; how far the core is then.
    ///
    /// # Errors
    /// `SCHEDULE_CORE_NOT_FREE`.
    #[inline]
    fn run(&mut self, _core: usize, _dispatch: Staged) -> Result<CoreStatus, Fault> {
        Err(Fault::SCHEDULE_CORE_NOT_FREE)
    }

    /// Whether one of these busy cores shows something new; looks at all of them together.
    #[inline]
    fn has_news(&self, _busy: &[u8]) -> bool {
        true
    }
}

/// Words in GM on which it depends whether a task runs.
pub trait Predicates {
    /// Before a look at `bytes` bytes of GM that another agent may have written.
    fn refresh(&mut self, _address: GmAddr, _bytes: u64) {}

    /// The predicate of `task` is false: it completes now, without running.
    fn skipped(&mut self, _task: u32) {}

    /// A transfer is over, which the transfer engine has done, and is completed now.
    fn transferred(&mut self, _task: u32) {}
}

/// One AICPU instance's view of the machine: its cores, and what else the traits above say. `core` is an index into the cores that
/// the instance manages, `worker` the number of a worker on the device.
pub trait Platform: Machine + Abilities + Traces + StagesAhead + RunsAtOnce + Predicates {
    /// How the words of a run are shared on this machine.
    type Sharing: Sharing;

    /// Takes `worker` under management; it becomes core number `attached so far`.
    fn attach(&mut self, worker: u32);

    /// Greets a core, for the bring-up `epoch`.
    fn greet(&mut self, core: usize, epoch: u32);

    /// The core's id and kind, once it has answered.
    fn answer(&mut self, core: usize, epoch: u32) -> Option<(u32, u32)>;

    /// How far a core is.
    fn poll(&mut self, core: usize) -> CoreStatus;

    /// Writes a dispatch for a core that has fewer than [`SLOTS`](Abilities::SLOTS), and none that is staged; nothing
    /// starts before [`commit`](Self::commit).
    ///
    /// # Errors
    /// `SCHEDULE_CORE_NOT_FREE`.
    fn stage(&mut self, core: usize, dispatch: Staged) -> Result<(), Fault>;

    /// One barrier, then the doorbells of everything staged.
    fn commit(&mut self);

    /// Asks a core to leave its loop.
    fn stop(&mut self, core: usize);

    /// Whether the core has left its loop.
    fn stopped(&mut self, core: usize) -> bool;
}
