//! Estimates how long kernels are, and from which length on a handoff to another thread pays: by the time of this machine for a cache line that
//! travels between two of its CPUs and back, and for a clock read.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pto_abi::sync::{AtomicU32, Ordering};

use super::cpus::{current_cpu, leave};
use crate::clock;
use crate::wait::each_has_a_cpu;

/// Kernels from one that is timed to the next, while they are short: twice as many after each sample, so that the cost of a sample is small against that of
/// them, and soon the first number again when they are longer.
const SHORT_SAMPLE_PERIOD: u32 = 64;
const MAX_SAMPLE_PERIOD: u32 = 512;
/// Kernels from one that is timed to the next, while they are of medium length.
const MEDIUM_SAMPLE_PERIOD: u32 = 32;

/// The time for the handshake lines of a core, which a sample includes.
const HANDSHAKE_NS: u64 = 25;
/// A kernel is long from so many round trips of a cache line on: then the thread that runs it leaves the schedulers to another one. Passing them on costs less; but a chain of kernels of
/// 2.5 us then takes 1.3 times as long as with one thread, with 24 trips of 80 ns, and as long with 8 us (docs/measurements/pool.md).
const LONG_KERNEL_ROUND_TRIPS: u64 = 80;
/// A round trip is clamped to this range: lines of several handoffs travel together.
const ROUND_TRIP_RANGE_NS: [u64; 2] = [40, 250];
/// A round trip that took longer is not valid: both threads had one CPU.
const MAX_ROUND_TRIP_NS: u64 = 2_000;
/// The round trip where it cannot be measured: the CPUs are busy, or there is one.
const DEFAULT_ROUND_TRIP_NS: u64 = 60;

/// Limits for the time of one kernel, with the clock read and the handshake lines included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DurationLimits {
    /// Handing a core to another thread may gain more than it costs.
    pub(super) medium_ns: u64,
    /// A thread that runs a kernel does not schedule, and another one may.
    pub(super) long_ns: u64,
}

impl DurationLimits {
    /// The limits of a usual machine, for a pool of one thread, which hands nothing off.
    pub(super) const DEFAULT: Self = Self::of(DEFAULT_ROUND_TRIP_NS, 25);

    /// The limits of a machine with these times.
    const fn of(trip_ns: u64, clock_read_ns: u64) -> Self {
        let long_ns = LONG_KERNEL_ROUND_TRIPS * trip_ns;
        Self { medium_ns: clock_read_ns + HANDSHAKE_NS + trip_ns / 2, long_ns }
    }

    /// Of this machine, measured when the first pool of several threads opens.
    pub(super) fn of_this_machine() -> Self {
        static LIMITS: OnceLock<DurationLimits> = OnceLock::new();
        *LIMITS.get_or_init(|| {
            let trip_ns = round_trip_ns().filter(|trip_ns| *trip_ns <= MAX_ROUND_TRIP_NS);
            Self::of(
                trip_ns
                    .unwrap_or(DEFAULT_ROUND_TRIP_NS)
                    .clamp(ROUND_TRIP_RANGE_NS[0], ROUND_TRIP_RANGE_NS[1]),
                clock_read_ns(),
            )
        })
    }
}

/// The time of a clock read: the least of a few.
fn clock_read_ns() -> u64 {
    let read = |_| {
        let start_ns = clock::now_ns();
        clock::now_ns() - start_ns
    };
    (0..64).map(read).min().unwrap_or(0)
}

/// A word in a line of its own.
#[derive(Default)]
#[repr(align(128))]
struct PaddedWord(AtomicU32);

/// Batches of round trips, and how many one has.
const BATCHES: u32 = 16;
const ROUND_TRIPS_PER_BATCH: u32 = 32;
/// A measurement that takes longer is given up: other threads have the CPUs.
const TIMEOUT: Duration = Duration::from_millis(4);
/// Polls of a line between two clock reads.
const POLLS_PER_CLOCK_READ: u32 = 1024;

