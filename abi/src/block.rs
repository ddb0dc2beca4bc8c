//! Blocks of a task: the word by which a kernel knows which of them it is.

/// Which part of its task a kernel is: the word that follows its arguments.
///
/// ```text
/// bits 23..0   number of the block
/// bits 31..24  number of the core among those of its kind in the block: 1 for the second vector core of a cluster
/// bits 63..32  how many blocks the task has
/// ```
/// A kernel with `n` arguments reads it at `args[n]`. A task without blocks has one, number 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockContext {
    /// Number of the block.
    pub block: u32,
    /// How many blocks the task has.
    pub blocks: u32,
    /// 0, or 1 on the second vector core of the block.
    pub lane: u32,
}

impl BlockContext {
    /// What a task has that has no blocks.
    pub const ONLY: Self = Self { block: 0, blocks: 1, lane: 0 };

    /// The word.
    #[must_use]
    #[inline]
    pub const fn word(self) -> u64 {
        let low = self.block & 0xFF_FFFF | self.lane << 24;
        low as u64 | (self.blocks as u64) << 32
    }

    /// Block and lane, as a trace event has them (`TraceKind::PART`).
    #[must_use]
    pub const fn part(self) -> u32 {
        self.block & 0xFF_FFFF | self.lane << 24
    }

    /// What a word says.
    #[must_use]
    #[inline]
    pub const fn of(word: u64) -> Self {
        // 24, 8 and 32 bits.
        let low = (word & 0xFFFF_FFFF) as u32;
        Self { block: low & 0xFF_FFFF, blocks: (word >> 32) as u32, lane: low >> 24 }
    }
}

#[cfg(test)]
mod tests {
    use super::BlockContext;

    #[test]
    fn a_context_goes_through_its_word() {
        let context = BlockContext { block: 0xAB_CDEF, blocks: 0xFF_FFFF, lane: 1 };
        assert_eq!(BlockContext::of(context.word()), context);
        assert_eq!(BlockContext::ONLY.word(), 1 << 32);
    }
}
