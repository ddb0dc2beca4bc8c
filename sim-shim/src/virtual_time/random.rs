//! The one generator of random numbers of the machine: splitmix64 (Steele, Lea and Flood 2014).

/// The next number.
#[inline]
pub(super) fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A number below `of`, from the high half of a draw.
#[inline]
pub(super) fn below(draw: u64, of: u32) -> u32 {
    // The product of two 32-bit numbers, shifted by 32, is below `of`.
    u32::try_from(((draw >> 32) * u64::from(of)) >> 32).unwrap_or(0)
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(super) struct RandomStream(u64);

impl RandomStream {
    /// The stream of a seed.
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub(super) fn word(&mut self) -> u64 {
        draw(&mut self.0)
    }

    /// A number below `of`, which is not zero.
    pub(super) fn below(&mut self, of: u32) -> u32 {
        below(draw(&mut self.0), of)
    }

    /// One of these, which are not none.
    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(u32::try_from(of.len()).unwrap_or(1)) as usize % of.len()]
    }
}