/// The round trip of a line between two CPUs: the least of a few batches. `None`: it cannot be measured now.
fn round_trip_ns() -> Option<u64> {
    if !each_has_a_cpu(2) {
        return None;
    }
    let (asked, answered) = (PaddedWord::default(), PaddedWord::default());
    let (here, end) = (current_cpu(), Instant::now() + TIMEOUT);
    std::thread::scope(|scope| {
        let named = std::thread::Builder::new().name("pto-pool-trip".to_owned());
        let answer = || {
            leave(here.into_iter());
            for number in 1..=BATCHES * ROUND_TRIPS_PER_BATCH {
                if !comes(&asked, number, end) {
                    return;
                }
                // Release: pairs with the Acquire load in `comes`.
                answered.0.store(number, Ordering::Release);
            }
        };
        named.spawn_scoped(scope, answer).ok()?;
        let mut least = None;
        for batch in 0..BATCHES {
            let start = Instant::now();
            for number in 1..=ROUND_TRIPS_PER_BATCH {
                let number = batch * ROUND_TRIPS_PER_BATCH + number;
                // Release: pairs with the Acquire load in `comes`.
                asked.0.store(number, Ordering::Release);
                if !comes(&answered, number, end) {
                    return least;
                }
            }
            let ns = u64::try_from((start.elapsed() / ROUND_TRIPS_PER_BATCH).as_nanos()).ok()?;
            least = Some(least.map_or(ns, |least: u64| least.min(ns)));
        }
        least
    })
}

/// Waits until the number is in the line; `false`: it does not come in time.
fn comes(line: &PaddedWord, number: u32, end: Instant) -> bool {
    loop {
        for _ in 0..POLLS_PER_CLOCK_READ {
            // Acquire: pairs with the Release stores in `round_trip_ns`.
            if line.0.load(Ordering::Acquire) >= number {
                return true;
            }
            std::hint::spin_loop();
        }
        if Instant::now() > end {
            return false;
        }
    }
}

/// How long the kernels of a run were, for the next run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DurationClass {
    /// Too few kernels were timed.
    Unknown,
    /// They are too short for a handoff.
    Short,
    /// They are long enough for a handoff.
    Long,
}

/// A moving mean of the time of kernels. In a cache line of its own, which all threads read; while kernels are
/// short, one writes it now and then.
#[repr(align(64))]
pub(super) struct DurationEstimator {
    mean_ns: AtomicU32,
    last_ns: AtomicU32,
    /// Kernels from the last sample to the next one, while they are short.
    interval: AtomicU32,
    limits: DurationLimits,
}

impl DurationEstimator {
    pub(super) const fn new(limits: DurationLimits) -> Self {
        let (mean_ns, last_ns) = (AtomicU32::new(0), AtomicU32::new(0));
        Self { mean_ns, last_ns, interval: AtomicU32::new(0), limits }
    }

    #[inline]
    pub(super) fn mean_ns(&self) -> u64 {
        self.mean_ns.load(Ordering::Relaxed).into()
    }

    /// Whether handing a core to another thread may gain more than it costs.
    #[inline]
    pub(super) fn is_medium(&self) -> bool {
        self.would_be_medium(self.mean_ns())
    }

    /// Whether handing over tasks that take so long would be worth it.
    pub(super) const fn would_be_medium(&self, took_ns: u64) -> bool {
        took_ns >= self.limits.medium_ns
    }

