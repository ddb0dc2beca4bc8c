//! The cores of one instance, as its scheduler sees them. Generic and static, never `dyn`.
//!
//! ```text
//! Platform: the cores of one instance (attach, greet, answer, poll, stage, commit, stop, stopped)
//!   machine   what is around them: clock, siblings, events, and what is worth doing there ([`Machine`])
//! ```
//! What few machines can has a default: dispatches before their tasks are ready, cores that run from within the ring.
//! Barriers and cache maintenance are inside these operations: a `Finished` answer has acquired what the
//! core wrote; `commit` makes everything written before it visible to the cores that it rings.

use pto_abi::sync::Sharing;
use pto_abi::{Fault, GmAddr};

use crate::machine::Machine;

/// How far a core is with what it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreStatus {
    /// It was given nothing, or its last task has been collected.
    Idle,
    /// The core has not finished its task.
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

/// One AICPU instance's view of its cores. `core` is an index into the cores that the instance manages, `worker` the number of a worker on the device.
pub trait Platform {
    /// How the words of a run are shared on this machine.
    type Sharing: Sharing;

    /// The machine around the cores.
    type Machine: Machine;

    /// The machine around the cores.
    fn machine(&mut self) -> &mut Self::Machine;

    /// Takes `worker` under management; it becomes core number `attached so far`.
    fn attach(&mut self, worker: u32);

    /// Greets a core, for the bring-up `epoch`.
    fn greet(&mut self, core: usize, epoch: u32);

    /// Returns the core's id and kind, or `None` while the core has not answered the greeting.
    fn answer(&mut self, core: usize, epoch: u32) -> Option<(u32, u32)>;

    /// How far a core is.
    fn poll(&mut self, core: usize) -> CoreStatus;

    /// Writes a dispatch for a core that has fewer than [`SLOTS`](Machine::SLOTS), and none that is staged; nothing
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

    // Dispatches that are written before their tasks are ready; with `Machine::STAGES_AHEAD`.

    /// The instance is about to look at the line of a task that others may be dealing with.
    #[inline]
    fn fetch(&mut self, _task: u32) {}

    /// Writes a dispatch of a task that is not ready yet for a core that has fewer than [`SLOTS`](Machine::SLOTS), and
    /// none that is staged. It has no effect unless its doorbell is written; the next dispatch that is staged for the core replaces it.
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

    // Cores that run a dispatch from within the ring; with `Machine::RUNS_AT_ONCE`.

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

    // Tasks that complete without a core.

    /// The predicate of `task` is false: it completes now, without running.
    #[inline]
    fn skipped(&mut self, _task: u32) {}

    /// A transfer is over, which the transfer engine has done, and is completed now.
    #[inline]
    fn transferred(&mut self, _task: u32) {}
}
