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
    pub(crate) fn take(&self, me: usize) -> u128 {
        let [low, high] = &self.baskets[me].cores;
        let take = |word: &AtomicU64| {
            if word.load(Ordering::Relaxed) == 0 {
                return 0;
            }
            // Acquire: pairs with the Release in `give`; the cores' lines are then as the giver saw them.
            u128::from(word.swap(0, Ordering::Acquire))
        };
        take(low) | take(high) << 64
    }

    /// Gives about half of `cores` to a hungry thread, if there is one; returns what is left.
    pub(crate) fn give(&self, me: usize, cores: u128) -> u128 {
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
                return cores & !share;
            }
        }
        cores
    }
}

impl Basket {
    fn put(&self, cores: u128) {
        let [low, high] = &self.cores;
        for (word, bits) in [(low, cores & u128::from(u64::MAX)), (high, cores >> 64)] {
            if let Ok(bits @ 1..) = u64::try_from(bits) {
                // Release: pairs with the Acquire swap in `take`.
                word.fetch_or(bits, Ordering::Release);
            }
        }
    }
}

/// The upper half of the set bits; one of a single bit is none.
fn upper_half(cores: u128) -> u128 {
    let mut lower = 0;
    let mut rest = cores;
    for _ in 0..cores.count_ones().div_ceil(2) {
        lower |= rest & rest.wrapping_neg();
        rest &= rest - 1;
    }
    cores & !lower
}

#[cfg(test)]
mod tests {
    use super::{Offers, upper_half};

    #[test]
    fn a_hungry_thread_gets_half_once() {
        let offers = Offers::new(2);
        let cores = 0b1111 << 62;
        assert_eq!(offers.give(0, cores), cores, "nobody is hungry");
        offers.ask(1);
        assert_eq!(offers.give(0, cores), 0b11 << 62);
        assert_eq!(offers.give(0, 0b11), 0b11, "it has been fed");
        assert_eq!(offers.take(1), 0b11 << 64);
        assert_eq!(offers.take(1), 0);
        offers.ask(1);
        offers.decline(1);
        assert_eq!(offers.give(0, cores), cores);
    }

    #[test]
    fn halves() {
        assert_eq!(upper_half(0), 0);
        assert_eq!(upper_half(1 << 127), 0);
        assert_eq!(upper_half(0b10110), 0b10000);
        assert_eq!(upper_half(u128::MAX), u128::MAX << 64);
    }
}
