//! Doorbells: where a thread sleeps that has nothing to do, and what those who have work for it ring. A scheduler or a core of the hosting mode `threads` sleeps here, and in a
//! pool the thread that feeds a resident firmware.
//!
//! ```text
//! sleeper: nothing found; state: swap ASLEEP -> was RUNG? go on : park       (then state: swap QUIET)
//! ringer:  makes the work visible; state: swap RUNG -> was ASLEEP? unpark
//! ```
//! Both swaps are on one word, so that one of them sees the other: no ring is lost between the sleeper's last look and its sleep, and a ring stays until it is taken.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use pto_abi::sync::{AtomicU32, Ordering};
use pto_aicpu_fw::Launch;

const QUIET: u32 = 0;
const RUNG: u32 = 1;
const ASLEEP: u32 = 2;

/// How long a feeder sleeps before its firmware returns. What takes the session's memory and places back waits for that return.
const LONGEST: Duration = Duration::from_millis(20);
/// A sleep is no longer than this part of the budgets whose watchdogs see a sleeping thread as one that is stuck.
const SLEEPS_A_BUDGET: u64 = 8;

/// See the file. One thread sleeps here at a time.
#[derive(Default)]
#[repr(align(64))]
pub struct Doorbell {
    state: AtomicU32,
    /// Who slept here last.
    sleeper: Mutex<Option<Thread>>,
}

impl Doorbell {
    /// Wakes who sleeps here, or keeps the next one from falling asleep.
    pub fn ring(&self) {
        // AcqRel: Release pairs with the Acquire half of the swaps in `sleep`, whose thread then sees the work. Acquire: with the Release half of the first of them.
        if self.state.swap(RUNG, Ordering::AcqRel) == ASLEEP
            && let Some(sleeper) = &*self.sleeper()
        {
            sleeper.unpark();
        }
    }

    /// Sleeps until rung, or for `limit`; whether it was rung.
    pub(crate) fn sleep(&self, limit: Duration) -> bool {
        self.lie_down();
        // AcqRel: see `ring`.
        let was_rung = self.state.swap(ASLEEP, Ordering::AcqRel) == RUNG;
        if !was_rung {
            let start = Instant::now();
            let left = || limit.checked_sub(start.elapsed()).filter(|left| !left.is_zero());
            // A thread may wake up for nothing, also by a ring that came too late for its last sleep.
            while self.state.load(Ordering::Relaxed) == ASLEEP
                && let Some(left) = left()
            {
                std::thread::park_timeout(left);
            }
        }
        // Acquire: pairs with the Release half of the swap in `ring`.
        let is_rung = self.state.swap(QUIET, Ordering::Acquire) == RUNG;
        was_rung || is_rung
    }

    /// The calling thread is the one to wake.
    fn lie_down(&self) {
        let me = std::thread::current();
        let mut sleeper = self.sleeper();
        if sleeper.as_ref().is_none_or(|last| last.id() != me.id()) {
            *sleeper = Some(me);
        }
    }

    fn sleeper(&self) -> MutexGuard<'_, Option<Thread>> {
        self.sleeper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long the feeder of this launch may sleep.
pub(crate) fn longest_sleep(launch: &Launch<'_>) -> Duration {
    let budget_ns = launch.budgets.task_ns.min(launch.budgets.stall_ns);
    LONGEST.min(Duration::from_nanos(budget_ns / SLEEPS_A_BUDGET))
}

#[cfg(test)]
mod tests {
    use super::Doorbell;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_ring_before_the_sleep_is_not_lost() {
        let doorbell = Doorbell::default();
        doorbell.ring();
        let start = Instant::now();
        assert!(doorbell.sleep(LONG) && start.elapsed() < LONG);
        assert!(!doorbell.sleep(Duration::from_millis(1)), "it was taken");
    }

    #[test]
    fn rings_wake_a_sleeper_every_time() {
        let doorbells = Arc::new([Doorbell::default(), Doorbell::default()]);
        let other = Arc::clone(&doorbells);
        let echo = std::thread::spawn(move || {
            for _ in 0..10_000 {
                assert!(other[1].sleep(LONG));
                other[0].ring();
            }
        });
        for _ in 0..10_000 {
            doorbells[1].ring();
            assert!(doorbells[0].sleep(LONG));
        }
        echo.join().unwrap();
    }

    #[test]
    fn another_thread_may_sleep_next() {
        let doorbell = Arc::new(Doorbell::default());
        assert!(!doorbell.sleep(Duration::from_millis(1)), "no ring comes");
        let other = Arc::clone(&doorbell);
        let sleeper = std::thread::spawn(move || other.sleep(LONG));
        std::thread::sleep(Duration::from_millis(5));
        doorbell.ring();
        assert!(sleeper.join().unwrap());
    }

    #[test]
    fn what_wakes_the_thread_for_nothing_ends_no_sleep() {
        let doorbell = Doorbell::default();
        std::thread::current().unpark();
        let (start, limit) = (Instant::now(), Duration::from_millis(20));
        assert!(!doorbell.sleep(limit) && start.elapsed() >= limit);
    }
}
