//! Numbers that repeat with their seed.

pub(crate) struct TestRng(pub(crate) u64);

impl TestRng {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.bits() % limit as u64).unwrap()
    }

    /// About normal: the sum of twelve even ones.
    pub(crate) fn normal(&mut self) -> f32 {
        let sum: f64 = (0..12).map(|_| (self.bits() >> 11) as f64 / 2f64.powi(53)).sum();
        (sum - 6.0) as f32
    }

    pub(crate) fn normals(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.normal()).collect()
    }
}
