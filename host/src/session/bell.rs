//! The bell that wakes the service. A thread that has submitted a command or finished a job rings it.
//!
//! ```text
//! ringer:  publishes its change; state: swap RINGING -> was ASLEEP? unpark
//! service: finds nothing to do; state: swap ASLEEP -> was RINGING? look again : park
//! ```
//! Both swaps are on one word, so that one of the two sees the other: no ring is lost.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::Thread;
use std::time::Duration;

const AWAKE: u32 = 0;
const RINGING: u32 = 1;
const ASLEEP: u32 = 2;

/// The bell of one service.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct Bell {
    state: AtomicU32,
    sleeper: OnceLock<Thread>,
}

impl Bell {
    /// The calling thread is the one that the bell wakes.
    pub(super) fn occupy(&self) {
        self.sleeper.get_or_init(std::thread::current);
    }

    /// Wakes the service, or keeps it from going to sleep.
    #[inline]
    pub(super) fn ring(&self) {
        // AcqRel: Release pairs with the Acquire half of the swaps in `take_ring` and `sleep`, after which the service
        // sees what was submitted.
        if self.state.swap(RINGING, Ordering::AcqRel) == ASLEEP
            && let Some(sleeper) = self.sleeper.get()
        {
            sleeper.unpark();
        }
    }

    /// Whether the bell rang since the last call of `take_ring`.
    pub(super) fn is_ringing(&self) -> bool {
        self.state.load(Ordering::Relaxed) == RINGING
    }

    /// Clears the bell; whether it rang since the last call.
    pub(super) fn take_ring(&self) -> bool {
        // Acquire: pairs with the Release half of the swap in `ring`.
        self.state.swap(AWAKE, Ordering::Acquire) == RINGING
    }

    /// Sleeps until the bell rings, or for `limit`; whether it rang.
    pub(super) fn sleep(&self, limit: Duration) -> bool {
        // AcqRel: see `ring`.
        if self.state.swap(ASLEEP, Ordering::AcqRel) != RINGING {
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
