//! Events. Old ones and new ones differ in what an event means that was never recorded:
//!
//! ```text
//!                       query          wait of a stream
//! CreateEvent           not ready      refused
//! CreateEventWithFlag   not ready      waits for the next record
//! CreateEventExWithFlag complete       goes on
//! ```

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use pto_host::session::{Event as Point, Stream as Commands, StreamMark, ValueTest};

use super::capture::Joint;
use super::lane::{Command, Engine, Lane, Work};
use super::open::Open;
use super::profile;
use super::stream::Stream;
use super::struck::{self, Stuck};
use super::waits;
use super::word::{WordPage, timed_out, wait_on_host};
use crate::common::codes;
use crate::common::races;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::{Handle, HandleTable, Kind};

/// The events of the process.
pub(crate) static EVENTS: HandleTable<Event> = HandleTable::new(Kind::Event);

pub(crate) const SYNC: u32 = 1;
pub(crate) const TIME_LINE: u32 = 8;
pub(crate) const EXTERNAL: u32 = 0x20;
pub(crate) const IPC: u32 = 0x40;
/// Every flag that there is.
const FLAGS: u32 = 1 | 2 | 8 | 0x10 | 0x20 | 0x40;

/// Which function made an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// `aclrtCreateEvent`.
    Plain,
    /// `aclrtCreateEventWithFlag`.
    Flagged,
    /// `aclrtCreateEventExWithFlag`.
    New,
}

/// An event.
pub(crate) struct Event {
    pub(crate) open: Arc<Open>,
    pub(crate) style: Style,
    flags: u32,
    point: Point,
    /// What other processes see; the words are: records submitted, records complete, microseconds of the last.
    pub(crate) words: Option<Arc<WordPage>>,
    /// One of `NEVER`, `RECORDED` and `RESET`.
    last: AtomicU8,
    /// Whether its last record belongs to a capture, or comes after the command at which a lane is stuck: `state` says which.
    is_entangled: AtomicBool,
    state: Mutex<State>,
    /// How far each stream is when its last wait is over.
    waits: Mutex<Vec<StreamMark>>,
}

/// The event was never recorded.
const NEVER: u8 = 0;
/// The event was recorded, and was not reset since.
const RECORDED: u8 = 1;
/// The event was reset after its last record.
const RESET: u8 = 2;

#[derive(Default)]
struct State {
    joint: Option<Joint>,
    /// What the lane was stuck at when it was recorded.
    stuck: Option<Arc<Stuck>>,
}

impl Event {
    /// Makes an event on a device; `words` are those of another process.
    pub(crate) fn open(
        open: &Arc<Open>,
        style: Style,
        flags: u32,
        words: Option<WordPage>,
    ) -> Answer<Handle> {
        require(flags & !FLAGS == 0 && (style == Style::Plain || flags != 0), || {
            Refusal::value(format!(
                "event flags {flags:#x} are none; use SYNC, TIME_LINE and their neighbours"
            ))
        })?;
        let words = match words {
            Some(words) => Some(words),
            None if flags & IPC != 0 => Some(WordPage::over(open, None)?),
            None => None,
        };
        let point = open.session.event()?;
        Ok(EVENTS.open(Self {
            open: Arc::clone(open),
            style,
            flags,
            point,
            words: words.map(Arc::new),
            last: AtomicU8::new(NEVER),
            is_entangled: AtomicBool::new(false),
            state: Mutex::default(),
            waits: Mutex::default(),
        }))
    }

    fn waits(&self) -> MutexGuard<'_, Vec<StreamMark>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream waits for it, with the command that the stream got last.
    fn note_wait(&self, stream: &Commands) {
        let mut waits = self.waits();
        if let Some(known) = waits.iter_mut().find(|wait| stream.has(wait)) {
            known.move_on();
            return;
        }
        waits.retain(|wait| !wait.is_passed());
        waits.push(stream.mark());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.joint.as_ref().is_some_and(|joint| !joint.is_open()) {
            state.joint = None;
        }
        state
    }

    /// Whether it was ever recorded.
    fn was_recorded(&self) -> bool {
        // Acquire: pairs with the Release store in `record_in`.
        self.last.load(Ordering::Acquire) != NEVER
    }

    /// Whether `state` has anything of its last record. Most events have nothing, and then no thread takes the lock.
    fn is_entangled(&self) -> bool {
        // Acquire: pairs with the Release store of who has changed `state`.
        self.is_entangled.load(Ordering::Acquire)
    }

    /// The event's part in a capture that goes on.
    fn joint(&self) -> Option<Joint> {
        if self.is_entangled() { self.state().joint.clone() } else { None }
    }

    /// What the lane of its last record was stuck at.
    fn stuck(&self) -> Option<Arc<Stuck>> {
        if self.is_entangled() { self.state().stuck.clone() } else { None }
    }

