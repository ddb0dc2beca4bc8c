//! Events: points in streams that other streams, threads and tasks of async programs wait for.
//!
//! A stream *records* an event: when the stream has come there, that record is complete, with a time. An event is recorded as
//! often as one likes; records have numbers, from 1 on. A wait is for a certain record, chosen when the wait is submitted:
//!
//! ```text
//! record n submitted                 wait -> record n
//! nothing was ever recorded          wait -> nothing: it is over at once
//! reset after record n               wait -> record n + 1, of any stream
//! wait_next                          record n + 1
//! ```
//! Invariant: `completed` grows, and a record that its stream skips (after an abort or a stop) counts as complete, so that no wait
//! lasts for ever.
//!
//! Why it is so: `docs/decisions/session-waits.md`.

use std::collections::VecDeque;
use std::fmt;
use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pto_abi::sync::Ordering;

use super::capture::Joint;
use super::error::SessionError;
use super::guarded;
use super::ids::{EventId, StreamId};
use super::lines::EventMemory;
use super::monitor::{Driver, Monitor, Stepped, Unmet};
use crate::error::Error;
use crate::memory::Memory;

/// An event of a session. Clones are the same event.
#[derive(Clone)]
pub struct Event(Arc<EventCore>);

/// An event, as the session and the service share it.
pub(super) struct EventCore {
    pub(super) id: EventId,
    memory: EventMemory,
    driver: Arc<Driver>,
    state: Monitor<EventState>,
}

#[derive(Default)]
struct EventState {
    /// Records submitted.
    records: u64,
    /// A reset was submitted after the last record.
    is_reset: bool,
    /// The last record that is complete.
    completed: u64,
    time_ns: Option<u64>,
    /// Records that are not complete, and their streams.
    pending: VecDeque<(u64, StreamId)>,
    wakers: Vec<Waker>,
    /// The last record belongs to a capture.
    joint: Option<Joint>,
}

impl EventState {
    fn is_complete(&self) -> bool {
        !self.is_reset && self.completed >= self.records
    }
}

impl EventCore {
    pub(super) fn new(
        id: EventId,
        memory: &Arc<Memory>,
        driver: &Arc<Driver>,
    ) -> Result<Self, Error> {
        let memory = EventMemory::new(memory)?;
        Ok(Self { id, memory, driver: Arc::clone(driver), state: Monitor::default() })
    }

    /// `stream` is about to submit a record: its number.
    pub(super) fn next_record(&self, stream: StreamId) -> u64 {
        let mut state = self.state.lock();
        state.records += 1;
        (state.is_reset, state.joint) = (false, None);
        let record = state.records;
        state.pending.push_back((record, stream));
        record
    }

    /// The record could not be submitted.
    pub(super) fn forget(&self, record: u64) {
        self.complete(record, None);
    }

    /// The record that a wait is for that is submitted now.
    pub(super) fn awaited(&self) -> u64 {
        let state = self.state.lock();
        state.records + u64::from(state.is_reset)
    }

    /// The last record that was submitted.
    fn last(&self) -> u64 {
        self.state.lock().records
    }

    /// The record after the last one that was submitted.
    pub(super) fn next(&self) -> u64 {
        self.state.lock().records + 1
    }

    /// A reset is submitted.
    pub(super) fn reset(&self) {
        self.state.lock().is_reset = true;
    }

    /// The last record belongs to a capture.
    pub(super) fn set_joint(&self, joint: Joint) {
        self.state.lock().joint = Some(joint);
    }

    /// The capture that goes on and that the last record belongs to.
    pub(super) fn joint(&self) -> Option<Joint> {
        self.state.lock().joint.clone().filter(Joint::is_open)
    }

    /// The event's line in GM.
    pub(super) fn memory(&self) -> &EventMemory {
        &self.memory
    }

    /// Where its line is in GM.
    pub(super) fn address(&self) -> u64 {
        self.memory.address().0
    }

    /// The firmware has completed the record, and says in the event's line when.
    pub(super) fn completed_by_firmware(&self, record: u64) {
        let time_ns = self.memory.line().time_ns.load(Ordering::Relaxed);
        self.complete(record, Some(time_ns));
    }

