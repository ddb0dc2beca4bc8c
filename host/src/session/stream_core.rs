//! A stream as its owner and the service share it.
//!
//! Who writes what: submitters (one at a time, by the lock `submitting`) the producer's line of the ring and the end of `kept`;
//! the service the consumer's line and the front of `kept`; `told` is changed by the service and read by whoever waits.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pto_abi::session::CommandRing;
use pto_abi::sync::Ordering as LineOrdering;

use super::capture::{Capture, Recording};
use super::error::CommandFailure;
use super::event::EventCore;
use super::ids::StreamId;
use super::kept::Kept;
use super::lines::{BoardMemory, RingMemory};
use super::options::StreamOptions;
use super::recorded::RecordedHere;
use super::seat::Seat;
use super::wait_limits::WaitLimits;
use crate::error::Error;

/// What stream and service share.
pub(super) struct StreamCore {
    pub(super) id: StreamId,
    /// Its place on the session's board.
    pub(super) place: usize,
    board: Arc<BoardMemory>,
    pub(super) options: StreamOptions,
    memory: RingMemory,
    pub(super) submitting: Mutex<Submitting>,
    kept: Mutex<VecDeque<(u64, Kept)>>,
    pub(super) told: Seat<Told>,
    is_closed: AtomicBool,
    limits: Mutex<WaitLimits>,
    /// Whether `limits` has any. It is changed while `limits` is locked.
    has_limits: AtomicBool,
}

/// The submitters' side.
#[derive(Default)]
pub(super) struct Submitting {
    pub(super) capture: Option<Capture>,
    pub(super) recorded: RecordedHere<Recording>,
}

/// What those who wait are told.
#[derive(Default)]
pub(super) struct Told {
    /// The first failure that nobody was told of.
    pub(super) failure: Option<Arc<CommandFailure>>,
    /// What stopped the stream.
    pub(super) stopped: Option<Arc<CommandFailure>>,
    /// How often it was aborted.
    pub(super) aborts: u64,
    /// How many resets of the session it has seen.
    pub(super) resets: u64,
}

impl StreamCore {
    pub(super) fn new(
        (id, place): (StreamId, usize),
        options: StreamOptions,
        memory: RingMemory,
        board: &Arc<BoardMemory>,
    ) -> Self {
        let line = board.stream(place);
        line.priority.store(options.priority.into(), LineOrdering::Relaxed);
        line.skip_to.store(0, LineOrdering::Relaxed);
        line.kernel_budget_us.store(options.kernel_budget_us(), LineOrdering::Relaxed);
        memory.put_into(line);
        Self {
            id,
            place,
            board: Arc::clone(board),
            options,
            memory,
            submitting: Mutex::default(),
            kept: Mutex::default(),
            told: Seat::default(),
            is_closed: AtomicBool::new(false),
            limits: Mutex::default(),
            has_limits: AtomicBool::new(false),
        }
    }

    /// From here on a kernel of the stream has this time.
    pub(super) fn set_kernel_budget(&self, options: &StreamOptions) {
        let line = self.board.stream(self.place);
        // Relaxed: a command that is submitted behind it publishes it.
        line.kernel_budget_us.store(options.kernel_budget_us(), LineOrdering::Relaxed);
    }

    /// The time of a kernel of the stream; `None`: that of the session.
    pub(super) fn kernel_budget(&self) -> Option<Duration> {
        let line = self.board.stream(self.place);
        let budget = line.kernel_budget_us.load(LineOrdering::Relaxed);
        (budget > 0).then(|| Duration::from_micros(budget))
    }

