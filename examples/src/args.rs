//! Orchestration words: what a host marshals and a graph program reads, as one struct that both know.
//!
//! [`orch_args!`](crate::orch_args) declares the struct; the order of its fields is the order of the words.
//! A graph program trusts no word: their number is checked, and so is each word whose type has no room for
//! every value ([`NonZeroU64`] is never zero, [`Size`] is at most [`Size::MAX`]).

use core::num::NonZeroU64;

use pto_abi::{Fault, GmAddr};

/// A type that travels as one orchestration word.
pub trait OrchWord: Sized {
    /// Whether the value is an address of something in GM.
    const IS_ADDRESS: bool = false;
    /// The value of a word; `None`: no value has this word.
    fn from_word(word: u64) -> Option<Self>;
    /// The word of a value.
    fn word(&self) -> u64;
}

impl OrchWord for u64 {
    fn from_word(word: u64) -> Option<Self> {
        Some(word)
    }
    fn word(&self) -> u64 {
        *self
    }
}

impl OrchWord for GmAddr {
    const IS_ADDRESS: bool = true;
    fn from_word(word: u64) -> Option<Self> {
        Some(Self(word))
    }
    fn word(&self) -> u64 {
        self.0
    }
}

impl OrchWord for NonZeroU64 {
    fn from_word(word: u64) -> Option<Self> {
        Self::new(word)
    }
    fn word(&self) -> u64 {
        self.get()
    }
}

/// `f32` scalars travel as their bits in the low half.
impl OrchWord for f32 {
    fn from_word(word: u64) -> Option<Self> {
        u32::try_from(word).ok().map(Self::from_bits)
    }
    fn word(&self) -> u64 {
        u64::from(self.to_bits())
    }
}

/// An extent of a tensor or a tile: 1 to [`Size::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(NonZeroU64);

impl Size {
    /// The largest extent. The product of three of them fits 64 bits, counted in bytes of `f32`.
    pub const MAX: u64 = 1 << 20;

    /// The extent 1.
    pub const ONE: Self = Self(NonZeroU64::MIN);

    /// The extent `size`; `None` outside 1 to [`Size::MAX`].
    #[must_use]
    pub const fn new(size: u64) -> Option<Self> {
        match NonZeroU64::new(size) {
            Some(size) if size.get() <= Self::MAX => Some(Self(size)),
            _ => None,
        }
    }

    /// The extent as a number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The extent as the extent of a tile.
    #[must_use]
    pub const fn non_zero(self) -> NonZeroU64 {
        self.0
    }
}

impl OrchWord for Size {
    fn from_word(word: u64) -> Option<Self> {
        Self::new(word)
    }
    fn word(&self) -> u64 {
        self.get()
    }
}

/// Takes the next word of a launch.
///
/// # Errors
/// `BUILD_ORCH_ARGS`: there is none, or no `T` has it.
pub fn take<T: OrchWord>(words: &mut core::slice::Iter<'_, u64>) -> Result<T, Fault> {
    words.next().copied().and_then(T::from_word).ok_or(Fault::BUILD_ORCH_ARGS)
}

/// Checks that a tensor of `f32` with these extents has a size in bytes that fits 64 bits.
///
/// # Errors
/// `BUILD_ORCH_ARGS`: it has not.
pub fn check_elements(extents: &[u64]) -> Result<(), Fault> {
    let bytes = extents.iter().try_fold(size_of::<f32>() as u64, |a, b| a.checked_mul(*b));
    bytes.map(|_| ()).ok_or(Fault::BUILD_ORCH_ARGS)
}

