//! Captures: what is submitted to a stream between begin and end becomes a graph. Streams that wait for an event of the capture join it.
//!
//! A member's clock says how many steps of each member are known to be over when its next step begins. At the end the first
//! member must know the last step of all.
//!
//! ```text
//! begin -> active -> over      end, or the stream that began it is gone (abandon)
//!            |
//!         invalid -> over      end gives 507903
//! ```
//! Two captures that would mix, a member that is destroyed, and the end of the thread that alone could end it make a capture invalid. An invalid
//! capture takes no commands, holds nothing, and forbids nothing.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::lane::Command;
use crate::common::codes;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::common::thread;

/// Who may do what while a capture is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaptureMode {
    /// No thread of the process makes calls that a capture forbids.
    Global,
    /// The thread that began it does not.
    ThreadLocal,
    /// Everybody may.
    Relaxed,
}

impl CaptureMode {
    pub(crate) fn of(number: u32) -> Answer<Self> {
        match number {
            0 => Ok(Self::Global),
            1 => Ok(Self::ThreadLocal),
            2 => Ok(Self::Relaxed),
            _ => Err(Refusal::argument(format!(
                "there is no capture mode {number}; there are 0, 1 and 2"
            ))),
        }
    }
}

/// One step of a graph.
#[derive(Clone)]
pub(crate) enum Step {
    Do(Command),
    /// An event of the capture is recorded.
    Record(usize),
    /// An event of the capture is waited for.
    Wait(usize),
}

/// What was captured so far.
#[derive(Default)]
pub(crate) struct Captured {
    /// The steps in the order of the calls, each with its member.
    pub(crate) steps: Vec<(usize, Step)>,
    /// The streams that take part; the first one began the capture.
    pub(crate) members: Vec<Handle>,
    clocks: Vec<Vec<usize>>,
    /// The clock of each event of the capture when it was recorded.
    pub(crate) records: Vec<Vec<usize>>,
}

/// A stream capture, from its begin on.
pub(crate) struct Capture {
    pub(crate) mode: CaptureMode,
    /// Lives as long as the thread that began it.
    owner: Weak<()>,
    pub(crate) id: u32,
    state: Mutex<State>,
}

/// How far a capture is.
enum State {
    Active(Captured),
    /// The capture is invalid and can only be ended. The text says why.
    Invalid(&'static str),
    Over,
}

/// How far a capture is, for those who ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Active,
    Invalid,
    Over,
}

/// A stream's part in a capture.
#[derive(Clone)]
pub(crate) struct CaptureMember {
    pub(crate) capture: Arc<Capture>,
    pub(crate) index: usize,
}

/// An event's part in a capture.
#[derive(Clone)]
pub(crate) struct Joint {
    capture: Arc<Capture>,
    record: usize,
}

static NEXT: AtomicU32 = AtomicU32::new(1);
/// The captures that are not over.
static OPEN: Mutex<Vec<Arc<Capture>>> = Mutex::new(Vec::new());
/// How many there are in `OPEN`: most calls look no further.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn open() -> MutexGuard<'static, Vec<Arc<Capture>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether there is a capture that is not over.
#[inline]
pub(crate) fn is_any_open() -> bool {
    // Relaxed: a thread that has to see a capture of another one learns of it from the program, which orders the two.
    COUNT.load(Ordering::Relaxed) != 0
}

/// Ends every capture without a graph.
pub(crate) fn abandon_all() {
    let all = open().clone();
    all.iter().for_each(|capture| capture.abandon());
}

impl Capture {
    /// Begins a capture on `stream`.
    pub(crate) fn begin(stream: Handle, mode: CaptureMode) -> CaptureMember {
        let mut captured = Captured::default();
        let index = captured.join(stream);
        let capture = Arc::new(Self {
            mode,
            owner: thread::life(),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            state: Mutex::new(State::Active(captured)),
        });
        open().push(Arc::clone(&capture));
        // Relaxed: as for `is_any_open`.
        COUNT.fetch_add(1, Ordering::Relaxed);
        CaptureMember { capture, index }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far it is. A capture whose thread has ended cannot be ended any more: it becomes invalid.
    pub(crate) fn status(&self) -> Status {
        if self.mode != CaptureMode::Relaxed && self.owner.strong_count() == 0 {
            self.invalidate("the thread that began it has ended");
        }
        match &*self.lock() {
            State::Active(_) => Status::Active,
            State::Invalid(_) => Status::Invalid,
            State::Over => Status::Over,
        }
    }

    /// Invalidates the capture: from now on it can only be ended.
    pub(crate) fn invalidate(&self, why: &'static str) {
        let mut state = self.lock();
        if matches!(&*state, State::Active(_)) {
            let held = std::mem::replace(&mut *state, State::Invalid(why));
            drop(state);
            // What its commands hold goes without the lock.
            drop(held);
        }
    }

    /// Ends the capture without a graph.
    pub(crate) fn abandon(self: &Arc<Self>) {
        drop(self.close());
    }

    fn close(self: &Arc<Self>) -> State {
        let held = std::mem::replace(&mut *self.lock(), State::Over);
        let mut captures = open();
        let before = captures.len();
        captures.retain(|other| !Arc::ptr_eq(other, self));
        // Relaxed: as for `is_any_open`.
        COUNT.fetch_sub(before - captures.len(), Ordering::Relaxed);
        held
    }

    /// Refuses a thread that may not end it.
    pub(crate) fn check_thread(&self) -> Answer {
        let is_open_to_all = self.mode == CaptureMode::Relaxed || self.owner.strong_count() == 0;
        require(is_open_to_all || thread::is_own(&self.owner), || {
            let text = "another thread began the capture; end it there, or begin it relaxed";
            Refusal::new(codes::CAPTURE_THREAD, text)
        })
    }

    /// Ends it. Refused, where it is invalid, or where a step of another member is not waited for by the first one; the capture is over all the same.
    pub(crate) fn end(self: &Arc<Self>) -> Answer<Captured> {
        // One whose thread has ended becomes invalid.
        self.status();
        let captured = self.close().active()?;
        let known = |member: usize| captured.clocks[0].get(member).copied().unwrap_or(0);
        let steps = |member: usize| captured.steps.iter().filter(|(of, _)| *of == member).count();
        let unjoined = (1..captured.members.len()).find(|member| known(*member) < steps(*member));
        require(unjoined.is_none(), || {
            let text = "a stream that joined the capture has steps that the first stream does not wait for; record an event after them, and wait for it before the end";
            Refusal::new(codes::UNJOINED, text)
        })?;
        Ok(captured)
    }

    /// Changes what was captured so far.
    fn change<R>(&self, change: impl FnOnce(&mut Captured) -> R) -> Answer<R> {
        self.status();
        match &mut *self.lock() {
            State::Active(captured) => Ok(change(captured)),
            other => Err(other.refuse()),
        }
    }
}

impl State {
    /// What was captured.
    fn active(self) -> Answer<Captured> {
        match self {
            Self::Active(captured) => Ok(captured),
            other => Err(other.refuse()),
        }
    }

