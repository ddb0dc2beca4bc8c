//! What the threads of the host do, for timelines: the calls of the interface with their times.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use super::thread;
use super::watch::{self, Watcher};

/// Calls that are kept, at most.
const MOST: usize = 1 << 20;

/// Something that a thread did.
#[derive(Clone, Debug)]
pub(crate) struct ThreadSpan {
    /// The number of the thread, from 1 on.
    pub(crate) thread: u32,
    pub(crate) what: String,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
}

/// The calls so far, and how many had no room.
#[derive(Default)]
pub(crate) struct CallSpans {
    pub(crate) spans: Vec<ThreadSpan>,
    pub(crate) lost: u64,
}

static CALLS: Mutex<CallSpans> = Mutex::new(CallSpans { spans: Vec::new(), lost: 0 });

fn calls() -> MutexGuard<'static, CallSpans> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The time of the first query: sessions that were opened a moment before it have times as well.
const ORIGIN_NS: u64 = 60_000_000_000;

/// Nanoseconds on the clock of the host.
pub(crate) fn now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let since = START.get_or_init(Instant::now).elapsed();
    ORIGIN_NS + u64::try_from(since.as_nanos()).unwrap_or(0)
}

/// The number of the calling thread, from 1 on.
pub(crate) fn thread_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    thread::with(|thread| {
        if thread.number == 0 {
            // Relaxed: the counter only makes numbers differ.
            thread.number = NEXT.fetch_add(1, Ordering::Relaxed);
        }
        thread.number
    })
}

/// A call begins: its time, where calls are recorded.
pub(crate) fn begin() -> Option<u64> {
    watch::has(Watcher::Times).then(now_ns)
}

/// A call that began then is over.
pub(crate) fn end(call: &str, start_ns: u64) {
    let thread = thread_number();
    let mut calls = calls();
    if calls.spans.len() >= MOST {
        calls.lost += 1;
        return;
    }
    let span = ThreadSpan { thread, what: call.to_owned(), start_ns, end_ns: now_ns() };
    calls.spans.push(span);
}

/// Takes the calls so far.
pub(crate) fn take() -> CallSpans {
    std::mem::take(&mut *calls())
}
