//! Who watches the calls: the validation layer, the log, faults that a user asks for, a record of the calls. Most programs have none of
//! them, and one load says so.

use std::sync::atomic::{AtomicU32, Ordering};

use super::{calls, checks, faults, log};

/// A watcher of calls.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Watcher {
    /// What the environment asks for: the validation layer, the log, faults, a record of the calls.
    Environment = 1,
    /// Log the calls of each thread, with their times.
    Times = 2,
}

/// The environment has not been read yet.
const UNKNOWN: u32 = 1 << 31;

static WATCHERS: AtomicU32 = AtomicU32::new(UNKNOWN);

/// Whether there is any watcher.
#[inline]
pub(crate) fn is_watched() -> bool {
    // Relaxed: a call that has begun may miss a watcher that comes.
    WATCHERS.load(Ordering::Relaxed) != 0
}

/// Whether this one watches.
#[inline]
pub(crate) fn has(watcher: Watcher) -> bool {
    WATCHERS.load(Ordering::Relaxed) & watcher as u32 != 0
}

/// A watcher comes.
pub(crate) fn add(watcher: Watcher) {
    // Relaxed: as for `is_watched`.
    WATCHERS.fetch_or(watcher as u32, Ordering::Relaxed);
}

/// A watcher goes.
pub(crate) fn remove(watcher: Watcher) {
    // Relaxed: as for `is_watched`.
    WATCHERS.fetch_and(!(watcher as u32), Ordering::Relaxed);
}

/// Looks at the environment, once.
pub(crate) fn look_at_environment() {
    if WATCHERS.load(Ordering::Relaxed) & UNKNOWN == 0 {
        return;
    }
    if checks::is_on() || log::is_on() || faults::are_asked_for() || calls::are_recorded() {
        add(Watcher::Environment);
    }
    // Relaxed: a thread that looks at the same moment finds the same.
    WATCHERS.fetch_and(!UNKNOWN, Ordering::Relaxed);
}