    pub(super) fn ring(&self) -> CommandRing<'_> {
        self.memory.ring()
    }

    /// The right to submit.
    pub(super) fn submitting(&self) -> MutexGuard<'_, Submitting> {
        // Every state that a panic could leave is a valid one.
        self.submitting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The command that is about to be submitted is a wait, which fails after `limit`: its number.
    pub(super) fn limit(&self, limit: Duration) -> u64 {
        let number = self.ring().commands() + 1;
        self.change_limits(|limits| limits.set(number, limit));
        number
    }

    /// The wait with this number was not submitted.
    pub(super) fn unlimit(&self, number: u64) {
        self.change_limits(|limits| limits.remove(number));
    }

    /// Forgets the limits of commands up to this number, which are over.
    pub(super) fn forget_limits(&self, completed: u64) {
        if self.has_limits.load(Ordering::Relaxed) {
            self.change_limits(|limits| limits.forget(completed));
        }
    }

    fn change_limits(&self, change: impl FnOnce(&mut WaitLimits)) {
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut limits);
        // Relaxed: a command is submitted behind it.
        self.has_limits.store(!limits.is_empty(), Ordering::Relaxed);
    }

    /// Whether some wait of the stream fails after a time.
    pub(super) fn has_budgets(&self) -> bool {
        self.options.wait_budget.is_some() || self.has_limits.load(Ordering::Relaxed)
    }

    /// How long the wait with this number may last; `None`: for ever.
    pub(super) fn wait_budget(&self, number: u64) -> Option<Duration> {
        let limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        limits.of(number).or(self.options.wait_budget)
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<(u64, Kept)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps something for the command that is about to be submitted.
    pub(super) fn keep(&self, kept: Kept) {
        let number = self.ring().commands() + 1;
        self.kept().push_back((number, kept));
    }

    /// Looks at what is kept for a command.
    pub(super) fn with_kept<R>(
        &self,
        number: u64,
        look: impl FnOnce(&Kept) -> Option<R>,
    ) -> Option<R> {
        let kept = self.kept();
        kept.front().filter(|(of, _)| *of == number).and_then(|(_, kept)| look(kept))
    }

    /// Takes what is kept for a command, and drops what belongs to commands before it.
    pub(super) fn take_kept(&self, number: u64) -> Option<Kept> {
        // What is dropped may be the user's, who may submit: nobody has the lock then.
        while let Some((of, kept)) = self.pop_kept(number) {
            if of == number {
                return Some(kept);
            }
        }
        None
    }

    /// Takes what is kept for the first command of those up to this one.
    pub(super) fn take_kept_to(&self, number: u64) -> Option<Kept> {
        self.pop_kept(number).map(|(_, kept)| kept)
    }

    fn pop_kept(&self, number: u64) -> Option<(u64, Kept)> {
        let mut kept = self.kept();
        kept.front().filter(|(of, _)| *of <= number)?;
        kept.pop_front()
    }

    /// Brings ring and events to a device whose memory only copies reach.
    pub(super) fn send(&self) -> Result<(), Error> {
        let _nobody_submits = self.submitting();
        self.memory.send()?;
        self.events().iter().try_for_each(|event| event.memory().send())
    }

    /// A device whose memory only copies reach may hold anything where the ring is.
    pub(super) fn forget_sent(&self) {
        self.memory.forget();
    }

    /// Brings back how far its events are.
    pub(super) fn fetch_events(&self) -> Result<(), Error> {
        self.events().iter().try_for_each(|event| event.memory().fetch())
    }

    /// Brings back how far it is itself.
    pub(super) fn fetch_progress(&self) -> Result<(), Error> {
        self.memory.fetch_progress()
    }

    /// The events of its commands.
    fn events(&self) -> Vec<Arc<EventCore>> {
        let of = |(_, kept): &(u64, Kept)| match kept {
            Kept::Record(event, _) | Kept::Event(event) => Some(Arc::clone(event)),
            _ => None,
        };
        self.kept().iter().filter_map(of).collect()
    }

    /// Commands up to this number are over, as whoever has the head of the stream says.
    #[inline]
    pub(super) fn completed(&self) -> u64 {
        // Acquire: pairs with the Release stores in `Lane::advance`, in the firmware's `StreamPoll::over`, and in `fetch_progress`.
        self.ring().consumer().completed.load(LineOrdering::Acquire)
    }

    /// How many commands were submitted.
    pub(super) fn commands(&self) -> u64 {
        self.ring().commands()
    }

    /// Whether every command is over.
    pub(super) fn is_idle(&self) -> bool {
        self.completed() >= self.commands()
    }

    /// Whether it takes no commands, since one has failed.
    #[inline]
    pub(super) fn has_stopped(&self) -> bool {
        self.ring().consumer().stopped.load(LineOrdering::Relaxed) != 0
    }

    /// It takes no commands before a reset, and those that have not begun are skipped. The service's.
    pub(super) fn stop(&self, failure: &Arc<CommandFailure>) {
        self.told.change(|told| {
            told.stopped.get_or_insert_with(|| Arc::clone(failure));
        });
        self.ring().consumer().stopped.store(1, LineOrdering::Relaxed);
    }

    /// Asks the service to skip what was submitted so far: the number of the last command of that.
    pub(super) fn abort(&self) -> u64 {
        // Release: pairs with the Acquire load in `skip_to`.
        let commands = self.ring().commands();
        self.board.stream(self.place).skip_to.fetch_max(commands, LineOrdering::Release);
        self.told.change(|told| told.aborts += 1);
        commands
    }

    /// Commands up to this number are skipped.
    #[inline]
    pub(super) fn skip_to(&self) -> u64 {
        // Acquire: pairs with the Release in `abort`.
        self.board.stream(self.place).skip_to.load(LineOrdering::Acquire)
    }

    /// Nobody submits to it any more.
    pub(super) fn close(&self) {
        // Release: pairs with the Acquire load in `is_closed`.
        self.is_closed.store(true, Ordering::Release);
    }

    pub(super) fn is_closed(&self) -> bool {
        // Acquire: pairs with the Release store in `close`: then the last command is seen as well.
        self.is_closed.load(Ordering::Acquire)
    }

    /// What kind its first command that is not over has, for people.
    pub(super) fn describe(&self) -> String {
        let ring = self.ring();
        let open = ring.commands().saturating_sub(self.completed());
        let head = ring.accept(ring.taken()).and_then(Result::ok);
        match head {
            Some(head) => {
                format!(
                    "{} is at command {} ({}), with {open} not over",
                    self.id, head.number, head.kind
                )
            }
            None => format!("{} has {open} commands that are not over", self.id),
        }
    }
}
