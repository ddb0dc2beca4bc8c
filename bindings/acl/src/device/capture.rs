//! Captures: what is submitted to a stream between begin and end becomes a graph. Streams that wait for an event of the capture join it.
//!
//! A member's clock says how many steps of each member are known to be over when its next step begins. At the end the first
//! member must know the last step of all.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::lane::Command;
use crate::common::codes;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;

/// Who may do what while a capture is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// No thread of the process makes calls that a capture forbids.
    Global,
    /// The thread that began it does not.
    ThreadLocal,
    /// Everybody may.
    Relaxed,
}

impl Mode {
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

/// A capture that goes on.
pub(crate) struct Capture {
    pub(crate) mode: Mode,
    pub(crate) thread: u64,
    pub(crate) id: u32,
    is_over: AtomicBool,
    captured: Mutex<Captured>,
}

/// A stream's part in a capture.
#[derive(Clone)]
pub(crate) struct Member {
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
static ACTIVE: Mutex<Vec<Arc<Capture>>> = Mutex::new(Vec::new());
/// How many there are in `ACTIVE`: most calls look no further.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn active() -> MutexGuard<'static, Vec<Arc<Capture>>> {
    ACTIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether any capture goes on.
#[inline]
pub(crate) fn is_any_active() -> bool {
    // Relaxed: a thread that has to see a capture of another one is told of it by the program, which orders the two.
    COUNT.load(Ordering::Relaxed) != 0
}

impl Capture {
    /// Begins a capture on `stream`.
    pub(crate) fn begin(stream: Handle, mode: Mode, thread: u64) -> Member {
        let capture = Arc::new(Self {
            mode,
            thread,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            is_over: AtomicBool::new(false),
            captured: Mutex::default(),
        });
        active().push(Arc::clone(&capture));
        // Relaxed: as for `is_any_active`.
        COUNT.fetch_add(1, Ordering::Relaxed);
        let index = capture.join(stream);
        Member { capture, index }
    }

    fn lock(&self) -> MutexGuard<'_, Captured> {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(&self, stream: Handle) -> usize {
        let mut captured = self.lock();
        captured.members.push(stream);
        captured.clocks.push(Vec::new());
        captured.members.len() - 1
    }

    /// Whether it goes on.
    pub(crate) fn is_active(&self) -> bool {
        // Acquire: pairs with the Release store in `end`.
        !self.is_over.load(Ordering::Acquire)
    }

    /// Ends it. Refused, where a step of another member is not waited for by the first one; the capture is over all the same.
    pub(crate) fn end(self: &Arc<Self>) -> Answer<Captured> {
        // Release: pairs with the Acquire load in `is_active`.
        self.is_over.store(true, Ordering::Release);
        let mut captures = active();
        let before = captures.len();
        captures.retain(|other| !Arc::ptr_eq(other, self));
        // Relaxed: as for `is_any_active`.
        COUNT.fetch_sub(before - captures.len(), Ordering::Relaxed);
        drop(captures);
        let captured = std::mem::take(&mut *self.lock());
        let known = |member: usize| captured.clocks[0].get(member).copied().unwrap_or(0);
        let steps = |member: usize| captured.steps.iter().filter(|(of, _)| *of == member).count();
        let unjoined = (1..captured.members.len()).find(|member| known(*member) < steps(*member));
        require(unjoined.is_none(), || {
            let text = "a stream that joined the capture has steps that the first stream does not wait for; record an event behind them, and wait for it before the end";
            Refusal::new(codes::UNJOINED, text)
        })?;
        Ok(captured)
    }
}

impl Member {
    /// Takes a command.
    pub(crate) fn take(&self, command: Command) {
        self.push(Step::Do(command));
    }

    /// Records an event of the capture.
    pub(crate) fn record(&self) -> Joint {
        let record = self.capture.lock().records.len();
        self.push(Step::Record(record));
        let mut captured = self.capture.lock();
        let clock = captured.clocks[self.index].clone();
        captured.records.push(clock);
        drop(captured);
        Joint { capture: Arc::clone(&self.capture), record }
    }

    fn push(&self, step: Step) {
        let mut captured = self.capture.lock();
        captured.steps.push((self.index, step));
        let steps = captured.steps.iter().filter(|(of, _)| *of == self.index).count();
        let clock = &mut captured.clocks[self.index];
        clock.resize(clock.len().max(self.index + 1), 0);
        clock[self.index] = steps;
    }
}

impl Joint {
    /// The joint, while its capture goes on.
    pub(crate) fn is_open(&self) -> bool {
        self.capture.is_active()
    }

    /// Makes `stream` wait for the event; it joins the capture if it is in none.
    pub(crate) fn wait(&self, stream: Handle, member: Option<&Member>) -> Answer<Member> {
        let member = match member {
            Some(member) if Arc::ptr_eq(&member.capture, &self.capture) => member.clone(),
            Some(_) => {
                let text =
                    "the event belongs to another capture than the stream; end one of them first";
                return Err(Refusal::new(codes::CAPTURES_MIXED, text));
            }
            None => Member { capture: Arc::clone(&self.capture), index: self.capture.join(stream) },
        };
        member.push(Step::Wait(self.record));
        let mut captured = self.capture.lock();
        let seen = captured.records.get(self.record).cloned().unwrap_or_default();
        let clock = &mut captured.clocks[member.index];
        clock.resize(clock.len().max(seen.len()), 0);
        clock.iter_mut().zip(&seen).for_each(|(own, seen)| *own = (*own).max(*seen));
        drop(captured);
        Ok(member)
    }
}

/// Refuses a call that a capture forbids: a copy that is not a command of a stream, for example.
pub(crate) fn check_allowed(thread: u64, mode: Mode) -> Answer {
    if mode == Mode::Relaxed {
        return Ok(());
    }
    for capture in active().iter().filter(|capture| capture.mode != Mode::Relaxed) {
        require(capture.thread != thread, || {
            let text = "this thread captures a stream, and the call is no command of a stream; end the capture first, or begin it relaxed";
            Refusal::new(codes::CAPTURE_FORBIDS, text)
        })?;
        require(capture.mode != Mode::Global || mode != Mode::Global, || {
            let text = "another thread captures a stream in mode GLOBAL; end that capture first, or begin it THREAD_LOCAL";
            Refusal::new(codes::CAPTURE_ELSEWHERE, text)
        })?;
    }
    Ok(())
}
