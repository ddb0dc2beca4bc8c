//! The transfer engine of one member: takes transfers from the board of its device, gives them to the transport, and tells the
//! schedulers which are over.
//!
//! Invariants:
//! - A run is touched between `begin` and `end` only, under the lock.
//! - A task in `under_way` was taken and is not finished.
//! - The engine never waits: a turn takes what is there, polls, and returns.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pto_abi::{Fault, TaskId};
use pto_sim_shim::group::{
    Posted, RunPort, Span, Transfer, TransferEngine, TransferError, TransferKind,
};

use super::activity::Activity;
use super::report::TransferCounts;
use super::transport::{Completion, Transport};
use crate::memory::Memory;

/// See the file.
pub(super) struct MemberEngine {
    rank: u32,
    transport: Arc<dyn Transport>,
    /// Keeps the bytes of transfers mapped.
    memory: Arc<Memory>,
    activity: Arc<Activity>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    run: Option<RunPort>,
    under_way: HashMap<u64, TaskId>,
    next: u64,
    over: Vec<Completion>,
    failure: Option<TransferError>,
    counts: TransferCounts,
}

impl MemberEngine {
    pub(super) fn new(
        rank: u32,
        transport: Arc<dyn Transport>,
        memory: Arc<Memory>,
        activity: Arc<Activity>,
    ) -> Self {
        Self { rank, transport, memory, activity, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the last run transferred, and why its transfers failed, if they did.
    pub(super) fn take_outcome(&self) -> (TransferCounts, Option<TransferError>) {
        let mut state = self.state();
        (std::mem::take(&mut state.counts), state.failure.take())
    }

    /// One turn. Whether anything moved.
    pub(super) fn turn(&self) -> bool {
        let mut state = self.state();
        let State { run, under_way, next, over, failure, counts } = &mut *state;
        let Some(run) = run else { return false };
        if failure.is_some() || run.has_failed() {
            return false;
        }
        let mut worked = false;
        while let Some(posted) = run.take() {
            worked = true;
            let number = *next;
            *next += 1;
            under_way.insert(number, posted.task);
            let started = self.resolve(&posted).and_then(|transfer| {
                counts.count(&transfer);
                self.transport.start(number, &transfer)
            });
            if let Err(error) = started {
                run.fail(Fault::TRANSFER_FAILED, Some(posted.task));
                *failure = Some(error);
                return true;
            }
        }
        self.transport.poll(over);
        for Completion { number, result } in over.drain(..) {
            worked = true;
            let task = number.and_then(|number| under_way.remove(&number));
            match result {
                Ok(()) => task.into_iter().for_each(|task| run.finish(task)),
                Err(error) => {
                    let task = task.or_else(|| under_way.values().next().copied());
                    run.fail(Fault::TRANSFER_FAILED, task);
                    failure.get_or_insert(error);
                }
            }
        }
        worked
    }

    /// The transfer that the words of a task say, with its count read, if it is one of this device.
    fn resolve(&self, posted: &Posted) -> Result<Transfer, TransferError> {
        let refused = |why: String| TransferError::Refused { rank: self.rank, why };
        let words = Transfer::of_words(&posted.words);
        let mut transfer = words.ok_or_else(|| {
            refused(
                "the words of the task are none of a transfer; make it with a Communicator".into(),
            )
        })?;
        if let Some((at, unit)) = transfer.count {
            let count = Span { address: at.0, bytes: 4 };
            self.check(count).map_err(refused)?;
            // SAFETY: the word is in GM, and the task reads it: who writes it has completed.
            let count = unsafe { count.read_u32() }.unwrap_or(0);
            let bytes = u64::from(count).checked_mul(unit).filter(|bytes| *bytes <= transfer.bytes);
            transfer.bytes = bytes.ok_or_else(|| {
                refused(format!(
                    "its count of {count}, of {unit} bytes each, is more than the {} bytes of its tensor; raise the capacity",
                    transfer.bytes
                ))
            })?;
        }
        self.check(Span { address: transfer.local.0, bytes: transfer.bytes }).map_err(refused)?;
        Ok(transfer)
    }

    fn check(&self, span: Span) -> Result<(), String> {
        let gm = self.memory.gm();
        let gm = Span { address: gm.address().0, bytes: gm.bytes() };
        if gm.holds(span) {
            return Ok(());
        }
        Err(format!(
            "{} bytes at {:#x} are not in the memory of its device",
            span.bytes, span.address
        ))
    }
}

impl TransferEngine for MemberEngine {
    fn begin(&self, run: RunPort) {
        *self.state() = State { run: Some(run), ..State::default() };
        self.activity.one_more();
    }

    fn end(&self) {
        let mut state = self.state();
        let has_failed = state.run.take().is_some_and(|run| run.has_failed());
        state.under_way.clear();
        let cause = state.failure.as_ref().map(ToString::to_string);
        let cause = cause.unwrap_or_else(|| "its run has ended with a fault".to_owned());
        self.transport.end(has_failed.then_some(cause.as_str()));
        drop(state);
        self.activity.one_less();
    }
}

impl TransferCounts {
    fn count(&mut self, transfer: &Transfer) {
        self.transfers += 1;
        let gives = matches!(transfer.kind, TransferKind::SEND | TransferKind::PUT);
        let gets = matches!(transfer.kind, TransferKind::RECEIVE | TransferKind::GET);
        self.bytes_given += if gives { transfer.bytes } else { 0 };
        self.bytes_got += if gets { transfer.bytes } else { 0 };
    }
}
