//! Interprets bytes as a sequence of choices, for targets that make calls instead of reading files. After the last byte every choice is 0.

use crate::Mutator;

/// What is left of the bytes.
pub(crate) struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// One of `values`.
    pub(crate) fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[usize::from(self.byte()) % values.len()]
    }

    /// Mostly a small number; sometimes one at an edge of 32 or 64 bits.
    pub(crate) fn number(&mut self) -> u64 {
        match self.byte() {
            small @ 0..=199 => u64::from(small),
            200..=219 => u64::from(self.byte()) << 8,
            220..=229 => u64::from(u32::MAX) - u64::from(self.byte()),
            230..=239 => 1 << (self.byte() % 64),
            240..=249 => u64::MAX - u64::from(self.byte()),
            _ => i64::MAX.cast_unsigned() + u64::from(self.byte()),
        }
    }

    /// A source of as many choices as a caller likes, from what is left of the bytes.
    pub(crate) fn more(&mut self) -> Mutator {
        Mutator::new((0..8).fold(0, |seed, _| seed << 8 | u64::from(self.byte())))
    }

    #[expect(clippy::cast_possible_truncation, reason = "any 32 bits will do")]
    pub(crate) fn word(&mut self) -> u32 {
        self.number() as u32
    }

    pub(crate) fn signed(&mut self) -> i32 {
        self.word().cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::Choices;

    #[test]
    fn the_same_bytes_are_the_same_choices_and_the_end_is_zeros() {
        let mut choices = Choices::new(&[7, 240, 0, 3]);
        assert_eq!((choices.number(), choices.number()), (7, u64::MAX));
        assert_eq!(choices.one_of(&[10, 20]), 20);
        assert!(choices.is_empty());
        assert_eq!((choices.byte(), choices.number()), (0, 0));
    }
}
