//! A stream as its owner and the service share it.
//!
//! Who writes what: submitters (one at a time, by the lock `submitting`) the producer's line of the ring and the end of `objects`;
//! the service the consumer's line and the front of `objects`; the service changes `status`, and threads that wait read it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pto_abi::session::CommandRing;
use pto_abi::sync::Ordering as LineOrdering;

use super::capture::{Capture, Recording};
use super::command_object::CommandObject;
use super::error::CommandFailure;
use super::event::EventCore;
use super::ids::StreamId;
use super::lines::{BoardMemory, RingMemory};
use super::monitor::Monitor;
use super::options::StreamOptions;
use super::recorded::RecordedHere;
use super::wait_limits::WaitLimits;
use crate::error::Error;

/// What stream and service share.
pub(super) struct StreamCore {
    pub(super) id: StreamId,
    /// The stream's slot on the session's board.
    pub(super) slot: usize,
    board: Arc<BoardMemory>,
    pub(super) options: StreamOptions,
    memory: RingMemory,
    pub(super) submitting: Mutex<Submitting>,
    objects: Mutex<VecDeque<(u64, CommandObject)>>,
    pub(super) status: Monitor<StreamStatus>,
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

/// What a synchronise reports.
#[derive(Default)]
pub(super) struct StreamStatus {
    /// The first failure that was not reported yet.
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
        id: StreamId,
        slot: usize,
        options: StreamOptions,
        memory: RingMemory,
        board: &Arc<BoardMemory>,
    ) -> Self {
        let line = board.stream(slot);
        line.priority.store(options.priority.into(), LineOrdering::Relaxed);
        line.skip_to.store(0, LineOrdering::Relaxed);
        line.kernel_budget_us.store(options.kernel_budget_us(), LineOrdering::Relaxed);
        memory.put_into(line);
        Self {
            id,
            slot,
            board: Arc::clone(board),
            options,
            memory,
            submitting: Mutex::default(),
            objects: Mutex::default(),
            status: Monitor::default(),
            is_closed: AtomicBool::new(false),
            limits: Mutex::default(),
            has_limits: AtomicBool::new(false),
        }
    }

    /// From here on a kernel of the stream has this time.
    pub(super) fn set_kernel_budget(&self, options: &StreamOptions) {
        let line = self.board.stream(self.slot);
        // Relaxed: the next command that is submitted publishes it.
        line.kernel_budget_us.store(options.kernel_budget_us(), LineOrdering::Relaxed);
    }

    /// The time of a kernel of the stream; `None`: that of the session.
    pub(super) fn kernel_budget(&self) -> Option<Duration> {
        let line = self.board.stream(self.slot);
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
        // Relaxed: the wait that is submitted after it publishes it.
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

    fn objects(&self) -> MutexGuard<'_, VecDeque<(u64, CommandObject)>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an object for the command that is about to be submitted.
    pub(super) fn keep(&self, object: CommandObject) {
        let number = self.ring().commands() + 1;
        self.objects().push_back((number, object));
    }

    /// Looks at the object of a command.
    pub(super) fn with_object<R>(
        &self,
        number: u64,
        look: impl FnOnce(&CommandObject) -> Option<R>,
    ) -> Option<R> {
        let objects = self.objects();
        objects.front().filter(|(of, _)| *of == number).and_then(|(_, object)| look(object))
    }

    /// Takes the object of a command, and drops those of commands before it.
    pub(super) fn take_object(&self, number: u64) -> Option<CommandObject> {
        // Dropped without the lock, because an object may be the user's, whose drop may submit.
        while let Some((of, object)) = self.pop_object(number) {
            if of == number {
                return Some(object);
            }
        }
        None
    }

    /// Takes the first object of the commands up to this one.
    pub(super) fn take_object_to(&self, number: u64) -> Option<CommandObject> {
        self.pop_object(number).map(|(_, object)| object)
    }

    fn pop_object(&self, number: u64) -> Option<(u64, CommandObject)> {
        let mut objects = self.objects();
        objects.front().filter(|(of, _)| *of <= number)?;
        objects.pop_front()
    }

    /// Brings ring and events to a device whose memory only copies reach.
    pub(super) fn send(&self) -> Result<(), Error> {
        let _submitting = self.submitting();
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
        let of = |(_, object): &(u64, CommandObject)| match object {
            CommandObject::Record(event, _) | CommandObject::Event(event) => {
                Some(Arc::clone(event))
            }
            _ => None,
        };
        self.objects().iter().filter_map(of).collect()
    }

    /// Commands up to this number are over: the firmware or the service writes it, whichever has the head.
    #[inline]
    pub(super) fn completed(&self) -> u64 {
        // Acquire: pairs with the Release stores in `StreamState::advance`, in the firmware's `StreamPoll::over`, and in `fetch_progress`.
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

    /// Stops the stream: it takes no commands before a reset, and those that have not begun are skipped. Called by the service.
    pub(super) fn stop(&self, failure: &Arc<CommandFailure>) {
        self.status.change(|status| {
            status.stopped.get_or_insert_with(|| Arc::clone(failure));
        });
        self.ring().consumer().stopped.store(1, LineOrdering::Relaxed);
    }

    /// Asks the service to skip what was submitted so far: the number of the last command of that.
    pub(super) fn abort(&self) -> u64 {
        // Release: pairs with the Acquire load in `skip_to`.
        let commands = self.ring().commands();
        self.board.stream(self.slot).skip_to.fetch_max(commands, LineOrdering::Release);
        self.status.change(|status| status.aborts += 1);
        commands
    }

    /// Commands up to this number are skipped.
    #[inline]
    pub(super) fn skip_to(&self) -> u64 {
        // Acquire: pairs with the Release in `abort`.
        self.board.stream(self.slot).skip_to.load(LineOrdering::Acquire)
    }

    /// From here on it takes no commands.
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
