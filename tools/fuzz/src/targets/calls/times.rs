//! What calls cost.

use std::time::Duration;

/// The CPU time that processes took which this one started, and which have ended.
#[must_use]
pub fn time_of_children() -> Duration {
    // SAFETY: zeros are such a record.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the result pointer is valid for writes.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let of = |time: libc::timeval| {
        let part = |number: i64| u64::try_from(number).unwrap_or(0);
        Duration::from_secs(part(time.tv_sec)) + Duration::from_micros(part(time.tv_usec))
    };
    of(usage.ru_utime) + of(usage.ru_stime)
}