    fn refuse(&self) -> Refusal {
        match self {
            Self::Invalid(why) => {
                let text = format!("the capture is invalid: {why}; end it, and capture again");
                Refusal::new(codes::CAPTURE_INVALID, text)
            }
            _ => Refusal::new(codes::NOT_CAPTURED, "the capture is over; begin another one"),
        }
    }
}

impl Captured {
    fn join(&mut self, stream: Handle) -> usize {
        self.members.push(stream);
        self.clocks.push(Vec::new());
        self.members.len() - 1
    }

    fn push(&mut self, member: usize, step: Step) {
        self.steps.push((member, step));
        let steps = self.steps.iter().filter(|(of, _)| *of == member).count();
        let clock = &mut self.clocks[member];
        clock.resize(clock.len().max(member + 1), 0);
        clock[member] = steps;
    }

    /// A member waits for a record.
    fn wait(&mut self, member: usize, record: usize) {
        self.push(member, Step::Wait(record));
        let seen = self.records.get(record).cloned().unwrap_or_default();
        let clock = &mut self.clocks[member];
        clock.resize(clock.len().max(seen.len()), 0);
        clock.iter_mut().zip(&seen).for_each(|(own, seen)| *own = (*own).max(*seen));
    }
}

impl CaptureMember {
    /// Takes a command.
    pub(crate) fn take(&self, command: Command) -> Answer {
        self.capture.change(|captured| captured.push(self.index, Step::Do(command)))
    }

    /// Records an event of the capture.
    pub(crate) fn record(&self) -> Answer<Joint> {
        let record = self.capture.change(|captured| {
            let record = captured.records.len();
            captured.push(self.index, Step::Record(record));
            captured.records.push(captured.clocks[self.index].clone());
            record
        })?;
        Ok(Joint { capture: Arc::clone(&self.capture), record })
    }

    /// The stream is gone: a capture that it began is over, and one that it joined is invalid.
    pub(crate) fn leave(&self) {
        if self.index == 0 {
            self.capture.abandon();
        } else {
            self.capture.invalidate("a stream that took part in it is gone");
        }
    }
}

impl Joint {
    /// Whether its capture is not over.
    pub(crate) fn is_open(&self) -> bool {
        self.capture.status() != Status::Over
    }

    /// Makes `stream` wait for the event; it joins the capture if it is in none.
    pub(crate) fn wait(
        &self,
        stream: Handle,
        member: Option<&CaptureMember>,
    ) -> Answer<CaptureMember> {
        let index = match member {
            Some(member) if Arc::ptr_eq(&member.capture, &self.capture) => Some(member.index),
            Some(member) => {
                let why = "a stream of one capture waited for an event of another one";
                self.capture.invalidate(why);
                member.capture.invalidate(why);
                let text = "the event belongs to another capture than the stream, and both captures are invalid now; end both, and capture again";
                return Err(Refusal::new(codes::CAPTURES_MIXED, text));
            }
            None => None,
        };
        let index = self.capture.change(|captured| {
            let index = index.unwrap_or_else(|| captured.join(stream));
            captured.wait(index, self.record);
            index
        })?;
        Ok(CaptureMember { capture: Arc::clone(&self.capture), index })
    }
}

/// Refuses a call that a capture forbids: a copy that is not a command of a stream, for example.
pub(crate) fn check_allowed(mode: CaptureMode) -> Answer {
    if mode == CaptureMode::Relaxed || !is_any_open() {
        return Ok(());
    }
    let captures = open().clone();
    let forbids = |capture: &&Arc<Capture>| {
        capture.mode != CaptureMode::Relaxed && capture.status() == Status::Active
    };
    for capture in captures.iter().filter(forbids) {
        require(!thread::is_own(&capture.owner), || {
            let text = "this thread captures a stream, and the call is no command of a stream; end the capture first, or begin it relaxed";
            Refusal::new(codes::CAPTURE_FORBIDS, text)
        })?;
        require(capture.mode != CaptureMode::Global || mode != CaptureMode::Global, || {
            let text = "another thread captures a stream in mode GLOBAL; end that capture first, or begin it THREAD_LOCAL";
            Refusal::new(codes::CAPTURE_ELSEWHERE, text)
        })?;
    }
    Ok(())
}
