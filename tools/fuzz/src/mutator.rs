//! Changes inputs by a seed: the same seed, the same changes.

/// Numbers at which code tends to go wrong.
const EDGES: &[u64] = &[
    0,
    1,
    2,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFF,
    0x1_0000_0000,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

/// As [`EDGES`], for formats that are text.
const EDGE_TEXTS: &[&str] = &[
    "0",
    "-1",
    "1",
    "255",
    "65536",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "99999999999999999999",
    "1e308",
    "-0",
    "null",
    "\"\"",
    "[]",
    "{}",
    "nan",
];

/// The largest input that is made.
const MOST_BYTES: usize = 1 << 16;

/// A source of changed inputs.
#[derive(Clone, Debug)]
pub struct Mutator {
    state: u64,
}

impl Mutator {
    /// Starts from `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// `input` with one to four changes; parts may come from `other`.
    #[must_use]
    pub fn mutate(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..=self.below(4) {
            self.change(&mut bytes, other);
        }
        bytes.truncate(MOST_BYTES);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        match self.below(8) {
            0 => self.flip(bytes),
            1 => self.set_edge(bytes),
            2 => self.set_number_text(bytes),
            3 => self.remove(bytes),
            4 => self.copy_within(bytes),
            5 => self.splice(bytes, other),
            6 => self.swap_lines(bytes),
            _ => bytes.truncate(self.below(bytes.len() + 1)),
        }
    }

    fn flip(&mut self, bytes: &mut [u8]) {
        if let Some(at) = self.pick_position(bytes) {
            bytes[at] ^= 1 << self.below(8);
        }
    }

    /// A number of 1, 2, 4 or 8 bytes becomes one of [`EDGES`].
    fn set_edge(&mut self, bytes: &mut [u8]) {
        let Some(at) = self.pick_position(bytes) else { return };
        let width = 1 << self.below(4);
        let number = EDGES[self.below(EDGES.len())].to_le_bytes();
        // Fields are aligned more often than not.
        let at = if self.below(4) > 0 { at - at % width } else { at };
        for (to, from) in bytes[at..].iter_mut().zip(&number[..width]) {
            *to = *from;
        }
    }

    /// A run of digits becomes one of [`EDGE_TEXTS`].
    fn set_number_text(&mut self, bytes: &mut Vec<u8>) {
        let Some(from) = self.pick_position(bytes) else { return };
        let digit = |byte: &u8| byte.is_ascii_digit();
        let Some(start) = bytes[from..].iter().position(digit).map(|at| from + at) else { return };
        let length = bytes[start..].iter().take_while(|byte| digit(byte)).count();
        let text = EDGE_TEXTS[self.below(EDGE_TEXTS.len())];
        bytes.splice(start..start + length, text.bytes());
    }

    fn remove(&mut self, bytes: &mut Vec<u8>) {
        let (start, end) = self.span(bytes.len());
        bytes.drain(start..end);
    }

    fn copy_within(&mut self, bytes: &mut Vec<u8>) {
        let (start, end) = self.span(bytes.len());
        let part = bytes[start..end].to_vec();
        let at = self.below(bytes.len() + 1);
        bytes.splice(at..at, part);
    }

    fn splice(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let (start, end) = self.span(other.len());
        let (from, to) = self.span(bytes.len());
        bytes.splice(from..to, other[start..end].iter().copied());
    }

    fn swap_lines(&mut self, bytes: &mut Vec<u8>) {
        let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        if lines.len() > 1 {
            let (a, b) = (self.below(lines.len()), self.below(lines.len()));
            lines.swap(a, b);
            *bytes = lines.concat();
        }
    }

    fn pick_position(&mut self, bytes: &[u8]) -> Option<usize> {
        (!bytes.is_empty()).then(|| self.below(bytes.len()))
    }

    /// A part of `length`, short more often than long.
    fn span(&mut self, length: usize) -> (usize, usize) {
        let start = self.below(length + 1);
        let most = (length - start).min(1 << self.below(12));
        (start, start + self.below(most + 1))
    }

    /// One of `values`.
    pub fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// A small number below `bound`, which is not 0.
    pub fn small(&mut self, bound: u16) -> u32 {
        u32::try_from(self.below(bound.into())).unwrap_or(0)
    }

    /// A number at which code tends to go wrong.
    pub fn edge(&mut self) -> u64 {
        self.one_of(EDGES)
    }

    /// A number below `bound`, which is not 0.
    #[expect(clippy::cast_possible_truncation, reason = "below `bound`, which is a usize")]
    pub fn below(&mut self, bound: usize) -> usize {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::Mutator;
    use std::collections::BTreeSet;

    #[test]
    fn a_seed_gives_the_same_inputs_and_another_one_others() {
        let of = |seed| -> Vec<_> {
            let mut mutator = Mutator::new(seed);
            (0..50).map(|_| mutator.mutate(b"one 17\ntwo 18\n", b"other")).collect()
        };
        assert_eq!(of(1), of(1));
        let both: BTreeSet<_> = of(1).into_iter().chain(of(2)).collect();
        assert!(both.len() > 80, "{}", both.len());
    }

    #[test]
    fn an_empty_input_is_no_trouble() {
        let mut mutator = Mutator::new(3);
        for _ in 0..1_000 {
            let _ = mutator.mutate(b"", b"");
        }
    }
}
