//! The transport over MPI: one [`RankExchange`] under a lock, and the calls that wait: the bring-up, meetings, the end.
//!
//! The engine's progress thread of a run calls [`start`](Transport::start) and [`poll`](Transport::poll); nothing else waits for the lock meanwhile. Between two runs
//! nothing is in flight, and no thread is needed.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::ranks::exchange::{Numbers, RankExchange};
use crate::ranks::group::{
    ByteRange, Completion, RankLocation, Transfer, TransferError, Transport,
};
use crate::ranks::idle::{backoff, pause};
use crate::ranks::launcher;
use crate::ranks::processes::ProcessId;
use crate::ranks::wire::Wire;

/// How long this rank waits for the other ranks to hear that this one has failed.
const FAREWELL: Duration = Duration::from_millis(500);
/// How long the other ranks are given to say what they wait for, when a run has failed.
const ANSWERS: Duration = Duration::from_secs(2);
/// How long a rank waits at the end for all others to be there.
const LEAVE: Duration = Duration::from_secs(30);
/// After the launcher has asked this process to end, how long a better reason is waited for.
const REASON: Duration = Duration::from_millis(200);

/// Ranks that talk over a wire.
pub(crate) struct WireTransport<W: Wire> {
    location: RankLocation,
    inner: Mutex<TransportState<W>>,
}

struct TransportState<W> {
    exchange: RankExchange<W>,
    /// Meetings so far.
    round: u64,
    /// When the launcher's wish was seen.
    asked_to_end: Option<Instant>,
    /// No run has begun since the last meeting.
    is_meeting: bool,
}

impl<W: Wire> WireTransport<W> {
    /// Brings a rank up: waits until all ranks have said where they are.
    ///
    /// # Errors
    /// A rank that has not come within the budget.
    pub(crate) fn join(
        wire: W,
        numbers: Numbers,
        host: &str,
        budget: Duration,
    ) -> Result<Self, TransferError> {
        let mut exchange = RankExchange::new(wire, numbers);
        exchange.introduce(host, ProcessId::own());
        let (start, mut backoff, mut over) = (Instant::now(), backoff(), Vec::new());
        while let Some(stranger) = exchange.strangers().first().copied() {
            exchange.step(&mut over);
            if let Some(failed) = exchange.failed() {
                return Err(failed.clone());
            }
            if start.elapsed() > budget {
                let host = exchange.ranks().host(stranger).to_owned();
                return Err(TransferError::Absent { rank: stranger, host, waited: budget });
            }
            pause(&mut backoff);
        }
        let ranks_per_node = exchange.ranks().most_on_one_host();
        let location = RankLocation {
            rank: numbers.rank,
            size: numbers.ranks,
            host: host.to_owned(),
            ranks_per_node,
        };
        let inner = TransportState { exchange, round: 0, asked_to_end: None, is_meeting: false };
        Ok(Self { location, inner: Mutex::new(inner) })
    }

    fn inner(&self) -> MutexGuard<'_, TransportState<W>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the wire itself, for measurements next to the transport.
    pub(crate) fn with_wire<R>(&self, then: impl FnOnce(&mut W) -> R) -> R {
        then(self.inner().exchange.wire())
    }

    /// Ends the network together with all other ranks. A rank that has failed, or whose peers have, ends without them.
    pub(crate) fn leave(&self) {
        let mut inner = self.inner();
        let (start, mut backoff) = (Instant::now(), backoff());
        inner.exchange.leave();
        while !inner.exchange.has_everybody_left() {
            inner.step(&mut Vec::new());
            if inner.exchange.failed().is_some() || start.elapsed() > LEAVE {
                return;
            }
            pause(&mut backoff);
        }
        while !inner.exchange.flush() && start.elapsed() < LEAVE {
            pause(&mut backoff);
        }
        inner.exchange.close_frames();
        if let Err(why) = inner.exchange.wire().finish() {
            log::warn!("MPI does not end: {}", why.0);
        }
    }
}

