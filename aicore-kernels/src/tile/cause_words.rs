//! Causes as words: how a core reports to its host why a kernel ended.

use super::fault::FaultCause;
use super::op::Spread;

/// The number of a cause, and what it says.
pub type CauseWords = (u64, [u64; 5]);

impl FaultCause {
    /// The cause as words.
    #[must_use]
    pub fn to_words(self) -> CauseWords {
        let wide = |count: usize| count as u64;
        let pair = |[a, b]: [u16; 2]| u64::from(a) | u64::from(b) << 32;
        let position = |[a, b]: [u32; 2]| u64::from(a) | u64::from(b) << 32;
        let (number, [a, b, c]) = match self {
            Self::Tensors { needed, found } => (1, [wide(needed), wide(found), 0]),
            Self::Scalars { needed, found } => (2, [wide(needed), wide(found), 0]),
            Self::Scratch { needed, found } => (3, [wide(needed), wide(found), 0]),
            Self::Misaligned => (4, [0; 3]),
            Self::ViewTooLarge { view, tile } => (5, [pair(view), pair(tile), 0]),
            Self::OutOfTensor { at, element, elements } => {
                (6, [position(at), element.cast_unsigned(), wide(elements)])
            }
            Self::Remainders { a, b } => (7, [pair(a), pair(b), 0]),
            Self::StoreTooSmall { source, view } => (8, [pair(source), pair(view), 0]),
            Self::DivisionByZero { at, spread } => (9, [position(at), spread.code().into(), 0]),
            Self::NoIndex { at } => (10, [at.into(), 0, 0]),
            Self::Broken => (11, [0; 3]),
        };
        (number, [a, b, c, 0, 0])
    }

    /// The cause that words say; `None`: they say none.
    #[must_use]
    pub fn from_words((number, [a, b, c, ..]): CauseWords) -> Option<Self> {
        let count = |word: u64| usize::try_from(word).unwrap_or(usize::MAX);
        let short = |word: u64| u16::try_from(word & 0xFFFF_FFFF).unwrap_or(u16::MAX);
        let pair = |word: u64| [short(word), short(word >> 32)];
        let half = |word: u64| u32::try_from(word & 0xFFFF_FFFF).unwrap_or(u32::MAX);
        let position = |word: u64| [half(word), half(word >> 32)];
        Some(match number {
            1 => Self::Tensors { needed: count(a), found: count(b) },
            2 => Self::Scalars { needed: count(a), found: count(b) },
            3 => Self::Scratch { needed: count(a), found: count(b) },
            4 => Self::Misaligned,
            5 => Self::ViewTooLarge { view: pair(a), tile: pair(b) },
            6 => {
                Self::OutOfTensor { at: position(a), element: b.cast_signed(), elements: count(c) }
            }
            7 => Self::Remainders { a: pair(a), b: pair(b) },
            8 => Self::StoreTooSmall { source: pair(a), view: pair(b) },
            9 => {
                let spread = u8::try_from(b).ok().and_then(Spread::from_code)?;
                Self::DivisionByZero { at: position(a), spread }
            }
            10 => Self::NoIndex { at: half(a) },
            11 => Self::Broken,
            _ => return None,
        })
    }
}