    /// How many kernels take about so long, at least one. One while fewer than two of them were timed.
    pub(super) fn within(&self, ns: u64) -> u32 {
        let count = ns.checked_div(self.mean_ns()).unwrap_or(1).max(1);
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Whether the last two that were timed were short, and so is the mean.
    pub(super) fn are_short(&self) -> bool {
        self.interval.load(Ordering::Relaxed) > SHORT_SAMPLE_PERIOD && !self.is_medium()
    }

    /// How long the kernels are, as far as they were timed.
    pub(super) fn duration_class(&self) -> DurationClass {
        if self.is_medium() {
            DurationClass::Long
        } else if self.are_short() {
            DurationClass::Short
        } else {
            DurationClass::Unknown
        }
    }

    /// Whether threads take turns at scheduling.
    #[inline]
    pub(super) fn is_long(&self) -> bool {
        self.mean_ns() >= self.limits.long_ns
    }

    /// One more kernel was timed; after how many of them the thread looks again. Of two that follow each other the shorter
    /// one counts: the other may have been interrupted. The second one is timed at once.
    pub(super) fn add(&self, took_ns: u64) -> u32 {
        // A kernel counts as no longer than this: it may have been the operating system's pause.
        let took_ns = took_ns.min(8 * self.limits.long_ns);
        // Relaxed, and not one operation: of two threads that add at once, one may count for nothing.
        let took = u32::try_from(took_ns).unwrap_or(u32::MAX);
        let shorter_ns = took.min(self.last_ns.swap(took, Ordering::Relaxed));
        let mean_ns = (3 * self.mean_ns() + u64::from(shorter_ns)) / 4;
        self.mean_ns.store(u32::try_from(mean_ns).unwrap_or(u32::MAX), Ordering::Relaxed);
        let before = self.interval.load(Ordering::Relaxed);
        let interval = if took_ns >= self.limits.long_ns {
            1
        } else if took_ns >= self.limits.medium_ns {
            MEDIUM_SAMPLE_PERIOD
        } else if before == 0 {
            1
        } else {
            (2 * before).clamp(SHORT_SAMPLE_PERIOD, MAX_SAMPLE_PERIOD)
        };
        self.interval.store(interval, Ordering::Relaxed);
        interval
    }
}

#[cfg(test)]
mod tests {
    use super::{
        DurationClass, DurationEstimator, DurationLimits, MAX_SAMPLE_PERIOD, SHORT_SAMPLE_PERIOD,
    };

    const LIMITS: DurationLimits = DurationLimits { medium_ns: 100, long_ns: 2_000 };

    #[test]
    fn long_kernels_are_seen_at_the_second_and_a_pause_is_none() {
        let kernels = DurationEstimator::new(LIMITS);
        assert_eq!((kernels.add(40), kernels.within(1_000)), (1, 1));
        assert_eq!((kernels.add(40), kernels.within(1_000)), (SHORT_SAMPLE_PERIOD, 100));
        assert!(!kernels.is_medium() && !kernels.are_short(), "they are known too little");
        assert_eq!(kernels.duration_class(), DurationClass::Unknown);
        assert_eq!(kernels.add(4_000_000), 1, "the next one is looked at as well");
        assert_eq!(kernels.add(40), SHORT_SAMPLE_PERIOD);
        assert!(!kernels.is_medium(), "it was a pause");
        kernels.add(4_000_000);
        kernels.add(4_000_000);
        assert!(kernels.is_long(), "two of them are not");
        assert_eq!(kernels.duration_class(), DurationClass::Long);
    }

    #[test]
    fn medium_kernels_are_shared_and_do_not_move_the_role() {
        let kernels = DurationEstimator::new(LIMITS);
        for _ in 0..20 {
            kernels.add(200);
        }
        assert!(kernels.is_medium() && !kernels.is_long());
        for _ in 0..20 {
            kernels.add(2_010);
        }
        assert!(kernels.is_long());
    }

    #[test]
    fn looks_become_rare_while_kernels_are_short() {
        let kernels = DurationEstimator::new(LIMITS);
        let looks: Vec<u32> = (0..6).map(|_| kernels.add(40)).collect();
        assert_eq!(looks, [1, 64, 128, 256, 512, MAX_SAMPLE_PERIOD]);
        assert_eq!(kernels.add(150), 32);
        assert!(!kernels.are_short(), "one of the last two was not");
        assert_eq!(kernels.add(40), SHORT_SAMPLE_PERIOD);
        assert!(!kernels.are_short());
        kernels.add(40);
        assert!(kernels.are_short(), "they are short again");
        assert_eq!(kernels.duration_class(), DurationClass::Short);
    }

    #[test]
    fn limits_follow_the_machine() {
        let (near, far) = (DurationLimits::of(60, 25), DurationLimits::of(200, 25));
        assert_eq!((near.medium_ns, near.long_ns), (80, 4_800));
        assert_eq!((far.medium_ns, far.long_ns), (150, 16_000));
        let here = DurationLimits::of_this_machine();
        assert!(here.medium_ns < here.long_ns, "{here:?}");
        assert_eq!(here, DurationLimits::of_this_machine(), "it is measured once");
    }
}
