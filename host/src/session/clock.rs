//! The clock of a session: this machine's, or that of the runs in virtual time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time since the session was opened.
pub(super) enum SessionClock {
    /// This machine's time.
    Wall(Instant),
    /// The time of the runs and copies so far, in nanoseconds. Functions of the host take none.
    Virtual(AtomicU64),
}

impl SessionClock {
    pub(super) fn new(is_virtual: bool) -> Self {
        if is_virtual { Self::Virtual(AtomicU64::new(0)) } else { Self::Wall(Instant::now()) }
    }

    /// Now.
    pub(super) fn now_ns(&self) -> u64 {
        match self {
            Self::Wall(start) => u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX),
            Self::Virtual(now) => now.load(Ordering::Relaxed),
        }
    }

    /// Advances the clock: no event happens before this time.
    pub(super) fn advance_to(&self, time_ns: u64) {
        if let Self::Virtual(now) = self {
            now.fetch_max(time_ns, Ordering::Relaxed);
        }
    }

    /// A run has taken so long.
    pub(super) fn advance(&self, makespan: Duration) {
        if let Self::Virtual(now) = self {
            let makespan = u64::try_from(makespan.as_nanos()).unwrap_or(u64::MAX);
            now.fetch_add(makespan, Ordering::Relaxed);
        }
    }
}
