//! How a thread waits for the network: it gives its core to others first, and sleeps when nothing has come for a while. Ranks that spin on
//! few cores keep each other from working.

use std::thread;
use std::time::Duration;

use pto_abi::wait::{Backoff, SpinPolicy};

/// It yields the core, and does not spin.
const POLICY: SpinPolicy = SpinPolicy { spins: 0, yields: 200 };
/// The longest sleep.
const LONGEST: Duration = Duration::from_micros(500);

/// A wait in which nothing has come yet.
pub(crate) const fn backoff() -> Backoff {
    Backoff::new(POLICY)
}

/// Waits a little, longer from time to time.
pub(crate) fn pause(backoff: &mut Backoff) {
    if backoff.wait(thread::yield_now) {
        let sleep = Duration::from_micros(9 + u64::from(backoff.parks()));
        thread::sleep(sleep.min(LONGEST));
    }
}
