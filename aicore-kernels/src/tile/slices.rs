//! The elements of values in the frame: those of a result to write, those of all others to read.

use super::dtype::DType;
use super::element::Element;
use super::elementwise::Grid;
use super::fault::FaultCause;
use super::op::TileType;
use super::step::{FrameSlot, FrameValue};

/// The frame without the slot of a result.
pub(super) struct Rest<'f> {
    before: &'f [u64],
    after: &'f [u64],
    after_start: usize,
}

impl<'f> Rest<'f> {
    fn words(&self, slot: FrameSlot) -> Option<&'f [u64]> {
        let start = slot.start.checked_sub(self.after_start);
        start.map_or_else(
            || self.before.get(slot.start..slot.end()),
            |start| self.after.get(start..start + slot.words),
        )
    }

    pub(super) fn tile<T: Element>(&self, value: &FrameValue) -> Result<&'f [T], FaultCause> {
        let words = self.words(value.slot).ok_or(FaultCause::Broken)?;
        bytemuck::cast_slice(words).get(..value.tile.elements()).ok_or(FaultCause::Broken)
    }
}

/// The elements of a value, to write, and the rest of the frame.
pub(super) fn split<'f, T: Element>(
    frame: &'f mut [u64],
    value: &FrameValue,
) -> Result<(&'f mut [T], Rest<'f>), FaultCause> {
    let FrameSlot { start, words } = value.slot;
    let (before, rest) = frame.split_at_mut_checked(start).ok_or(FaultCause::Broken)?;
    let (out, after) = rest.split_at_mut_checked(words).ok_or(FaultCause::Broken)?;
    let out = bytemuck::cast_slice_mut(out).get_mut(..value.tile.elements());
    let rest = Rest { before, after, after_start: start + words };
    Ok((out.ok_or(FaultCause::Broken)?, rest))
}

/// The part of a tile that counts.
pub(super) const fn grid(tile: TileType, [rows, cols]: [u16; 2]) -> Grid {
    Grid { rows: rows as usize, cols: cols as usize, pitch: tile.cols as usize }
}

/// A slot of no words, for instructions that define nothing.
pub(super) const EMPTY: FrameValue = FrameValue {
    tile: TileType::tile(DType::U64, 0, 0),
    slot: FrameSlot { start: 0, words: 0 },
    #[cfg(target_arch = "x86_64")]
    source: None,
};
