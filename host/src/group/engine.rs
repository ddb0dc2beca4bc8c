//! The transfer engine of one member: takes transfers from the board of its device, gives them to the transport, and marks
//! those that are over for the schedulers.
//!
//! Invariants:
//! - A run is touched between `begin` and `end` only, under the lock.
//! - A task in `under_way` was taken and is not finished.
//! - In a session the device makes many runs, which are one run of the group: the engine calls `Transport::end` when the session is closed, or
//!   when a run fails. After that the session has no transfers any more.
//! - The engine never waits: a turn takes what is there, polls, and returns. One thread at a time takes a turn: that of the transfers, or one of the
//!   device that waits.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pto_abi::{Fault, TaskId};
use pto_sim_shim::group::{
    ByteRange, Posted, RunPort, Transfer, TransferEngine, TransferError, TransferKind,
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
    /// How often threads of the device have moved its transfers.
    helped: AtomicU64,
}

#[derive(Default)]
struct State {
    run: Option<RunPort>,
    under_way: HashMap<u64, TaskId>,
    next: u64,
    over: Vec<Completion>,
    failure: Option<TransferError>,
    counts: TransferCounts,
    session: Option<InSession>,
}

/// What outlives the runs of a session.
#[derive(Default)]
struct InSession {
    /// Why it has no transfers any more.
    broken: Option<String>,
}

impl MemberEngine {
    pub(super) fn new(
        rank: u32,
        transport: Arc<dyn Transport>,
        memory: Arc<Memory>,
        activity: Arc<Activity>,
    ) -> Self {
        let (state, helped) = (Mutex::default(), AtomicU64::new(0));
        Self { rank, transport, memory, activity, state, helped }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the last run transferred, and why its transfers failed, if they did.
    pub(super) fn take_outcome(&self) -> (TransferCounts, Option<TransferError>) {
        let mut state = self.state();
        (std::mem::take(&mut state.counts), state.failure.take())
    }

    /// A session begins on the device: its runs are one of the group's.
    pub(super) fn enter_session(&self) {
        self.state().session = Some(InSession::default());
        self.activity.one_more();
    }

    /// What the session has transferred, and why it has no transfers any more, if that is so.
    pub(super) fn of_session(&self) -> (TransferCounts, Option<String>) {
        let state = self.state();
        (state.counts, state.session.as_ref().and_then(|session| session.broken.clone()))
    }

    /// The session is over.
    pub(super) fn leave_session(&self) {
        if let Some(InSession { broken: None }) = self.state().session.take() {
            self.transport.end(None);
        }
        self.activity.one_less();
    }

    /// How often threads of the device have moved its transfers. While the number grows, no other thread needs to.
    pub(super) fn helped(&self) -> u64 {
        self.helped.load(Ordering::Relaxed)
    }

    /// One turn. Whether anything moved.
    pub(super) fn turn(&self) -> bool {
        self.move_all(&mut self.state())
    }

    fn move_all(&self, state: &mut State) -> bool {
        let State { run, under_way, next, over, failure, counts, session } = state;
        let Some(run) = run else {
            if session.is_some() {
                // Nothing is under way: the others are to hear that this rank is there.
                self.transport.poll(over);
                over.clear();
            }
            return false;
        };
        if failure.is_some() || run.has_failed() {
            return false;
        }
        let mut worked = false;
        while let Some(posted) = run.take() {
            worked = true;
            let number = *next;
            *next += 1;
            under_way.insert(number, posted.task);
            let broken = session.as_ref().and_then(|session| session.broken.as_ref());
            let started = broken.map_or_else(|| self.resolve(&posted), |cause| {
                Err(TransferError::Refused { rank: self.rank, why: format!("an earlier command of the session has failed ({cause}). Close the sessions of the group, and open them again") })
            });
            let started = started.and_then(|transfer| {
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
            let count = ByteRange { address: at.0, bytes: 4 };
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
        self.check(ByteRange { address: transfer.local.0, bytes: transfer.bytes })
            .map_err(refused)?;
        Ok(transfer)
    }

    fn check(&self, span: ByteRange) -> Result<(), String> {
        let gm = self.memory.gm();
        let gm = ByteRange { address: gm.address().0, bytes: gm.bytes() };
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
        let mut state = self.state();
        let session = state.session.take();
        let counts = if session.is_some() { state.counts } else { TransferCounts::default() };
        *state = State { run: Some(run), session, counts, ..State::default() };
        drop(state);
        self.activity.one_more();
    }

    fn help(&self) -> bool {
        // Who is at it already moves what there is.
        let Ok(mut state) = self.state.try_lock() else { return false };
        self.helped.fetch_add(1, Ordering::Relaxed);
        self.move_all(&mut state)
    }

    fn end(&self) {
        let mut state = self.state();
        let has_failed = state.run.take().is_some_and(|run| run.has_failed());
        state.under_way.clear();
        if has_failed && state.failure.is_none() {
            state.failure = self.transport.disagreement();
        }
        let cause = state.failure.as_ref().map(ToString::to_string);
        let cause = cause.unwrap_or_else(|| "its run has ended with a fault".to_owned());
        match &mut state.session {
            Some(session) if !has_failed || session.broken.is_some() => {}
            session => {
                self.transport.end(has_failed.then_some(cause.as_str()));
                session.iter_mut().for_each(|session| session.broken = Some(cause.clone()));
            }
        }
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
