//! Instructions and values of an accepted kernel, and how many there may be.

use super::op::{Op, TileType};

/// What a kernel may have at most.
pub mod limits {
    /// Parameters.
    pub const PARAMS: usize = 32;
    /// Instructions.
    pub const OPS: usize = 256;
    /// Elements of a tile.
    pub const ELEMENTS: usize = 1 << 20;
    /// 64-bit words of a frame, working storage of products included.
    pub const FRAME_WORDS: usize = 1 << 24;
}

/// An instruction, with the type and place of what it gives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) op: Op,
    pub(super) result: Option<u16>,
}

/// A value: its type, and where it stands in the frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) tile: TileType,
    pub(super) place: Place,
    /// Where a machine may read it instead of loading it ([`super::in_place`]).
    #[cfg(target_arch = "x86_64")]
    pub(super) source: Option<Source>,
}

/// The parameter that a value is loaded from, and the offset.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) param: u8,
    pub(super) offset: [u16; 2],
}

/// The words of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) start: usize,
    pub(super) words: usize,
}

impl Place {
    pub(super) const fn end(self) -> usize {
        self.start + self.words
    }
}
