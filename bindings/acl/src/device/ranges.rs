//! Ranges and marks of the program in timelines.
//!
//! They are kept while the profiler records `ACL_PROF_MSPROFTX`; without it they are not kept.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::fleet;
use super::lane::{Command, Engine, Work};
use super::profile::{self, RANGES};
use super::stream::Stream;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::spans::{self, ThreadSpan};
use crate::common::table::{Handle, HandleTable, Kind};

/// Ranges of a thread, or of the process, that are open at once, at most.
const MAX_OPEN: usize = 1 << 16;

/// A message for ranges and marks.
#[derive(Default)]
struct Stamp(Mutex<String>);

static STAMPS: HandleTable<Stamp> = HandleTable::new(Kind::Stamp);
/// Steps have no state: their marks are commands of streams.
static STEPS: HandleTable<()> = HandleTable::new(Kind::StepInfo);

/// What has begun and not ended: ranges with numbers, and those of each thread within each other.
#[derive(Default)]
struct Begun {
    numbered: BTreeMap<u32, ThreadSpan>,
    nested: BTreeMap<u32, Vec<ThreadSpan>>,
}

static BEGUN: Mutex<Begun> =
    Mutex::new(Begun { numbered: BTreeMap::new(), nested: BTreeMap::new() });

fn begun() -> MutexGuard<'static, Begun> {
    BEGUN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The texts that the program has asked numbers for.
static NAMES: Mutex<BTreeMap<u64, String>> = Mutex::new(BTreeMap::new());
/// Texts that are kept; a range of another one has its number.
const MAX_NAMES: usize = 1 << 16;

fn names() -> MutexGuard<'static, BTreeMap<u64, String>> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the text of a number.
pub(crate) fn name(number: u64, text: String) {
    let mut names = names();
    if names.len() < MAX_NAMES {
        names.insert(number, text);
    }
}

/// A stamp without a message.
pub(crate) fn create_stamp() -> Handle {
    STAMPS.open(Stamp::default())
}

/// Forgets a stamp.
pub(crate) fn destroy_stamp(stamp: Handle) -> Answer {
    STAMPS.take(stamp).map(drop)
}

/// A step.
pub(crate) fn create_step() -> Handle {
    STEPS.open(())
}

/// Forgets a step.
pub(crate) fn destroy_step(step: Handle) -> Answer {
    STEPS.take(step).map(drop)
}

/// Refuses what is no step.
pub(crate) fn check_step(step: Handle) -> Answer {
    STEPS.get(step).map(drop)
}

/// Gives a stamp its message.
pub(crate) fn set_message(stamp: Handle, text: String) -> Answer {
    *STAMPS.get(stamp)?.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
    Ok(())
}

/// A mark of the calling thread.
pub(crate) fn mark(stamp: Handle) -> Answer {
    let mark = span(&message_of(stamp)?);
    profile::range(mark);
    Ok(())
}

/// Begins a range of the calling thread, within those that it has begun.
pub(crate) fn push(stamp: Handle) -> Answer {
    push_span(span(&message_of(stamp)?))
}

/// As [`push`], for an operator: its name and its type as numbers of texts, how many tensors it has, and its blocks.
pub(crate) fn push_operator(name: u64, kind: u64, tensors: u64, blocks: u64) -> Answer {
    let text = {
        let names = names();
        let text =
            |number: u64| names.get(&number).cloned().unwrap_or_else(|| format!("{number:#x}"));
        format!(
            "operator {} of type {}, {tensors} tensors, {blocks} blocks",
            text(name),
            text(kind)
        )
    };
    push_span(span(&text))
}

fn push_span(span: ThreadSpan) -> Answer {
    let mut begun = begun();
    let nested = begun.nested.entry(span.thread).or_default();
    check_room(nested.len())?;
    nested.push(span);
    Ok(())
}

/// Ends the range that the calling thread has begun last.
pub(crate) fn pop() -> Answer {
    let thread = spans::thread_number();
    let last = begun().nested.get_mut(&thread).and_then(Vec::pop);
    end(last.ok_or_else(|| Refusal::value("this thread has begun no range; push one first"))?);
    Ok(())
}

/// Begins a range that any thread may end, by its number.
pub(crate) fn start(stamp: Handle) -> Answer<u32> {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let span = span(&message_of(stamp)?);
    let mut begun = begun();
    check_room(begun.numbered.len())?;
    // Relaxed: the counter only makes numbers differ.
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    begun.numbered.insert(number, span);
    Ok(number)
}

/// Ends the range with this number.
pub(crate) fn stop(range: u32) -> Answer {
    let found = begun().numbered.remove(&range);
    end(found.ok_or_else(|| {
        Refusal::value(format!("no range has the number {range}; stop each range once"))
    })?);
    Ok(())
}

fn message_of(stamp: Handle) -> Answer<String> {
    Ok(STAMPS.get(stamp)?.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

fn check_room(open: usize) -> Answer {
    require(open < MAX_OPEN, || {
        Refusal::value(format!("{MAX_OPEN} ranges are open; end some before you begin more"))
    })
}

/// A range of the calling thread that begins now.
fn span(message: &str) -> ThreadSpan {
    let what = if message.is_empty() { "a range without a message" } else { message }.to_owned();
    let start_ns = profile::moment_ns(fleet::all_opened());
    ThreadSpan { thread: spans::thread_number(), what, start_ns, end_ns: start_ns }
}

fn end(mut span: ThreadSpan) {
    span.end_ns = profile::moment_ns(fleet::all_opened()).max(span.start_ns);
    profile::range(span);
}

/// A mark in a stream, which does nothing.
pub(crate) fn mark_in(stream: &Stream, what: String) -> Answer {
    if !profile::has(RANGES) || !profile::is_on() {
        return Ok(());
    }
    let work: Work = Arc::new(|_| Ok(()));
    stream.submit(Command::new(Engine::Stream, "mark", work).labelled(|| what))
}
