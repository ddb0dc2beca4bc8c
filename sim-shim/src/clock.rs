//! The clock of the simulated device: nanoseconds since the first look, the same on every thread.

use std::sync::OnceLock;
use std::time::Instant;

/// Nanoseconds since the process first asked.
pub(crate) fn now_ns() -> u64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    // 584 years fit.
    u64::try_from(ORIGIN.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}
