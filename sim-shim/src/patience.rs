//! How long somebody looks for work before he sleeps (`doorbell.rs`): spin, then yield. And a short spin between runs.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long a waiter spins and yields before it parks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) spins: u32,
    pub(crate) yields: u32,
}

impl Patience {
    /// Of a thread that moves transfers while it waits, which it does between two looks. The other ranks may need its CPU, so that it gives it away soon, and a
    /// sleep of 50 us takes longer than most transfers between ranks of one machine. It looks for about 300 us: with 100 looks, which MPICH answers in 60 us, ranks
    /// waited for the sleep of each other (in one of six measurements 316 us a call, where the others took 45 to 111).
    pub(crate) const FOR_TRANSFERS: Self = Self { spins: 8, yields: 400 };

    /// For `threads` OS threads on this machine's CPUs. Where there are more threads than CPUs, a spinning
    /// waiter keeps the one from running that it waits for: it yields at once and parks soon.
    pub(crate) fn for_threads(threads: usize) -> Self {
        if each_has_a_cpu(threads) {
            Self { spins: 200, yields: 20 }
        } else {
            Self { spins: 0, yields: 2 }
        }
    }
}

/// How long somebody who waits for a short run, or for the next one, looks before he goes to sleep: about what his
/// sleep would cost, because idle CPUs take 20 to 50 us to wake up.
const BETWEEN_RUNS: Duration = Duration::from_micros(50);
/// Looks between two looks at the clock.
const LOOKS_A_CLOCK: u32 = 16;

/// Looks for something that is about to happen, if each of the `threads` OS threads that are at work has a CPU of its own.
/// `None`: it has not happened.
pub(crate) fn expect_soon<T>(threads: usize, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    if !each_has_a_cpu(threads) {
        return None;
    }
    let start = Instant::now();
    while start.elapsed() < BETWEEN_RUNS {
        for _ in 0..LOOKS_A_CLOCK {
            let found = look();
            if found.is_some() {
                return found;
            }
            std::hint::spin_loop();
        }
    }
    None
}

/// Whether this process may use a CPU for each of so many threads.
pub(crate) fn each_has_a_cpu(threads: usize) -> bool {
    threads <= cpus()
}

/// CPUs that this process may use. Asked once: it costs system calls.
fn cpus() -> usize {
    static CPUS: OnceLock<usize> = OnceLock::new();
    *CPUS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// One waiter's way through spin, yield, park.
pub(crate) struct Backoff {
    patience: Patience,
    idle: u32,
}

impl Backoff {
    pub(crate) const fn new(patience: Patience) -> Self {
        Self { patience, idle: 0 }
    }

    /// Something was found.
    #[inline]
    pub(crate) const fn reset(&mut self) {
        self.idle = 0;
    }

    /// Nothing was found, and that for more than `looks` times in a row.
    pub(crate) const fn look_beyond(&mut self, looks: u32) -> bool {
        self.idle = self.idle.saturating_add(1);
        self.idle > looks
    }

    /// Nothing was found: spins or yields; `true`: it is time to park.
    pub(crate) fn wait_or_give_up(&mut self) -> bool {
        self.idle = self.idle.saturating_add(1);
        if self.idle <= self.patience.spins {
            std::hint::spin_loop();
            return false;
        }
        if self.idle <= self.patience.spins + self.patience.yields {
            std::thread::yield_now();
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{Backoff, Patience, expect_soon};

    #[test]
    fn who_expects_something_soon_finds_it_or_gives_up() {
        let mut looks = 0;
        let mut third = || {
            looks += 1;
            (looks == 3).then_some(looks)
        };
        assert_eq!(expect_soon(1, &mut third), Some(3));
        assert_eq!(expect_soon(usize::MAX, || Some(())), None, "nobody has a CPU to spare");
        assert_eq!(expect_soon(1, || None::<()>), None, "it ends");
    }

    #[test]
    fn patience_ends() {
        let mut backoff = Backoff::new(Patience { spins: 3, yields: 2 });
        let looks = (0..).take_while(|_| !backoff.wait_or_give_up()).count();
        assert_eq!(looks, 5);
        backoff.reset();
        assert!(!backoff.wait_or_give_up());
    }
}