/// Declares the orchestration words of a graph program: a struct, `from_words`, `words`.
#[macro_export]
macro_rules! orch_args {
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $( $(#[$fmeta:meta])* $field:ident : $ty:ty ),+ $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name { $( $(#[$fmeta])* pub $field: $ty ),+ }

        impl $name {
            /// How many words there are.
            pub const COUNT: usize = [$(stringify!($field)),+].len();

            /// What the words are called, in order, and which of them are addresses.
            pub const NAMES: [(&'static str, bool); Self::COUNT] =
                [$((stringify!($field), <$ty as $crate::args::OrchWord>::IS_ADDRESS)),+];

            /// Reads the words of a launch.
            ///
            /// # Errors
            /// `BUILD_ORCH_ARGS`: their number is not [`Self::COUNT`], or a field cannot have its word.
            pub fn from_words(words: &[u64]) -> Result<Self, pto_abi::Fault> {
                if words.len() != Self::COUNT {
                    return Err(pto_abi::Fault::BUILD_ORCH_ARGS);
                }
                let mut words = words.iter();
                Ok(Self { $( $field: $crate::args::take(&mut words)? ),+ })
            }

            /// The words of a launch.
            #[must_use]
            pub fn words(self) -> [u64; Self::COUNT] {
                [$( $crate::args::OrchWord::word(&self.$field) ),+]
            }
        }
    };
}

/// The tiles of an axis: start and extent of each; the last one takes what is left.
#[derive(Clone, Debug)]
pub struct Tiles {
    start: u64,
    extent: u64,
    tile: NonZeroU64,
}

/// Cuts `0 .. extent` into tiles of `tile`.
#[must_use]
pub const fn tiles(extent: u64, tile: NonZeroU64) -> Tiles {
    Tiles { start: 0, extent, tile }
}

impl Iterator for Tiles {
    /// Start and extent of a tile.
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        let left = self.extent.checked_sub(self.start).filter(|left| *left > 0)?;
        let tile = (self.start, left.min(self.tile.get()));
        self.start = self.start.saturating_add(self.tile.get());
        Some(tile)
    }
}

#[cfg(test)]
#[expect(unreachable_pub, reason = "the macro declares public items, here for the tests alone")]
mod tests {
    use core::num::NonZeroU64;
    use std::vec::Vec;

    use super::{Size, tiles};
    use pto_abi::{Fault, GmAddr};

    crate::orch_args! {
        /// Two of each.
        pub struct Sample { address: GmAddr, size: Size, tile: NonZeroU64, scale: f32, n: u64 }
    }

    #[test]
    fn words_come_back_as_the_fields_that_went() {
        let sample = Sample {
            address: GmAddr(0x1000),
            size: Size::new(7).unwrap(),
            tile: NonZeroU64::MIN,
            scale: -0.125,
            n: u64::MAX,
        };
        assert_eq!(Sample::COUNT, 5);
        assert_eq!(Sample::NAMES[..2], [("address", true), ("size", false)]);
        assert_eq!(Sample::from_words(&sample.words()), Ok(sample));
    }

    #[test]
    fn a_word_that_no_field_has_is_refused() {
        let good = [0x1000, 7, 1, 0, 0];
        assert!(Sample::from_words(&good).is_ok());
        for (at, word) in [(1, 0), (1, Size::MAX + 1), (2, 0), (3, 1 << 32)] {
            let mut words = good;
            words[at] = word;
            assert_eq!(
                Sample::from_words(&words),
                Err(Fault::BUILD_ORCH_ARGS),
                "word {at} = {word}"
            );
        }
        assert_eq!(Sample::from_words(&good[1..]), Err(Fault::BUILD_ORCH_ARGS));
        assert_eq!(Sample::from_words(&[0; 6]), Err(Fault::BUILD_ORCH_ARGS));
    }

    #[test]
    fn tiles_cover_an_axis_once() {
        let cut =
            |extent, tile| -> Vec<_> { tiles(extent, NonZeroU64::new(tile).unwrap()).collect() };
        assert_eq!(cut(7, 3), [(0, 3), (3, 3), (6, 1)]);
        assert_eq!(cut(6, 3), [(0, 3), (3, 3)]);
        assert_eq!(cut(2, 3), [(0, 2)]);
        assert_eq!(cut(0, 3), []);
        assert_eq!(cut(u64::MAX, u64::MAX), [(0, u64::MAX)]);
    }
}
