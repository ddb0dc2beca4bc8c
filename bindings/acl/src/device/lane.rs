//! The streams of the session that carry the commands of one stream of the program: one, or two if the program set the stream to stop
//! on failures after it had submitted commands.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use pto_acl_interface::Strike;
use pto_host::SessionError;
use pto_host::session::{Event as Point, OnFailure, Stream, StreamOptions};

use super::callbacks::Exception;
use super::failure::fail_command;
use super::limits;
use super::memory_map;
use super::open::Open;
use super::profile;
use super::settings::settings;
use super::struck::{self, Stuck};
use crate::common::codes;
use crate::common::faults;
use crate::common::order::{LaneNumber, MemoryUse, Touch};
use crate::common::races;
use crate::common::refusal::Answer;
use crate::common::watch::{self, Watcher};

/// A lane of commands of one device.
pub(crate) struct Lane {
    pub(crate) open: Arc<Open>,
    /// The number of its stream, as exceptions have it.
    id: u32,
    /// What timelines call it.
    pub(crate) title: String,
    /// The lane's number among the lanes of the process.
    number: LaneNumber,
    priority: u8,
    normal: Stream,
    stopping: OnceLock<Stream>,
    /// The time limit of a kernel in microseconds. The lane's streams have the same limit.
    operator_us: AtomicU64,
    /// How often its commands were dropped.
    aborts: Arc<AtomicU64>,
    /// Memory words that the lane waits for without a time limit.
    awaited: Mutex<Vec<Awaited>>,
    /// What it is stuck at, or was: by itself, or because it waits for a record after that.
    stuck: Mutex<Option<Arc<Stuck>>>,
}

/// A wait for a word: the word, and the records before and after the wait.
#[derive(Clone)]
struct Awaited {
    address: usize,
    reached: Point,
    passed: Point,
}

/// No time of operators: the streams of a lane have none set yet.
const NOT_TOLD: u64 = 0;

/// The number of a lane that has no stream of the program: branches of graphs, models that a call waits for.
pub(crate) const NO_STREAM: u32 = u32::MAX;

/// What a lane is asked to do; a captured graph asks again and again.
pub(crate) type Work = Arc<dyn Fn(&Lane) -> Answer + Send + Sync>;

/// What does a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// The cores: kernels and models.
    Cores,
    /// What moves bytes: copies, fills and reductions.
    Copies,
    /// The stream itself, or the host: records, waits, words, functions.
    Stream,
}

/// A command: its name, what it does, and which memory it uses.
#[derive(Clone)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    engine: Engine,
    /// What timelines and injected faults call it, where somebody watches.
    label: Option<Arc<str>>,
    work: Work,
    touches: Vec<Touch>,
}

/// Whether anybody asks what a command is: timelines, the validation layer, injected faults.
#[inline]
pub(crate) fn labels_are_asked_for() -> bool {
    profile::is_on() || watch::has(Watcher::Environment)
}

static NEXT: AtomicU32 = AtomicU32::new(1);

impl Command {
    pub(crate) fn new(engine: Engine, name: &'static str, work: Work) -> Self {
        Self { name, engine, label: None, work, touches: Vec::new() }
    }

    /// Adds the bytes that the command uses.
    pub(crate) fn using(mut self, touches: impl IntoIterator<Item = Touch>) -> Self {
        self.touches.extend(touches);
        self
    }

    /// Sets what timelines and injected faults call the command.
    pub(crate) fn labelled(mut self, label: impl FnOnce() -> String) -> Self {
        if labels_are_asked_for() {
            self.label = Some(label().into());
        }
        self
    }

    /// Refuses where memory that it uses has been freed or unmapped since it was made.
    pub(crate) fn check_memory(&self) -> Answer {
        let mut known = self.touches.iter().filter(|touch| touch.how != MemoryUse::Passes);
        known.try_for_each(|touch| memory_map::device_of(touch.start, touch.bytes).map(drop))
    }

    /// Submits it to a lane.
    pub(crate) fn submit(&self, lane: &Lane) -> Answer {
        let label = self.label.as_deref().unwrap_or(self.name);
        lane.submit(self.engine, label, &self.touches, |lane| (self.work)(lane))
    }
}