    /// The state, with what the firmware has done. The service wakes the wakers later.
    fn state(&self) -> MutexGuard<'_, EventState> {
        let mut state = self.state.lock();
        self.look_at_line(&mut state);
        state
    }

    fn look_at_line(&self, state: &mut EventState) {
        let line = self.memory.line();
        // Acquire: pairs with the Release store in the firmware's `StreamPoll::record`, which stores the time before.
        let completed = line.completed.load(Ordering::Acquire);
        if completed > state.completed {
            state.pending.retain(|(pending, _)| *pending > completed);
            state.completed = completed;
            state.time_ns = Some(line.time_ns.load(Ordering::Relaxed));
        }
    }

    /// Whether record `record` is complete.
    pub(super) fn has_completed(&self, record: u64) -> bool {
        // Acquire: pairs with the Release store in `EventLine::complete`.
        self.memory.line().completed.load(Ordering::Acquire) >= record
    }

    /// When the last record was complete.
    pub(super) fn time_ns(&self) -> Option<u64> {
        self.state().time_ns
    }

    /// The stream that will complete `record`; `None`: it was not submitted.
    pub(super) fn recorder(&self, record: u64) -> Option<StreamId> {
        let state = self.state.lock();
        state.pending.iter().find(|(pending, _)| *pending == record).map(|(_, stream)| *stream)
    }

    /// A record is complete, at `time_ns` or, where it was skipped, without a time.
    pub(super) fn complete(&self, record: u64, time_ns: Option<u64>) {
        let wakers = self.state.change(|state| {
            state.pending.retain(|(pending, _)| *pending != record);
            // Records of several streams may complete out of order: those before the first pending one are complete.
            let first = state.pending.iter().map(|(pending, _)| *pending).min();
            state.completed = first.map_or(state.records, |first| first - 1).max(state.completed);
            state.time_ns = time_ns;
            let line = self.memory.line();
            line.time_ns.store(time_ns.unwrap_or_default(), Ordering::Relaxed);
            // The firmware may be further: it completes the next records, and the host sees that later.
            line.complete(state.completed);
            std::mem::take(&mut state.wakers)
        });
        wakers.into_iter().for_each(guarded::wake);
    }
}

impl Event {
    pub(super) fn of(core: EventCore) -> Self {
        Self(Arc::new(core))
    }

    pub(super) fn core(&self) -> &Arc<EventCore> {
        &self.0
    }

    /// Whether it belongs to the session of this driver.
    pub(super) fn is_of(&self, driver: &Arc<Driver>) -> bool {
        Arc::ptr_eq(&self.0.driver, driver)
    }

    /// The event's number in the session.
    #[must_use]
    pub fn id(&self) -> EventId {
        self.0.id
    }

    /// Whether everything recorded so far is complete, and it was not reset since. An event that was never recorded is
    /// complete.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.0.state().is_complete()
    }

    /// Whether it was ever recorded.
    #[must_use]
    pub fn was_recorded(&self) -> bool {
        self.0.state.lock().records > 0
    }

    /// Waits until the record that is the last one now is complete; at once, where there is none.
    ///
    /// # Errors
    /// `Stuck`: in a session that its waiting threads step, no command can complete it.
    pub fn synchronize(&self) -> Result<(), SessionError> {
        self.synchronize_within(None)
    }

    /// As [`Event::synchronize`], at most for `limit`, if there is one.
    ///
    /// # Errors
    /// `EventTimedOut`.
    pub fn synchronize_within(
        &self,
        limit: impl Into<Option<Duration>>,
    ) -> Result<(), SessionError> {
        let record = self.0.awaited();
        self.0.driver.expect_soon(|| self.0.has_completed(record));
        let is_done = |state: &mut EventState| {
            self.0.look_at_line(state);
            (state.completed >= record).then_some(())
        };
        let waited = self.0.driver.wait(&self.0.state, limit.into(), is_done);
        waited.map_err(|unmet| match unmet {
            Unmet::TimedOut(waited) => SessionError::EventTimedOut { event: self.id(), waited },
            Unmet::Stuck(state) => SessionError::Stuck { state },
        })
    }

    /// When its last record was completed, since the session was opened; `None`: it is not complete, or the record was skipped.
    #[must_use]
    pub fn time(&self) -> Option<Duration> {
        let state = self.0.state();
        let time_ns = state.time_ns.filter(|_| state.is_complete())?;
        Some(Duration::from_nanos(time_ns))
    }

    /// The time from `earlier` to this one; `None`: one of them has no time, or `earlier` is later.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Option<Duration> {
        self.time()?.checked_sub(earlier.time()?)
    }

    /// Ready when the record that is the last one now is complete. Any executor polls it. In a session that is stepped, a poll
    /// steps the service as far as that goes.
    #[must_use]
    pub fn completed(&self) -> EventFuture {
        EventFuture { record: self.0.awaited(), event: self.clone() }
    }

    /// As [`Event::completed`], of the record that was submitted last, whether the event was reset since or not.
    #[must_use]
    pub fn recorded(&self) -> EventFuture {
        EventFuture { record: self.0.last(), event: self.clone() }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.state();
        let (id, records, completed) = (self.0.id, state.records, state.completed);
        write!(f, "{id}: {completed} of {records} records complete")
    }
}

/// A record of an event as a future; see [`Event::completed`].
#[derive(Debug)]
pub struct EventFuture {
    event: Event,
    record: u64,
}

impl EventFuture {
    /// Whether the record is complete; if it is not, `waker` is woken after it, or earlier. Unlike a poll it steps no session.
    pub fn look(&self, waker: &Waker) -> Poll<()> {
        let mut state = self.event.0.state();
        if state.completed >= self.record {
            return Poll::Ready(());
        }
        if !state.wakers.iter().any(|known| known.will_wake(waker)) {
            state.wakers.push(waker.clone());
        }
        Poll::Pending
    }
}

impl Future for EventFuture {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let looked = self.look(context.waker());
            if looked.is_ready() || self.event.0.driver.step() != Some(Stepped::Worked) {
                return looked;
            }
        }
    }
}

impl IntoFuture for &Event {
    type Output = ();
    type IntoFuture = EventFuture;

    fn into_future(self) -> EventFuture {
        self.completed()
    }
}