    /// Says to what its last record belongs.
    fn entangle(&self, joint: Option<Joint>, stuck: Option<Arc<Stuck>>) {
        let is_entangled = joint.is_some() || stuck.is_some();
        if is_entangled || self.is_entangled() {
            let mut state = self.state();
            (state.joint, state.stuck) = (joint, stuck);
            // Release: pairs with the Acquire load in `is_entangled`.
            self.is_entangled.store(is_entangled, Ordering::Release);
        }
    }

    /// Refuses while its last record belongs to a capture.
    fn check_uncaptured(&self) -> Answer {
        require(self.joint().is_none(), || {
            let text = "the event was recorded in a capture that goes on; end the capture first";
            Refusal::new(codes::EVENT_CAPTURED, text)
        })
    }

    /// Records it in a stream. `external` takes it out of a capture into the graph as a command.
    pub(crate) fn record(self: &Arc<Self>, stream: &Stream, external: bool) -> Answer {
        if !stream.is_captured() {
            return stream
                .submit_at_once(Engine::Stream, "event record", |lane| self.record_in(lane));
        }
        if !external && let Some(member) = &*stream.capture() {
            self.entangle(Some(member.record()?), None);
            return Ok(());
        }
        let event = Arc::clone(self);
        let work: Work = Arc::new(move |lane| event.record_in(lane));
        stream.submit(Command::new(Engine::Stream, "event record", work))
    }

    fn record_in(&self, lane: &Lane) -> Answer {
        // Release: pairs with the Acquire load in `was_recorded`.
        self.last.store(RECORDED, Ordering::Release);
        self.entangle(None, lane.stuck());
        require(lane.open.index == self.open.index, || {
            let text = "the event was made for another device than the stream's; make one there";
            Refusal::new(codes::OTHER_CONTEXT, text)
        })?;
        lane.records(self.signal())?;
        let Some(words) = &self.words else {
            lane.stream().record(&self.point)?;
            return Ok(());
        };
        // AcqRel: pairs with the Acquire loads in `is_complete` and `wait_in`, in this process or another.
        let record = words.at(0).cell().fetch_add(1, Ordering::AcqRel) + 1;
        let recorded = lane.stream().record(&self.point);
        words.at(1).raise(lane, &self.point, record);
        recorded?;
        Ok(())
    }

    /// Makes a stream wait for it.
    pub(crate) fn wait(
        self: &Arc<Self>,
        stream: &Stream,
        external: bool,
        limit: Option<Duration>,
    ) -> Answer {
        require(self.style == Style::Plain || self.flags & (SYNC | EXTERNAL | IPC) != 0, || {
            let text =
                "the event was made without ACL_EVENT_SYNC, so that streams cannot wait for it";
            Refusal::unsupported(text)
        })?;
        let joint = self.joint().filter(|_| !external);
        if let Some(joint) = joint {
            let mut capture = stream.capture();
            let member = joint.wait(stream.handle, capture.as_ref())?;
            *capture = Some(member);
            return Ok(());
        }
        require(external || !stream.is_captured(), || {
            let text = "the stream is captured, and the event was not recorded in the capture; record it there, or wait with ACL_EVENT_WAIT_EXTERNAL";
            Refusal::new(codes::OTHER_CAPTURE, text)
        })?;
        let is_new = !self.was_recorded() && self.words.is_none();
        require(!(is_new && self.style == Style::Plain && !external), || {
            Refusal::value("the event was never recorded; record it before a stream waits for it")
        })?;
        if !stream.is_captured() {
            return stream
                .submit_at_once(Engine::Stream, "event wait", |lane| self.wait_in(lane, limit));
        }
        let event = Arc::clone(self);
        let work: Work = Arc::new(move |lane| event.wait_in(lane, limit));
        stream.submit(Command::new(Engine::Stream, "event wait", work))
    }