impl<W: Wire> TransportState<W> {
    fn step(&mut self, over: &mut Vec<Completion>) {
        if launcher::has_asked_to_end() {
            let since = *self.asked_to_end.get_or_insert_with(Instant::now);
            if since.elapsed() > REASON {
                self.exchange.fail_here("the launcher of this job ends all of its processes");
            }
        }
        self.exchange.step(over);
    }

    fn farewell(&mut self) {
        let start = Instant::now();
        while !self.exchange.flush() && start.elapsed() < FAREWELL {
            thread::yield_now();
        }
    }
}

impl<W: Wire> Transport for WireTransport<W> {
    fn location(&self) -> RankLocation {
        self.location.clone()
    }

    fn map(&self, id: u32, memory: ByteRange) -> Result<(), TransferError> {
        self.inner().exchange.map(id, memory);
        Ok(())
    }

    fn begin(&self, run: u64) -> Result<(), TransferError> {
        let mut inner = self.inner();
        inner.exchange.begin(run);
        inner.exchange.failed().cloned().map_or(Ok(()), Err)
    }

    fn start(&self, number: u64, transfer: &Transfer) -> Result<(), TransferError> {
        let mut inner = self.inner();
        inner.listen();
        inner.exchange.start(number, transfer)
    }

    fn poll(&self, over: &mut Vec<Completion>) {
        let mut inner = self.inner();
        inner.listen();
        inner.step(over);
    }

    fn disagreement(&self) -> Option<TransferError> {
        let mut inner = self.inner();
        let (start, mut backoff) = (Instant::now(), backoff());
        if inner.exchange.failed().is_none() {
            inner.exchange.ask();
        }
        while inner.exchange.unanswered().is_some()
            && inner.exchange.failed().is_none()
            && start.elapsed() < ANSWERS
        {
            inner.step(&mut Vec::new());
            pause(&mut backoff);
        }
        if let Some(found) = inner.exchange.disagreement() {
            return Some(found);
        }
        // Another rank may have found it, and ended with it.
        if let Some(silent) = inner.exchange.unanswered() {
            inner.exchange.miss_answer(silent, ANSWERS);
        }
        inner.exchange.failed().cloned()
    }

    fn end(&self, cause: Option<&str>) {
        let mut inner = self.inner();
        inner.exchange.end(cause);
        if cause.is_some() {
            inner.farewell();
        }
    }

    fn meet(&self, word: u64, budget: Duration) -> Result<Vec<u64>, TransferError> {
        let mut inner = self.inner();
        inner.round += 1;
        inner.is_meeting = true;
        let (round, start, mut backoff) = (inner.round, Instant::now(), backoff());
        inner.exchange.come(round, word);
        loop {
            inner.step(&mut Vec::new());
            let words = inner.exchange.words(round);
            if words.iter().all(Option::is_some) {
                inner.exchange.forget_meeting(round);
                return Ok(words.into_iter().flatten().collect());
            }
            if let Some(failed) = inner.exchange.failed() {
                return Err(failed.clone());
            }
            if start.elapsed() > budget {
                return Err(inner.absent(&words, budget));
            }
            pause(&mut backoff);
        }
    }
}

impl<W: Wire> TransportState<W> {
    fn listen(&mut self) {
        if std::mem::take(&mut self.is_meeting) {
            self.exchange.listen();
        }
    }

    fn absent(&mut self, words: &[Option<u64>], waited: Duration) -> TransferError {
        let first = words.iter().position(Option::is_none).unwrap_or(0);
        let rank = u32::try_from(first).unwrap_or(u32::MAX);
        let host = self.exchange.ranks().host(rank).to_owned();
        let error = TransferError::Absent { rank, host, waited };
        self.exchange.fail(error.clone());
        self.exchange.end(Some(&error.to_string()));
        self.farewell();
        error
    }
}
