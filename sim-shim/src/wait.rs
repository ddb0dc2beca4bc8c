//! How long the threads of the simulator wait before they park (`doorbell.rs`), and a short spin between runs. The way itself is [`pto_abi::wait`].

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pto_abi::wait::{SpinPolicy, spin_while};

/// Of a thread that moves transfers while it waits, which it does between two looks. The other ranks may need its CPU, so that it gives it away soon, and a
/// sleep of 50 us takes longer than most transfers between ranks of one machine. It looks for about 300 us: with 100 looks, which MPICH answers in 60 us, ranks
/// waited for the sleep of each other (in one of six measurements 316 us a call, where the others took 45 to 111).
pub(crate) const FOR_TRANSFERS: SpinPolicy = SpinPolicy { spins: 8, yields: 400 };

/// For `threads` OS threads on this machine's CPUs. Where there are more threads than CPUs, a spinning
/// waiter keeps the one from running that it waits for: it yields at once and parks soon.
pub(crate) fn policy_for(threads: usize) -> SpinPolicy {
    if each_has_a_cpu(threads) {
        SpinPolicy { spins: 200, yields: 20 }
    } else {
        SpinPolicy { spins: 0, yields: 2 }
    }
}

/// How long a thread that waits for a short run, or for the next one, looks before it parks: about what its
/// sleep would cost, because idle CPUs take 20 to 50 us to wake up.
const BETWEEN_RUNS: Duration = Duration::from_micros(50);

/// Looks for something that is about to happen, if each of the `threads` OS threads that are at work has a CPU of its own.
/// `None`: it has not happened.
pub(crate) fn expect_soon<T>(threads: usize, look: impl FnMut() -> Option<T>) -> Option<T> {
    if !each_has_a_cpu(threads) {
        return None;
    }
    let start = Instant::now();
    spin_while(|| start.elapsed() < BETWEEN_RUNS, look)
}

/// Whether this process may use a CPU for each of this many threads.
pub(crate) fn each_has_a_cpu(threads: usize) -> bool {
    threads <= cpus()
}

/// CPUs that this process may use. Asked once: it costs system calls.
fn cpus() -> usize {
    static CPUS: OnceLock<usize> = OnceLock::new();
    *CPUS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

#[cfg(test)]
mod tests {
    use super::expect_soon;

    #[test]
    fn what_is_expected_soon_is_found_or_given_up() {
        assert_eq!(expect_soon(1, || Some(3)), Some(3));
        assert_eq!(expect_soon(usize::MAX, || Some(())), None, "there is no CPU to spare");
        assert_eq!(expect_soon(1, || None::<()>), None, "it ends");
    }
}
