//! The way of transfers between the schedulers and the transfer engine, which is no part of the firmware.
//!
//! ```text
//! scheduler, builder --post--> transfers --TransferPort::take--> engine --TransferPort::finish--> arrived --> scheduler
//!                                                                  `----- TransferPort::fail --> the run's fault
//! ```
//! A transfer is a task with a block shape whose list is [`List::TRANSFERS`]: it waits for no core, and as many as there are may be
//! under way at once. The engine is an agent of the host, or of the machine in virtual time. It has no part in edges:
//! a scheduler completes the task, and releases its consumers, in its next step.
//!
//! Invariants:
//! - A transfer is taken once, and is dispatched from then on; it is finished at most once, by the engine that took it.
//! - What the engine has written is seen by the consumers: `finish` and the scheduler that completes hold the board's lock in turn.

use pto_abi::kinds::TaskState;
use pto_abi::runtime::Epitaph;
use pto_abi::sync::Ordering::Relaxed;
use pto_abi::{CoreKind, Fault, TaskId};

use crate::block_shapes::List;
use crate::state::SharedState;

/// Argument words of a transfer that an engine reads, at most.
pub const TRANSFER_WORDS: usize = 10;

/// A transfer that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The task.
    pub task: TaskId,
    /// Its arguments, as `pto_graph::group` lays them out; zero after the last one.
    pub words: [u64; TRANSFER_WORDS],
}

/// The engine's view of one run.
#[derive(Clone, Copy)]
pub struct TransferPort<'a> {
    state: SharedState<'a>,
}

impl<'a> TransferPort<'a> {
    /// The transfers of a run.
    #[must_use]
    pub const fn new(state: SharedState<'a>) -> Self {
        Self { state }
    }

    /// Whether a transfer may wait for the engine: a moment's guess.
    #[must_use]
    pub fn has_posted(&self) -> bool {
        self.state.shapes.is_some_and(|shapes| shapes.lists() & List::TRANSFERS.bit() != 0)
    }

    /// Takes the transfer that became ready first.
    #[must_use]
    pub fn take(&self) -> Option<Posted> {
        if !self.has_posted() {
            return None;
        }
        let slot = self.state.shapes?.take(List::TRANSFERS)?;
        let task = self.state.task(slot)?;
        task.state.store(TaskState::DISPATCHED.get(), Relaxed);
        let mut words = [0; TRANSFER_WORDS];
        let first = task.payload.load(Relaxed) as usize;
        let count = usize::from(task.arg_count.load(Relaxed));
        let args = self.state.payloads.get(first..).unwrap_or_default();
        words.iter_mut().zip(args).take(count).for_each(|(word, arg)| *word = arg.load(Relaxed));
        let generation = task.generation.load(Relaxed);
        Some(Posted { task: TaskId { slot, generation }, words })
    }

    /// A transfer that was taken is over. Nothing of it is touched from then on.
    pub fn finish(&self, task: TaskId) {
        if let Some(shapes) = &self.state.shapes {
            shapes.post(List::ARRIVED, task.slot, [0; CoreKind::COUNT]);
        }
    }

    /// Whether the run has ended with a fault.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.state.fault.is_raised()
    }

    /// Ends the run with `fault`, for this transfer. The epitaph that is to be kept, if the fault is the first one.
    #[must_use]
    pub fn fail(&self, fault: Fault, task: Option<TaskId>, now_ns: u64) -> Option<Epitaph> {
        if !self.state.fault.raise(fault) {
            return None;
        }
        let mut epitaph = Epitaph::of(fault);
        epitaph.time_ns = now_ns;
        if let Some((id, line)) = task.and_then(|id| Some((id, self.state.task(id.slot)?))) {
            epitaph.task = id;
            epitaph.func_id = line.func_id.load(Relaxed).into();
        }
        epitaph.added = self.state.sum(|line| line.added.load(Relaxed));
        epitaph.published = self.state.sum(|line| line.published.load(Relaxed));
        epitaph.completed = self.state.sum(|line| line.completed.load(Relaxed));
        Some(epitaph)
    }

    /// The epitaph of [`fail`](Self::fail) is in the arena.
    pub fn seal(&self) {
        self.state.fault.seal_epitaph();
    }
}
