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

/// An instruction, and the number of the value that it defines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) op: Op,
    pub(super) result: Option<u16>,
}

/// A value: its type, and its slot in the frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameValue {
    pub(super) tile: TileType,
    pub(super) slot: FrameSlot,
    /// Where an interpreter may read it instead of loading it ([`super::in_place`]).
    #[cfg(target_arch = "x86_64")]
    pub(super) source: Option<LoadSource>,
}

/// The parameter that a value is loaded from, and the offset.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoadSource {
    pub(super) param: u8,
    pub(super) offset: [u16; 2],
}

/// The words of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FrameSlot {
    pub(super) start: usize,
    pub(super) words: usize,
}

impl FrameSlot {
    pub(super) const fn end(self) -> usize {
        self.start + self.words
    }
}
