//! The checksum of a graph image: two additions a word.

/// A checksum over little-endian 64-bit words: their sum, and the sum of the sums so far, so that a word's position counts as
/// well. Any damage within one word is found. It finds damage, not malice: everything it covers is checked for range as well.
#[derive(Clone, Copy, Debug)]
pub struct Checksum {
    sum: u64,
    sum_of_sums: u64,
}

impl Checksum {
    /// The checksum of nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { sum: 1, sum_of_sums: 0 }
    }

    /// The checksum of `bytes`, the last word filled with zeros.
    #[must_use]
    pub fn of(bytes: &[u8]) -> u64 {
        let mut sum = Self::new();
        sum.add_bytes(bytes);
        sum.finish()
    }

    /// Adds one word.
    #[inline]
    pub const fn add(&mut self, word: u64) {
        self.sum = self.sum.wrapping_add(word);
        self.sum_of_sums = self.sum_of_sums.wrapping_add(self.sum);
    }

    /// Adds words, the last one filled with zeros.
    #[inline]
    pub fn add_bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            for (to, from) in word.iter_mut().zip(rest) {
                *to = *from;
            }
            self.add(u64::from_le_bytes(word));
        }
    }

    /// The sum.
    #[must_use]
    pub const fn finish(&self) -> u64 {
        self.sum.rotate_left(32) ^ self.sum_of_sums.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

impl Default for Checksum {
    fn default() -> Self {
        Self::new()
    }
}
