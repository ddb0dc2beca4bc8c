//! Limits that programs set: cores of devices, and times of operators and of waits.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest time of an operator.
pub(crate) const LONGEST: Duration = Duration::from_secs(547);
/// Times of operators are multiples of this.
pub(crate) const STEP: Duration = Duration::from_millis(1);

/// The limits of cores that are set on devices.
static CORES: Mutex<BTreeMap<i32, [Option<u32>; 2]>> = Mutex::new(BTreeMap::new());
/// How long an operator may take, in microseconds.
static OPERATOR_US: AtomicU64 = AtomicU64::new(LONGEST.as_secs() * 1_000_000);
/// How long a stream waits for an event where the call names no limit, in seconds; 0: for ever.
static WAIT_S: AtomicU32 = AtomicU32::new(0);

/// How many cores of a kind a program allows on a device; `None`: all.
pub(crate) fn cores(device: i32, kind: usize) -> Option<u32> {
    table().get(&device).and_then(|limits| limits[kind])
}

/// Allows this many cores of a kind.
pub(crate) fn set_cores(device: i32, kind: usize, value: u32) {
    table().entry(device).or_default()[kind] = Some(value);
}

/// Allows all cores of a device again.
pub(crate) fn reset_cores(device: i32) {
    table().remove(&device);
}

fn table() -> MutexGuard<'static, BTreeMap<i32, [Option<u32>; 2]>> {
    CORES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Limits operators that begin from here on; zero asks for the longest time. The time that holds now: rounded up, and at most the longest.
pub(crate) fn set_operator_time(wanted: Duration) -> Duration {
    let wanted = if wanted.is_zero() { LONGEST } else { wanted.min(LONGEST) };
    let steps = wanted.as_nanos().div_ceil(STEP.as_nanos());
    let held = STEP * u32::try_from(steps).unwrap_or(u32::MAX);
    // Relaxed: a thread that launches afterwards has synchronised with this one, or does not know the order.
    OPERATOR_US.store(u64::try_from(held.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    held
}

/// How long an operator may take, in microseconds.
pub(crate) fn operator_us() -> u64 {
    // Relaxed: as for the store.
    OPERATOR_US.load(Ordering::Relaxed)
}

/// Limits waits for events that name no limit, in seconds; 0: they have none.
pub(crate) fn set_wait_seconds(seconds: u32) {
    // Relaxed: as for operators.
    WAIT_S.store(seconds, Ordering::Relaxed);
}

/// The limit of such waits in seconds; 0: none.
pub(crate) fn wait_seconds() -> u32 {
    // Relaxed: as for operators.
    WAIT_S.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, set_operator_time};
    use std::time::Duration;

    #[test]
    fn times_of_operators_are_whole_milliseconds_up_to_the_longest() {
        let ms = Duration::from_millis;
        for (wanted, held) in [
            (Duration::ZERO, LONGEST),
            (Duration::from_micros(1), ms(1)),
            (Duration::from_micros(5001), ms(6)),
            (ms(45_000), ms(45_000)),
            (Duration::from_secs(10_000), LONGEST),
        ] {
            assert_eq!(set_operator_time(wanted), held, "{wanted:?}");
        }
        set_operator_time(Duration::ZERO);
    }
}
