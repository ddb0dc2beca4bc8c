//! The clock of the simulated device: nanoseconds since the first look, the same on every thread.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// What an agent passes while it waits for the host: the host needs the CPU.
const PAUSE: Duration = Duration::from_micros(50);

/// Nanoseconds since the process first asked. In virtual time every machine has a clock of its own.
#[must_use]
pub fn now_ns() -> u64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    // 584 years fit.
    u64::try_from(ORIGIN.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The same, after a while.
pub(crate) fn pause() -> u64 {
    std::thread::sleep(PAUSE);
    now_ns()
}