    /// What the order of commands calls it: its own address, which no handle is.
    fn signal(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn wait_in(&self, lane: &Lane, limit: Option<Duration>) -> Answer {
        if self.words.is_some() || !self.was_recorded() {
            races::waits_for_unknown(lane.number());
        } else {
            races::waits(lane.number(), self.signal());
            profile::waits(self.signal());
        }
        if limit.is_none() && struck::was_any_stuck() {
            lane.waits_for(self.stuck());
        }
        if let Some(words) = &self.words {
            // Acquire: pairs with the addition in `record_in`.
            let record = words.at(0).cell().load(Ordering::Acquire);
            words.at(1).wait(lane, ValueTest::AT_LEAST, record, limit)?;
        } else if lane.open.index != self.open.index {
            let (point, is_dropped) = (self.point.clone(), lane.drops());
            lane.call(move || wait_for(&point, limit, is_dropped))?;
        } else if !self.was_recorded() && self.style == Style::Flagged {
            match limit {
                Some(limit) => lane.stream().wait_next_within(&self.point, limit)?,
                None => lane.stream().wait_next(&self.point)?,
            };
        } else if let Some(limit) = limit {
            lane.stream().wait_within(&self.point, limit)?;
        } else {
            lane.stream().wait(&self.point)?;
        }
        self.note_wait(lane.stream());
        Ok(())
    }

    /// Resets it in a stream.
    pub(crate) fn reset(self: &Arc<Self>, stream: &Stream) -> Answer {
        require(self.style != Style::New, || {
            Refusal::unsupported(
                "events of aclrtCreateEventExWithFlag are recorded again without a reset",
            )
        })?;
        let event = Arc::clone(self);
        let work: Work = Arc::new(move |lane| {
            // Release: pairs with the Acquire load in `was_recorded`. An event that was never recorded stays so.
            let _: Result<u8, u8> =
                event.last.compare_exchange(RECORDED, RESET, Ordering::Release, Ordering::Relaxed);
            lane.stream().reset(&event.point)?;
            Ok(())
        });
        stream.submit(Command::new(Engine::Stream, "event reset", work))
    }

    /// Whether its last record is complete.
    pub(crate) fn is_complete(&self) -> Answer<bool> {
        self.check_uncaptured()?;
        if let Some(words) = &self.words {
            // Acquire: pairs with the addition in `record_in`, and with the Release store in `WordRef::write`.
            let [asked, done] = [0, 1].map(|index| words.at(index).cell().load(Ordering::Acquire));
            return Ok(asked_for(done >= asked));
        }
        // Acquire: pairs with the Release store in `record_in`.
        let is_recorded = self.last.load(Ordering::Acquire) == RECORDED;
        let is_complete = asked_for(self.point.is_complete());
        if is_complete {
            races::seen(self.signal());
        }
        Ok(is_complete && (self.style == Style::New || is_recorded))
    }

    /// Whether every wait of a stream for it is over.
    pub(crate) fn was_waited_for(&self) -> bool {
        let mut waits = self.waits();
        waits.retain(|wait| !wait.is_passed());
        let is_over = waits.is_empty();
        // A turn of the devices may call a function that asks about this event.
        drop(waits);
        asked_for(is_over)
    }

    /// Waits on the host for its last record.
    pub(crate) fn synchronize(&self, limit: Option<Duration>) -> Answer {
        self.check_uncaptured()?;
        let stuck = self.stuck();
        if let Some(stuck) = stuck.filter(|_| limit.is_none()) {
            stuck.refuse_to_wait().map_err(|refusal| refusal.with_code(codes::EVENT_TIMEOUT))?;
        }
        if let Some(words) = &self.words {
            // Acquire: pairs with the addition in `record_in`.
            let record = words.at(0).cell().load(Ordering::Acquire);
            let test = (ValueTest::AT_LEAST, record);
            return wait_on_host(words.at(1).cell(), test, limit, || false)
                .map_err(|refusal| refusal.with_code(codes::EVENT_TIMEOUT));
        }
        if !self.was_recorded() {
            return Ok(());
        }
        match limit {
            Some(limit) => self.point.synchronize_within(limit)?,
            None => self.point.synchronize()?,
        }
        races::seen(self.signal());
        Ok(())
    }

    /// When it was complete, since the device was opened.
    pub(crate) fn time(&self) -> Answer<Duration> {
        require(self.style == Style::Plain || self.flags & TIME_LINE != 0, || {
            let text = "the event was made without ACL_EVENT_TIME_LINE, so that it has no time";
            Refusal::new(codes::NO_TIME, text)
        })?;
        require(self.was_recorded(), || {
            Refusal::new(codes::INTERNAL, "the event was never recorded; record it first")
        })?;
        self.point.time().ok_or_else(|| {
            waits::query_takes_time();
            Refusal::new(codes::NO_TIME, "the event is not complete; synchronise it first")
        })
    }
}

/// What a query has found, which takes time where it is not over.
#[inline]
fn asked_for(is_over: bool) -> bool {
    if !is_over {
        waits::query_takes_time();
    }
    is_over
}

/// Waits for the record that is the last one now, unless the wait is no longer needed.
fn wait_for(point: &Point, limit: Option<Duration>, is_dropped: impl Fn() -> bool) -> Answer {
    let mut record = point.completed();
    let mut is_over = || {
        let mut context = Context::from_waker(Waker::noop());
        is_dropped() || Pin::new(&mut record).poll(&mut context).is_ready()
    };
    waits::wait_until(limit, &mut is_over).map_err(timed_out)
}
