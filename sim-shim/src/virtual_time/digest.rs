//! Many values as one number: states of a search, and keys of the machine's own maps.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map of the machine. Its keys come from the machine alone, so that it needs no hash that is hard to guess.
pub(super) type Keyed<K, V> = HashMap<K, V, BuildHasherDefault<Digest>>;

/// 128 bits of a state: two lanes of multiplication with different odd factors (the first digits of the golden ratio and of the
/// square root of two). A million states have one chance in 2^89 to collide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Digest([u64; 2]);

impl Digest {
    pub(super) const fn new() -> Self {
        Self([1, 2])
    }

    /// The number.
    pub(super) fn number(self) -> u128 {
        let [low, high] = self.halves();
        u128::from(low) | u128::from(high) << 64
    }

    fn halves(self) -> [u64; 2] {
        self.0.map(|lane| {
            let lane = (lane ^ lane >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
            lane ^ lane >> 32
        })
    }

    #[inline]
    fn mix(&mut self, word: u64) {
        let [low, high] = &mut self.0;
        *low = folded(*low ^ word, 0x9E37_79B9_7F4A_7C15).wrapping_add(1);
        *high = folded(*high ^ word, 0x6A09_E667_F3BC_C909).wrapping_add(1);
    }
}

/// Both halves of a product on each other: every bit of a factor changes bits everywhere.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the halves of a product")]
fn folded(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    product as u64 ^ (product >> 64) as u64
}

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

impl Hasher for Digest {
    fn finish(&self) -> u64 {
        let [low, _] = self.halves();
        low
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.mix(u64::from_le_bytes(last));
        }
        self.mix(bytes.len() as u64);
    }

    fn write_u8(&mut self, word: u8) {
        self.mix(word.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.mix(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.mix(word as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;
    use std::collections::HashSet;
    use std::hash::{Hash, Hasher};

    #[test]
    fn what_differs_in_a_bit_or_in_its_place_differs() {
        let number = |value: &[u8]| {
            let mut digest = Digest::new();
            value.hash(&mut digest);
            digest.number()
        };
        let mut seen = HashSet::new();
        for at in 0..200 {
            for bit in 0..8 {
                let mut bytes = [0; 200];
                bytes[at] = 1 << bit;
                assert!(seen.insert(number(&bytes)), "byte {at}, bit {bit}");
            }
        }
        assert!((0..200).all(|len| seen.insert(number(&[0; 200][..len]))), "the length counts");
        let halves: HashSet<u64> = seen.iter().map(|number| (number >> 64) as u64).collect();
        assert_eq!(halves.len(), seen.len());
        assert_ne!(Digest::new().finish(), 0);
    }
}
