//! Ranges and marks of the program in timelines: `aclprofPush`, `aclprofRangeStart` and their neighbours.
//!
//! They are kept while the profiler records `ACL_PROF_MSPROFTX`; without it they return 0 and leave nothing behind.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::common::argument::{In, Out, Text};
use crate::common::entry::{api, give, values};
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::spans::{self, Span};
use crate::common::table::{Handle, Kind, Table};
use crate::device::lane::{Command, Engine, Work};
use crate::device::profile::{self, RANGES};
use crate::device::{current, fleet};

/// The most bytes of a message.
const MAX_MESSAGE: usize = 4096;
/// Ranges of a thread, or of the process, that are open at once, at most.
const MAX_OPEN: usize = 1 << 16;

/// A message for ranges and marks.
#[derive(Default)]
struct Stamp(Mutex<String>);

static STAMPS: Table<Stamp> = Table::new(Kind::Stamp);
/// Steps have no state: their marks are commands of streams.
static STEPS: Table<()> = Table::new(Kind::StepInfo);

/// What has begun and not ended: ranges with numbers, and those of each thread within each other.
#[derive(Default)]
struct Begun {
    numbered: BTreeMap<u32, Span>,
    nested: BTreeMap<u32, Vec<Span>>,
}

static BEGUN: Mutex<Begun> =
    Mutex::new(Begun { numbered: BTreeMap::new(), nested: BTreeMap::new() });

fn begun() -> MutexGuard<'static, Begun> {
    BEGUN.lock().unwrap_or_else(PoisonError::into_inner)
}

values! {
    fn aclprofCreateStamp() -> Handle, 0, {
        Ok(STAMPS.open(Stamp::default()))
    }

    fn aclprofCreateStepInfo() -> Handle, 0, {
        Ok(STEPS.open(()))
    }

    fn aclprofStr2Id(message: Text) -> u64, u64::MAX, {
        // FNV-1a: the same number for the same text, in every process.
        let mix = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        Ok(message.read("message")?.bytes().fold(0xCBF2_9CE4_8422_2325, mix))
    }
}

/// Destroys a stamp.
// SAFETY: the name is that of the interface, and no other function here has it.
#[unsafe(no_mangle)]
extern "C" fn aclprofDestroyStamp(stamp: Handle) {
    give("aclprofDestroyStamp", (), || {
        checked(stamp)?;
        STAMPS.take(stamp).map(drop)
    });
}

/// Destroys a step.
// SAFETY: the name is that of the interface, and no other function here has it.
#[unsafe(no_mangle)]
extern "C" fn aclprofDestroyStepInfo(step: Handle) {
    give("aclprofDestroyStepInfo", (), || STEPS.take(step).map(drop));
}

api! {
    fn aclprofSetStampTraceMessage(stamp: Handle, message: In<u8>, bytes: u32) {
        let text = text(&message, bytes as usize)?;
        *checked(stamp)?.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
        Ok(())
    }

    fn aclprofMark(stamp: Handle) {
        let mark = span(&message_of(stamp)?);
        profile::range(mark);
        Ok(())
    }

    fn aclprofMarkEx(message: In<u8>, bytes: usize, stream: Handle) {
        let text = text(&message, bytes)?;
        mark(stream, text)
    }

    fn aclprofPush(stamp: Handle) {
        let span = span(&message_of(stamp)?);
        let mut begun = begun();
        let nested = begun.nested.entry(span.thread).or_default();
        check_room(nested.len())?;
        nested.push(span);
        Ok(())
    }

    fn aclprofPop() {
        let thread = spans::thread_number();
        let last = begun().nested.get_mut(&thread).and_then(Vec::pop);
        end(last.ok_or_else(|| Refusal::value("this thread has begun no range; push one first"))?);
        Ok(())
    }

    fn aclprofRangeStart(stamp: Handle, range: Out<u32>) {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let place = range.place("range")?;
        let span = span(&message_of(stamp)?);
        let mut begun = begun();
        check_room(begun.numbered.len())?;
        // Relaxed: the counter only makes numbers differ.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        begun.numbered.insert(number, span);
        place.set(number);
        Ok(())
    }

    fn aclprofRangeStop(range: u32) {
        let found = begun().numbered.remove(&range);
        end(found.ok_or_else(|| Refusal::value(format!("no range has the number {range}; stop each range once")))?);
        Ok(())
    }

    fn aclprofGetStepTimestamp(step: Handle, tag: u32, stream: Handle) {
        STEPS.get(step)?;
        let what = match tag {
            0 => "step begins",
            1 => "step ends",
            _ => return Err(Refusal::argument(format!("there is no tag {tag} of a step; there are 0 (start) and 1 (end)"))),
        };
        mark(stream, what.to_owned())
    }
}

fn checked(stamp: Handle) -> Answer<Arc<Stamp>> {
    require(stamp != 0, || Refusal::argument("stamp is null; pass what aclprofCreateStamp gave"))?;
    STAMPS.get(stamp)
}

fn message_of(stamp: Handle) -> Answer<String> {
    Ok(checked(stamp)?.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

/// So many bytes of a message, or those before a zero.
fn text(message: &In<u8>, bytes: usize) -> Answer<String> {
    require(bytes <= MAX_MESSAGE, || {
        Refusal::argument(format!(
            "a message of {bytes} bytes; a message has {MAX_MESSAGE} at most"
        ))
    })?;
    let bytes = message.list("message", bytes)?;
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(text).into_owned())
}

fn check_room(open: usize) -> Answer {
    require(open < MAX_OPEN, || {
        Refusal::value(format!("{MAX_OPEN} ranges are open; end some before you begin more"))
    })
}

/// A range of the calling thread that begins now.
fn span(message: &str) -> Span {
    let what = if message.is_empty() { "a range without a message" } else { message }.to_owned();
    let start_ns = profile::moment_ns(fleet::all_opened());
    Span { thread: spans::thread_number(), what, start_ns, end_ns: start_ns }
}

fn end(mut span: Span) {
    span.end_ns = profile::moment_ns(fleet::all_opened()).max(span.start_ns);
    profile::range(span);
}

/// A mark in a stream, which does nothing.
fn mark(stream: Handle, what: String) -> Answer {
    let stream = current::submitting(stream)?;
    if !profile::has(RANGES) || !profile::is_on() {
        return Ok(());
    }
    let work: Work = Arc::new(|_| Ok(()));
    stream.submit(Command::new(Engine::Stream, "mark", work).labelled(|| what))
}
