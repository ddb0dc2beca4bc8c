//! Work for idle threads of a pool: a busy thread gives away cores that it has rung but not stepped yet.
//!
//! ```text
//! idle thread:  hungry = 1; looks into its basket now and then
//! busy thread:  sees hungry = 1, has long kernels and more than one rung core:
//!               hungry = 0, puts half of the cores into the basket
//! ```
//! Only long kernels are worth it: the basket costs a few cache lines, 0.1 to 1 us. Whether kernels are long is
//! sampled, so that short ones pay nothing.

use pto_abi::sync::{AtomicU32, AtomicU64, Ordering};

/// From this time for one kernel on, cores are given away.
pub(crate) const LONG_KERNEL_NS: u64 = 2_000;

#[derive(Default)]
#[repr(align(64))]
struct Basket {
    hungry: AtomicU32,
    cores: [AtomicU64; 2],
}

/// One basket per OS thread.
pub(crate) struct Offers {
    baskets: Vec<Basket>,
}

impl Offers {
    pub(crate) fn new(os_threads: usize) -> Self {
        Self { baskets: (0..os_threads).map(|_| Basket::default()).collect() }
    }

    /// Thread `me` has nothing to do.
    pub(crate) fn ask(&self, me: usize) {
        if self.baskets[me].hungry.load(Ordering::Relaxed) == 0 {
            self.baskets[me].hungry.store(1, Ordering::Relaxed);
        }
    }

    /// Thread `me` has found something itself.
    pub(crate) fn decline(&self, me: usize) {
        if self.baskets[me].hungry.load(Ordering::Relaxed) == 1 {
            self.baskets[me].hungry.store(0, Ordering::Relaxed);
        }
    }

    /// Takes what thread `me` was given.
    pub(crate) fn take(&self, me: usize) -> [u64; 2] {
        let take = |word: &AtomicU64| {
            if word.load(Ordering::Relaxed) == 0 {
                return 0;
            }
            // Acquire: pairs with the Release in `give`; the cores' lines are then as the giver saw them.
            word.swap(0, Ordering::Acquire)
        };
        [take(&self.baskets[me].cores[0]), take(&self.baskets[me].cores[1])]
    }

    /// Gives about half of `cores` to a hungry thread, if there is one; returns what is left. One core is not
    /// given: its own thread is about to step it.
    pub(crate) fn give(&self, me: usize, cores: [u64; 2]) -> [u64; 2] {
        if cores[0].count_ones() + cores[1].count_ones() < 2 {
            return cores;
        }
        let others = self.baskets.iter().enumerate().filter(|(index, _)| *index != me);
        for (_, basket) in others {
            if basket.hungry.load(Ordering::Relaxed) == 0 {
                continue;
            }
            // Relaxed: the exchange only makes sure that one giver feeds this thread.
            let fed = basket.hungry.compare_exchange(1, 0, Ordering::Relaxed, Ordering::Relaxed);
            if fed.is_ok() {
                let share = upper_half(cores);
                basket.put(share);
                return [cores[0] & !share[0], cores[1] & !share[1]];
            }
        }
        cores
    }
}

impl Basket {
    fn put(&self, cores: [u64; 2]) {
        for (word, bits) in self.cores.iter().zip(cores) {
            if bits != 0 {
                // Release: pairs with the Acquire swap in `take`.
                word.fetch_or(bits, Ordering::Release);
            }
        }
    }
}

/// The upper half of the set bits; of one bit, none. The lowest bit always stays.
fn upper_half(cores: [u64; 2]) -> [u64; 2] {
    let mut rest = cores;
    for _ in 0..(cores[0].count_ones() + cores[1].count_ones()).div_ceil(2) {
        let word = usize::from(rest[0] == 0);
        rest[word] &= rest[word].wrapping_sub(1);
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::{Offers, upper_half};

    #[test]
    fn a_hungry_thread_gets_half_once() {
        let offers = Offers::new(2);
        let cores = [0b11 << 62, 0b11];
        assert_eq!(offers.give(0, cores), cores, "nobody is hungry");
        offers.ask(1);
        assert_eq!(offers.give(0, cores), [0b11 << 62, 0]);
        assert_eq!(offers.give(0, cores), cores, "it has been fed");
        assert_eq!(offers.take(1), [0, 0b11]);
        assert_eq!(offers.take(1), [0, 0]);
        offers.ask(1);
        assert_eq!(offers.give(0, [1, 0]), [1, 0], "one core stays");
        offers.decline(1);
        assert_eq!(offers.give(0, cores), cores);
    }

    #[test]
    fn halves() {
        assert_eq!(upper_half([0, 0]), [0, 0]);
        assert_eq!(upper_half([0, 1 << 63]), [0, 0]);
        assert_eq!(upper_half([0b10110, 0]), [0b10000, 0]);
        assert_eq!(upper_half([1, 1]), [0, 1]);
        assert_eq!(upper_half([u64::MAX; 2]), [0, u64::MAX]);
    }
}