impl Lane {
    /// A lane of a device for a stream with this number; `title` is what timelines call it.
    pub(crate) fn new(open: &Arc<Open>, priority: u8, id: u32, title: String) -> Answer<Self> {
        let options = StreamOptions { priority, ..StreamOptions::default() };
        let normal = open.session.stream_with(options)?;
        // Relaxed: the counter only makes numbers differ.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            open: Arc::clone(open),
            id,
            title,
            number,
            priority,
            normal,
            stopping: OnceLock::new(),
            operator_us: AtomicU64::new(NOT_TOLD),
            aborts: Arc::default(),
            awaited: Mutex::default(),
            stuck: Mutex::default(),
        })
    }

    /// Takes a command: what does it, what timelines and injected faults call it, the memory that it uses, and what it does.
    #[inline]
    pub(crate) fn submit(
        &self,
        engine: Engine,
        label: &str,
        touches: &[Touch],
        work: impl FnOnce(&Self) -> Answer,
    ) -> Answer {
        races::submitted(self.number, touches);
        if !profile::is_on() {
            return self.perform(engine, label, work);
        }
        let recorded = profile::begin(self.stream_ref(), label)?;
        let outcome = self.perform(engine, label, work);
        if let Some(recorded) = recorded {
            profile::end(self.stream_ref(), recorded)?;
        }
        outcome
    }

    /// Does a command, unless a fault that a user asks for strikes it: the fault tells `label`.
    #[inline]
    pub(crate) fn perform(
        &self,
        engine: Engine,
        label: &str,
        work: impl FnOnce(&Self) -> Answer,
    ) -> Answer {
        if settings().is_blocking && engine != Engine::Stream {
            self.perform_now(engine, label, work)
        } else {
            self.perform_later(engine, label, work)
        }
    }

    /// Does a command, and waits until it is over.
    #[cold]
    fn perform_now(
        &self,
        engine: Engine,
        label: &str,
        work: impl FnOnce(&Self) -> Answer,
    ) -> Answer {
        self.perform_later(engine, label, work)?;
        self.synchronize(None)
    }

    #[inline]
    fn perform_later(
        &self,
        engine: Engine,
        label: &str,
        work: impl FnOnce(&Self) -> Answer,
    ) -> Answer {
        let is_asked_for = watch::has(Watcher::Environment);
        let strike = is_asked_for.then(|| faults::strike(engine == Engine::Cores)).flatten();
        match strike {
            Some(strike) => self.suffer(strike, label),
            // Waits and records go on: they show that the stream is drained.
            None if engine != Engine::Stream && self.open.damage.is_poisoned() => Ok(()),
            None if engine == Engine::Cores => {
                self.limit_operators()?;
                work(self)
            }
            None => work(self),
        }
    }

    /// Gives its kernels the time that the program has set for operators.
    #[inline]
    fn limit_operators(&self) -> Answer {
        let wanted = limits::operator_us();
        // Relaxed: two threads that submit at once give the same time.
        if self.operator_us.load(Ordering::Relaxed) != wanted {
            let budget = Duration::from_micros(wanted);
            // The longest time is that of the session.
            let own = (budget < limits::LONGEST).then_some(budget);
            self.stream().set_kernel_budget(own)?;
            self.operator_us.store(wanted, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The work of a fault, which replaces that of a command.
    #[cold]
    fn suffer(&self, strike: Strike, label: &str) -> Answer {
        let (code, what) = match strike {
            Strike::AicoreTimeout => (codes::AICORE_TIMEOUT, "an AICore timed out"),
            Strike::AicoreException => (codes::AICORE_EXCEPTION, "an AICore raised an exception"),
            Strike::AicpuTimeout => (codes::AICPU_TIMEOUT, "an AICPU timed out"),
            Strike::AicpuException => (codes::AICPU_EXCEPTION, "an AICPU raised an exception"),
            Strike::PoisonedDevice => {
                self.open.damage.poison();
                (codes::AICPU_EXCEPTION, "the device is poisoned")
            }
            Strike::StuckStream => {
                let stuck = self.open.damage.stick(&self.open.session, self.stream())?;
                self.waits_for(Some(stuck));
                return Ok(());
            }
        };
        let exception = self.exception(code);
        let label = label.to_owned();
        self.call(move || {
            exception.raise(&format!("({label}) failed because PTO_ACL_FAIL asks for it: {what}"))
        })
    }

    /// An exception of the command that is submitted to it just now.
    pub(crate) fn exception(&self, code: i32) -> Exception {
        Exception::of_next_command(self.id, self.open.index, code)
    }

    /// What it is stuck at.
    pub(crate) fn stuck(&self) -> Option<Arc<Stuck>> {
        if !struck::was_any_stuck() {
            return None;
        }
        let held = self.held_stuck().clone().filter(|stuck| !stuck.is_over());
        held.or_else(|| {
            let awaited = self.awaited();
            awaited.iter().find_map(|wait| self.open.damage.writer_of(wait.address))
        })
    }

    /// It writes a word in stream order, after the command at which it is stuck.
    pub(crate) fn writes_word(&self, address: usize) {
        if let Some(stuck) = self.stuck() {
            stuck.note_word(address);
        }
    }

    /// It waits for a word without a limit; `wait` submits that.
    pub(crate) fn awaits_word(
        &self,
        address: usize,
        wait: impl FnOnce(&Stream) -> Answer,
    ) -> Answer {
        let [reached, passed] = [self.open.session.event()?, self.open.session.event()?];
        self.stream().record(&reached)?;
        wait(self.stream())?;
        self.stream().record(&passed)?;
        self.awaited().push(Awaited { address, reached, passed });
        Ok(())
    }

    /// The waits for words that are not over.
    fn awaited(&self) -> MutexGuard<'_, Vec<Awaited>> {
        let mut awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        awaited.retain(|wait| !wait.passed.is_complete());
        awaited
    }

    /// Refuses where it waits for a word that only a stream which is stuck would write.
    fn check_words(&self) -> Answer {
        if !struck::was_any_stuck() {
            return Ok(());
        }
        let awaited = self.awaited().clone();
        for wait in awaited {
            let Some(stuck) = self.open.damage.writer_of(wait.address) else { continue };
            wait.reached.synchronize()?;
            if !wait.passed.is_complete() {
                stuck.refuse_to_wait()?;
            }
        }
        Ok(())
    }

    /// From here on it waits for a record of a lane that was stuck at this then.
    pub(crate) fn waits_for(&self, stuck: Option<Arc<Stuck>>) {
        if let Some(stuck) = stuck
            && self.stuck().is_none()
        {
            *self.held_stuck() = Some(stuck);
        }
    }

    fn held_stuck(&self) -> MutexGuard<'_, Option<Arc<Stuck>>> {
        self.stuck.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The command that it takes now is about to record an event, or to raise a notify.
    #[inline]
    pub(crate) fn records(&self, signal: usize) -> Answer {
        races::recorded(self.number, signal);
        profile::records(self.stream_ref(), signal)
    }

    fn stream_ref(&self) -> profile::StreamRef<'_> {
        profile::StreamRef { open: &self.open, stream: self.stream(), title: &self.title }
    }

    /// The lane's number among the lanes of the process.
    pub(crate) fn number(&self) -> LaneNumber {
        self.number
    }

    /// The stream that takes commands now.
    #[inline]
    pub(crate) fn stream(&self) -> &Stream {
        self.stopping.get().unwrap_or(&self.normal)
    }

    /// From here on a failure stops the lane.
    pub(crate) fn stop_on_failure(&self) -> Answer {
        let options = StreamOptions {
            priority: self.priority,
            on_failure: OnFailure::Stop,
            ..StreamOptions::default()
        };
        let stopping = self.open.session.stream_with(options)?;
        let after = self.open.session.event()?;
        self.normal.record(&after)?;
        stopping.wait(&after)?;
        self.stopping.get_or_init(|| stopping);
        // Relaxed: the next kernel sets the time of the new stream.
        self.operator_us.store(NOT_TOLD, Ordering::Relaxed);
        Ok(())
    }

    /// Whether a failure stops it.
    pub(crate) fn stops_on_failure(&self) -> bool {
        self.stopping.get().is_some()
    }

    /// Calls `function` in its turn; where it fails, the command fails with its code.
    pub(crate) fn call(&self, function: impl FnOnce() -> Answer + Send + 'static) -> Answer {
        self.stream().call(move || {
            if let Err(refusal) = function() {
                fail_command(&refusal);
            }
        })?;
        Ok(())
    }

    /// Waits for everything that was submitted. Without a limit, a stream that is stuck is not waited for.
    pub(crate) fn synchronize(&self, limit: Option<Duration>) -> Answer {
        if limit.is_none() {
            let held = self.held_stuck().clone();
            held.map_or(Ok(()), |stuck| stuck.refuse_to_wait())?;
            self.check_words()?;
        }
        let mut failed = None;
        for stream in self.stopping.get().into_iter().chain([&self.normal]) {
            let waited = match limit {
                Some(limit) => stream.synchronize_within(limit),
                None => stream.synchronize(),
            };
            match waited {
                Ok(()) => {}
                // All other commands are over as well.
                Err(failure @ SessionError::Failed(_)) => failed = failed.or(Some(failure)),
                Err(error) => return Err(error.into()),
            }
        }
        races::ended(self.number);
        Ok(failed.map_or(Ok(()), Err)?)
    }

    /// Whether everything is over.
    pub(crate) fn is_idle(&self) -> Answer<bool> {
        let is_idle =
            self.normal.query()? && self.stopping.get().map_or(Ok(true), Stream::query)?;
        if is_idle {
            races::ended(self.number);
        }
        Ok(is_idle)
    }

    /// Whether what is submitted now has been dropped, for a function of the host that waits for something in its turn.
    pub(crate) fn drops(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let (aborts, open) = (Arc::clone(&self.aborts), Arc::clone(&self.open));
        // Relaxed: who waits looks again and again.
        let now = move || (aborts.load(Ordering::Relaxed), open.resets());
        let before = now();
        move || now() != before
    }

    /// Drops what has not begun.
    pub(crate) fn abort(&self) {
        // Relaxed: as for `drops`.
        self.aborts.fetch_add(1, Ordering::Relaxed);
        self.stream().abort();
        self.normal.abort();
        *self.held_stuck() = None;
        self.awaited().clear();
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // No thread can end its stuck command any more.
        if self.stuck().is_some() {
            self.abort();
        }
        races::ended(self.number);
    }
}
