//! What the firmware needs of the machine it runs on. Generic and static, never `dyn`.
//!
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

/// One AICPU instance's view of the machine. `core` is an index into the cores that the instance manages,
/// `worker` the number of a worker on the device.
pub trait Platform {
    /// How the words of a run are shared on this machine.
    type Sharing: Sharing;

    /// Whether [`trace`](Self::trace) does anything; where not, nothing is computed for it.
    const TRACES: bool = false;

    /// Dispatches that a core may have at once: 1, or 2 where it starts the next one without waiting for AICPU.
    const SLOTS: usize = 1;

    /// Whether a [`poll`](Self::poll) is worth avoiding; where not, nothing is computed for it.
    const POLLS_COST: bool = false;

    /// Whether dispatches are staged ahead of their tasks ([`stage_ahead`](Self::stage_ahead)); where not, nothing is
    /// computed for it.
    const STAGES_AHEAD: bool = false;

    /// Whether a core may run a dispatch from within the ring ([`run`](Self::run)), which then has finished when it returns;
    /// where not, nothing is computed for it.
    const RUNS_AT_ONCE: bool = false;

    /// Whether tasks may have shapes: not where there is no streaming runtime.
    const SHAPES: bool = true;

    /// Takes `worker` under management; it becomes core number `attached so far`.
    fn attach(&mut self, worker: u32);

    /// Greets a core, for the bring-up `epoch`.
    fn greet(&mut self, core: usize, epoch: u32);

    /// The core's id and kind, once it has answered.
    fn answer(&mut self, core: usize, epoch: u32) -> Option<(u32, u32)>;

    /// How far a core is.
    fn poll(&mut self, core: usize) -> CoreStatus;

    /// Writes a dispatch for a core that has fewer than [`SLOTS`](Self::SLOTS), and none that is staged; nothing
    /// starts before [`commit`](Self::commit).
    ///
    /// # Errors
    /// `SCHEDULE_CORE_NOT_FREE`.
    fn stage(&mut self, core: usize, dispatch: Staged) -> Result<(), Fault>;

    /// One barrier, then the doorbells of everything staged.
    fn commit(&mut self);

    /// Whether it does so just now.
    #[inline]
    fn runs_now(&self) -> bool {
        false
    }

    /// Writes a dispatch for a free core, rings it, and lets it run; how far the core is then.
    ///
    /// # Errors
    /// `SCHEDULE_CORE_NOT_FREE`.
    #[inline]
    fn run(&mut self, _core: usize, _dispatch: Staged) -> Result<CoreStatus, Fault> {
        Err(Fault::SCHEDULE_CORE_NOT_FREE)
    }

    /// Whether anybody may ever be [asked for](Self::asked_for).
    #[inline]
    fn has_borrowers(&self) -> bool {
        false
    }

    /// How many further dispatches other agents of the machine ask for just now, beside those that [`run`](Self::run) runs.
    #[inline]
    fn asked_for(&self) -> usize {
        0
    }

    /// Whether one of these busy cores shows something new; looks at all of them together.
    #[inline]
    fn has_news(&self, _busy: &[u8]) -> bool {
        true
    }

    /// What was staged and committed since the last call goes to those who asked.
    #[inline]
    fn lend(&mut self) {}

    /// The instance is about to look at the line of a task that others may be dealing with.
    #[inline]
    fn fetch(&mut self, _task: u32) {}

    /// Writes a dispatch of a task that is not ready yet for a core that has fewer than [`SLOTS`](Self::SLOTS), and
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

    /// Asks a core to leave its loop.
    fn stop(&mut self, core: usize);

    /// Whether the core has left its loop.
    fn stopped(&mut self, core: usize) -> bool;

    /// This instance's clock; monotonic, the same origin on every instance of a run.
    fn now_ns(&self) -> u64;

    /// Nothing to do just now.
    fn relax(&mut self);

    /// Siblings that sleep should look: ready tasks are in a shared queue, or the run is over.
    fn wake_siblings(&mut self) {}

    /// Before a look at `bytes` bytes of GM that another agent may have written.
    fn refresh(&mut self, _address: GmAddr, _bytes: u64) {}

    /// The predicate of `task` is false: it completes now, without running.
    fn skipped(&mut self, _task: u32) {}

    /// Takes an event of this instance.
    #[inline]
    fn trace(&mut self, _: TracePoint) {}
}
