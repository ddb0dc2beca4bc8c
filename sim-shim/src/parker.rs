//! Adaptive waiting: spin, then yield, then park until rung.
//!
//! ```text
//! waiter: nothing found; state: swap PARKED -> was RUNG? go on : park         (then state = EMPTY, look again)
//! ringer: makes the work visible; state: swap RUNG -> was PARKED? unpark
//! ```
//! Both swaps are on one word, so one of them sees the other: no ring is lost between the waiter's last look
//! and its sleep.

use std::sync::OnceLock;
use std::thread::Thread;
use std::time::Duration;

use pto_abi::sync::{AtomicU32, Ordering};

const EMPTY: u32 = 0;
const RUNG: u32 = 1;
const PARKED: u32 = 2;

/// Where one OS thread waits.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Parker {
    state: AtomicU32,
    thread: OnceLock<Thread>,
}

impl Parker {
    /// The calling thread is the one that waits here.
    pub(crate) fn occupy(&self) {
        self.thread.get_or_init(std::thread::current);
    }

    /// Wakes the waiter, or keeps it from falling asleep.
    pub(crate) fn ring(&self) {
        // AcqRel: Release pairs with the Acquire half of the swap in `park`, whose thread then sees the work.
        if self.state.swap(RUNG, Ordering::AcqRel) == PARKED
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }

    /// Sleeps until rung, or for `limit`.
    pub(crate) fn park(&self, limit: Duration) {
        // AcqRel: see `ring`.
        if self.state.swap(PARKED, Ordering::AcqRel) != RUNG {
            std::thread::park_timeout(limit);
        }
        // Acquire: pairs with the Release half of the swap in `ring`.
        self.state.swap(EMPTY, Ordering::Acquire);
    }
}

/// How long a waiter spins and yields before it parks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) spins: u32,
    pub(crate) yields: u32,
}

impl Patience {
    /// For `threads` OS threads on this machine's CPUs. Where there are more threads than CPUs, a spinning
    /// waiter keeps the one from running that it waits for: it yields at once and parks soon.
    pub(crate) fn for_threads(threads: usize) -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        if threads > cpus { Self { spins: 0, yields: 2 } } else { Self { spins: 200, yields: 20 } }
    }
}

/// One waiter's way through spin, yield, park.
pub(crate) struct Backoff {
    patience: Patience,
    idle: u32,
}

impl Backoff {
    pub(crate) const fn new(patience: Patience) -> Self {
        Self { patience, idle: 0 }
    }

    /// Something was found.
    #[inline]
    pub(crate) const fn reset(&mut self) {
        self.idle = 0;
    }

    /// Nothing was found: spins or yields; `true`: it is time to park.
    pub(crate) fn is_exhausted(&mut self) -> bool {
        self.idle = self.idle.saturating_add(1);
        if self.idle <= self.patience.spins {
            std::hint::spin_loop();
            return false;
        }
        if self.idle <= self.patience.spins + self.patience.yields {
            std::thread::yield_now();
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{Backoff, Parker, Patience};
    use std::sync::Arc;
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_ring_before_the_sleep_is_not_lost() {
        let parker = Parker::default();
        parker.occupy();
        parker.ring();
        parker.park(LONG);
    }

    #[test]
    fn rings_wake_a_sleeper_every_time() {
        let parkers = Arc::new([Parker::default(), Parker::default()]);
        let other = Arc::clone(&parkers);
        let echo = std::thread::spawn(move || {
            other[1].occupy();
            for _ in 0..10_000 {
                other[1].park(LONG);
                other[0].ring();
            }
        });
        parkers[0].occupy();
        for _ in 0..10_000 {
            parkers[1].ring();
            parkers[0].park(LONG);
        }
        echo.join().unwrap();
    }

    #[test]
    fn patience_ends() {
        let mut backoff = Backoff::new(Patience { spins: 3, yields: 2 });
        let looks = (0..).take_while(|_| !backoff.is_exhausted()).count();
        assert_eq!(looks, 5);
        backoff.reset();
        assert!(!backoff.is_exhausted());
    }
}
