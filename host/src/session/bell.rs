//! The bell that wakes the service. Whoever has submitted a command or finished a job rings it.
//!
//! ```text
//! ringer:  makes its news visible; state: swap RUNG -> was ASLEEP? unpark
//! service: finds nothing to do; state: swap ASLEEP -> was RUNG? look again : park
//! ```
//! Both swaps are on one word, so that one of the two sees the other: no ring is lost.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::Thread;
use std::time::Duration;

const AWAKE: u32 = 0;
const RUNG: u32 = 1;
const ASLEEP: u32 = 2;

/// The bell of one service.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct Bell {
    state: AtomicU32,
    sleeper: OnceLock<Thread>,
}

impl Bell {
    /// The calling thread is the one that sleeps here.
    pub(super) fn occupy(&self) {
        self.sleeper.get_or_init(std::thread::current);
    }

    /// Wakes the service, or keeps it from falling asleep.
    #[inline]
    pub(super) fn ring(&self) {
        // AcqRel: Release pairs with the Acquire half of the swaps in `take_ring` and `sleep`, after which the service
        // sees what was submitted.
        if self.state.swap(RUNG, Ordering::AcqRel) == ASLEEP
            && let Some(sleeper) = self.sleeper.get()
        {
            sleeper.unpark();
        }
    }

    /// Whether there was a ring since the last call of `take_ring`.
    pub(super) fn has_rung(&self) -> bool {
        self.state.load(Ordering::Relaxed) == RUNG
    }

    /// Takes a ring, if there was one since the last call.
    pub(super) fn take_ring(&self) -> bool {
        // Acquire: pairs with the Release half of the swap in `ring`.
        self.state.swap(AWAKE, Ordering::Acquire) == RUNG
    }

    /// Sleeps until rung, or for `limit`; whether it was rung.
    pub(super) fn sleep(&self, limit: Duration) -> bool {
        // AcqRel: see `ring`.
        if self.state.swap(ASLEEP, Ordering::AcqRel) != RUNG {
            std::thread::park_timeout(limit);
        }
        self.take_ring()
    }
}

#[cfg(test)]
mod tests {
    use super::Bell;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    #[test]
    fn a_ring_before_the_sleep_is_not_lost() {
        let bell = Bell::default();
        bell.occupy();
        bell.ring();
        let start = Instant::now();
        bell.sleep(Duration::from_secs(60));
        assert!(start.elapsed() < Duration::from_secs(30) && !bell.take_ring());
    }

    #[test]
    fn a_ring_wakes_a_sleeper() {
        let bell = Arc::new(Bell::default());
        let other = Arc::clone(&bell);
        let sleeper = std::thread::spawn(move || {
            other.occupy();
            other.sleep(Duration::from_secs(60));
        });
        std::thread::sleep(Duration::from_millis(5));
        bell.ring();
        sleeper.join().unwrap();
    }
}
