//! The clock of the simulated device: nanoseconds since the first look, the same on every thread.
//!
//! Where the system keeps its time by the counter of an x86 processor, this clock reads that counter itself: 10 ns instead of the 25 that the
//! system's clock takes. How long a tick is was measured at the first look. Elsewhere it is the system's clock.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// What an agent passes while it waits for the host: the host needs the CPU.
const PAUSE: Duration = Duration::from_micros(50);

static CLOCK: OnceLock<Clock> = OnceLock::new();

/// Nanoseconds since the process first asked: everything before it in the program has happened by then. In virtual time every
/// machine has a clock of its own.
#[must_use]
pub fn now_ns() -> u64 {
    counter::await_what_is_before();
    now_ns_alone()
}

/// The same, to an agent that no other thread looks at. The processor may read the counter a few instructions early, so that what
/// it computes goes on meanwhile: half of the time of a look is waiting.
#[inline]
#[must_use]
pub(crate) fn now_ns_alone() -> u64 {
    CLOCK.get_or_init(Clock::new).now_ns()
}

/// Sleeps for a while, and returns the time after it.
pub(crate) fn pause() -> u64 {
    std::thread::sleep(PAUSE);
    now_ns()
}

/// The source of the time.
enum Clock {
    Counter { origin: u64, scale: counter::Scale },
    System { origin: Instant },
}

impl Clock {
    #[cold]
    fn new() -> Self {
        match counter::measured() {
            Some(scale) => Self::Counter { origin: counter::ticks(), scale },
            None => Self::System { origin: Instant::now() },
        }
    }

    #[inline]
    fn now_ns(&self) -> u64 {
        match self {
            Self::Counter { origin, scale } => {
                scale.ns_of(counter::ticks().saturating_sub(*origin))
            }
            // 584 years fit.
            Self::System { origin } => {
                u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
            }
        }
    }
}

/// The counter of an x86 processor.
#[cfg(target_arch = "x86_64")]
mod counter {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    use std::time::{Duration, Instant};

    /// Which clock the system has found to be the best: its counter only if that is the same on all processors and never stops.
    const SYSTEM_CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    /// How long the counter is compared with the system's clock. The two are read within 50 ns of each other, so that the scale is
    /// right to 50 millionths.
    const COMPARE_FOR: Duration = Duration::from_millis(2);
    /// How often they are read together; the closest reading counts.
    const READINGS: u32 = 16;

    /// Nanoseconds of a tick, times 2^32.
    pub(super) struct Scale(u64);

    impl Scale {
        /// The scale at which so many ticks take so long.
        pub(super) fn of(ticks: u64, time: Duration) -> Option<Self> {
            let scale = (time.as_nanos() << 32).checked_div(ticks.into())?;
            u64::try_from(scale).ok().filter(|scale| *scale > 0).map(Self)
        }

        /// The time of this many ticks.
        #[inline]
        pub(super) fn ns_of(&self, ticks: u64) -> u64 {
            let ns = (u128::from(ticks) * u128::from(self.0)) >> 32;
            // A counter of 1 GHz or more runs over later than that.
            u64::try_from(ns).unwrap_or(u64::MAX)
        }
    }

    #[inline]
    pub(super) fn ticks() -> u64 {
        // SAFETY: every x86-64 processor has the instruction, and Linux lets every program use it.
        unsafe { _rdtsc() }
    }

    #[inline]
    pub(super) fn await_what_is_before() {
        // SAFETY: every x86-64 processor has the instruction, and it changes nothing.
        unsafe { _mm_lfence() };
    }

    /// How long a tick is; `None`: the system does not trust the counter.
    pub(super) fn measured() -> Option<Scale> {
        let system = std::fs::read_to_string(SYSTEM_CLOCK).ok()?;
        if system.trim() != "tsc" {
            return None;
        }
        let (first_ticks, first) = both();
        std::thread::sleep(COMPARE_FOR);
        let (last_ticks, last) = both();
        Scale::of(last_ticks.saturating_sub(first_ticks), last - first)
    }

    /// The counter and the system's clock, read together.
    fn both() -> (u64, Instant) {
        let read = || {
            await_what_is_before();
            let before = ticks();
            let now = Instant::now();
            await_what_is_before();
            let took = ticks().saturating_sub(before);
            (took, before + took / 2, now)
        };
        let mut best = read();
        for _ in 1..READINGS {
            let other = read();
            if other.0 < best.0 {
                best = other;
            }
        }
        (best.1, best.2)
    }
}

/// Other processors: the system's clock does it.
#[cfg(not(target_arch = "x86_64"))]
mod counter {
    pub(super) struct Scale;

    impl Scale {
        pub(super) fn ns_of(&self, _ticks: u64) -> u64 {
            0
        }
    }

    pub(super) fn ticks() -> u64 {
        0
    }

    pub(super) fn await_what_is_before() {}

    pub(super) fn measured() -> Option<Scale> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{now_ns, now_ns_alone};
    use std::time::Instant;

    /// The clock is the system's, but for a hundredth: the scale is measured, and a system may correct its own clock.
    #[test]
    fn the_clock_goes_as_the_systems() {
        let from = now_ns();
        let system = Instant::now();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let after = system.elapsed();
        let ns = now_ns() - from;
        assert!(u128::from(ns) * 100 > after.as_nanos() * 99, "{ns} of {after:?}");
        let outer = now_ns() - from;
        let system = system.elapsed();
        assert!(u128::from(ns) <= u128::from(outer) && outer > 0, "{outer} of {system:?}");
    }

    #[test]
    fn it_never_goes_back() {
        let mut last = now_ns_alone();
        for look in 0..100_000 {
            let now = if look % 2 == 0 { now_ns() } else { now_ns_alone() };
            assert!(now >= last, "{now} after {last}");
            last = now;
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn ticks_become_nanoseconds() {
        use super::counter::Scale;
        use std::time::Duration;
        let scale = Scale::of(3_000_000, Duration::from_millis(1)).unwrap();
        assert_eq!(scale.ns_of(0), 0);
        assert_eq!(scale.ns_of(3), 0, "rounded down");
        assert_eq!(scale.ns_of(30_000), 9_999);
        // A month of ticks.
        let month = 30 * 24 * 3600 * 1_000_000_000_u64;
        assert!(scale.ns_of(3 * month).abs_diff(month) < month / 1_000_000);
        assert!(Scale::of(0, Duration::from_millis(1)).is_none(), "the clock does not advance");
    }
}
