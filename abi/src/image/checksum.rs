//! The checksum of a graph image: additions only, of which a processor makes several at once.

use super::GraphHeader;

/// Bytes that are added at once.
const GROUP_BYTES: usize = 32;

/// A checksum over the parts of an image, in groups of four little-endian 64-bit words: the sum of each lane, and the
/// sum of those sums, so that the place counts as well. Any damage within one word is found. It finds damage, not malice:
/// everything it covers is checked for range as well.
#[derive(Clone, Copy, Debug)]
pub struct Checksum {
    sums: [u64; 4],
    sums_of_sums: [u64; 4],
    groups: u64,
}

impl Checksum {
    /// The checksum of nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { sums: [1, 2, 3, 4], sums_of_sums: [0; 4], groups: 0 }
    }

    /// The checksum of a part alone.
    #[must_use]
    pub fn of(part: &[u8]) -> u64 {
        let mut sum = Self::new();
        sum.add(part);
        sum.finish()
    }

    /// The checksum of what stands behind the header of an image; what is missing of a part counts as not there.
    #[must_use]
    pub fn of_image(header: &GraphHeader, body: &[u8]) -> u64 {
        let mut sum = Self::new();
        for (offset, bytes) in header.summed_parts() {
            let place = |at: u64| at.saturating_sub(size_of::<GraphHeader>() as u64);
            let clamp = |at: u64| usize::try_from(place(at)).map_or(body.len(), |at| at.min(body.len()));
            let (from, to) = (clamp(offset), clamp(offset.saturating_add(bytes)));
            sum.add(body.get(from..to).unwrap_or(&[]));
        }
        sum.finish()
    }

    /// Adds a part, or so much of one that what follows begins with a group: the last group is filled with zeros.
    #[inline]
    pub fn add(&mut self, bytes: &[u8]) {
        let (groups, rest) = bytes.as_chunks::<GROUP_BYTES>();
        for group in groups {
            self.add_group(group);
        }
        if !rest.is_empty() {
            let mut group = [0; GROUP_BYTES];
            for (to, from) in group.iter_mut().zip(rest) {
                *to = *from;
            }
            self.add_group(&group);
        }
    }

    #[inline]
    fn add_group(&mut self, group: &[u8; GROUP_BYTES]) {
        let (words, _) = group.as_chunks::<8>();
        let lanes = self.sums.iter_mut().zip(&mut self.sums_of_sums);
        for ((sum, sum_of_sums), word) in lanes.zip(words) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*word));
            *sum_of_sums = sum_of_sums.wrapping_add(*sum);
        }
        self.groups += 1;
    }

    /// The sum.
    #[must_use]
    pub fn finish(&self) -> u64 {
        let lanes = self.sums.iter().chain(&self.sums_of_sums);
        lanes.fold(self.groups, |sum, lane| {
            (sum ^ lane).wrapping_mul(0xBF58_476D_1CE4_E5B9).rotate_left(31)
        })
    }
}

impl Default for Checksum {
    fn default() -> Self {
        Self::new()
    }
}
