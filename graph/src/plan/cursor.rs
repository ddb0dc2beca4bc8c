//! A cursor: a position in the words of a plan, which reads the words one after the other.

/// Reads words. Beyond the end every word is zero, which is the code of nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'p> {
    words: &'p [u32],
    at: usize,
}

impl<'p> Cursor<'p> {
    pub(super) const fn new(words: &'p [u32], at: usize) -> Self {
        Self { words, at }
    }

    /// The word that is read next.
    #[inline]
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// Whether this many words are left.
    pub(super) const fn has(&self, words: usize) -> bool {
        self.words.len().saturating_sub(self.at) >= words
    }

    #[inline]
    pub(super) fn word(&mut self) -> u32 {
        let word = self.words.get(self.at).copied().unwrap_or(0);
        self.at = self.at.wrapping_add(1);
        word
    }

    /// A code, and the operand in the same word.
    #[inline]
    pub(super) fn code(&mut self) -> (u32, u32) {
        let word = self.word();
        (word & 0xFF, word >> 8)
    }

    /// A number of 64 bits, the low half first.
    #[inline]
    pub(super) fn wide(&mut self) -> u64 {
        let low = self.word();
        u64::from(low) | u64::from(self.word()) << 32
    }

    /// Goes on at this word.
    pub(super) const fn go_to(&mut self, at: usize) {
        self.at = at;
    }

    #[inline]
    pub(super) fn skip(&mut self, words: u32) {
        self.at = self.at.saturating_add(words as usize);
    }
}

/// An operand of 24 bits as a signed number.
#[inline]
pub(super) const fn signed(operand: u32) -> i64 {
    ((operand << 8).cast_signed() >> 8) as i64
}

#[cfg(test)]
mod tests {
    use super::{Cursor, signed};

    #[test]
    fn operands_have_a_sign() {
        assert_eq!(
            [0, 1, 0x7F_FFFF, 0x80_0000, 0xFF_FFFF].map(signed),
            [0, 1, 8_388_607, -8_388_608, -1]
        );
    }

    #[test]
    fn beyond_the_end_is_nothing() {
        let mut cursor = Cursor::new(&[0x0000_0501], 0);
        assert_eq!((cursor.code(), cursor.word(), cursor.wide()), ((1, 5), 0, 0));
        cursor.skip(u32::MAX);
        assert_eq!(cursor.word(), 0);
    }
}
