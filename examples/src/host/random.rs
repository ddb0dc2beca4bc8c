//! Random inputs that a seed decides: the same on every machine, and one stream for each name.

use std::vec::Vec;

use pto_abi::symbol::extend;

/// splitmix64 (Steele, Lea and Flood 2014): small, fast, and good enough for inputs.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// The stream of `name` under `seed`.
    #[must_use]
    pub const fn new(seed: u64, name: &str) -> Self {
        Self { state: extend(extend(0xCBF2_9CE4_8422_2325, &seed.to_le_bytes()), name.as_bytes()) }
    }

    /// 64 random bits.
    #[inline]
    pub const fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = self.state;
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not zero. Biased by less than `bound / 2^64`.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.bits() as u128 * bound as u128) >> 64) as u64
    }

    /// A number in [-1, 1), a multiple of 2^-23: each is an `f32`.
    #[inline]
    pub const fn unit(&mut self) -> f32 {
        ((self.bits() >> 40) as u32) as f32 * (1.0 / 8_388_608.0) - 1.0
    }

    /// `count` numbers in [-1, 1).
    #[must_use]
    pub fn units(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.unit()).collect()
    }

    /// Puts `items` into a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = super::job::index(self.below(last as u64 + 1));
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;
    use std::vec::Vec;

    #[test]
    fn streams_are_reproducible_and_differ_by_seed_and_name() {
        let bits = |seed, name| Rng::new(seed, name).bits();
        assert_eq!(bits(1, "q"), bits(1, "q"));
        assert_ne!(bits(1, "q"), bits(2, "q"));
        assert_ne!(bits(1, "q"), bits(1, "k"));
    }

    #[test]
    fn numbers_keep_their_ranges() {
        let mut random = Rng::new(3, "");
        for bound in [1, 2, 7, 1 << 40] {
            assert!((0..1000).all(|_| random.below(bound) < bound));
        }
        let units = random.units(1000);
        assert!(units.iter().all(|x| (-1.0..1.0).contains(x)));
        assert!(units.iter().any(|x| *x < -0.9) && units.iter().any(|x| *x > 0.9));
    }

    #[test]
    fn a_shuffle_keeps_the_items() {
        let mut items: Vec<u32> = (0..100).collect();
        Rng::new(5, "").shuffle(&mut items);
        assert!(items.windows(2).any(|pair| pair[0] > pair[1]));
        items.sort_unstable();
        assert!(items.iter().copied().eq(0..100));
    }
}
