//! The generator of the random tests.

/// SplitMix64. A seed is all that a failing case needs.
#[derive(Clone)]
pub(crate) struct SplitMix64(pub(crate) u64);

impl SplitMix64 {
    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `bound`; 0 if that is 0.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        u32::try_from(self.word() % u64::from(bound.max(1))).unwrap()
    }
}
