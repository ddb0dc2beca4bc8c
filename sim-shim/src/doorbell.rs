//! The doorbell of a resident firmware: where the thread that feeds it sleeps while there is nothing to do, and what those who submit ring.
//!
//! ```text
//! feeder:    tells the board that nobody looks at it; sleep: was rung? go on : wait       (aicpu-fw, `resident`)
//! submitter: makes the command visible; sees that nobody looks; ring
//! ```
//! A ring stays until it is taken, so that none is lost between the feeder's last look and its sleep.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use pto_aicpu_fw::Launch;

/// How long a feeder sleeps before its firmware returns. What takes the session's memory and places back waits for that return.
const LONGEST: Duration = Duration::from_millis(20);
/// A sleep is no longer than this part of the budgets whose watchdogs see a sleeping thread as one that is stuck.
const SLEEPS_A_BUDGET: u64 = 8;

/// See the file.
#[derive(Default)]
pub struct Doorbell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Doorbell {
    /// Wakes who sleeps here, or keeps the next one from falling asleep.
    pub fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }

    /// Sleeps until rung, or for `limit`; whether it was rung.
    pub(crate) fn sleep(&self, limit: Duration) -> bool {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let woken = self.changed.wait_timeout_while(rung, limit, |rung| !*rung);
        let mut rung = woken.unwrap_or_else(PoisonError::into_inner).0;
        std::mem::take(&mut *rung)
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
    fn a_ring_wakes_a_sleeper() {
        let doorbell = Arc::new(Doorbell::default());
        let other = Arc::clone(&doorbell);
        let sleeper = std::thread::spawn(move || other.sleep(LONG));
        std::thread::sleep(Duration::from_millis(5));
        doorbell.ring();
        assert!(sleeper.join().unwrap());
    }
}
