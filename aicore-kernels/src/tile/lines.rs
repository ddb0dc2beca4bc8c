//! Rows of `f32` in place: in a tile of the frame, or in a tensor.
//!
//! Invariant: every row has its columns within the memory that the lines were made of, which is not written while they are read.

use core::cell::Cell;
use core::marker::PhantomData;

use super::elementwise::Grid;

/// See the module.
#[derive(Clone, Copy)]
pub(super) struct Lines<'a> {
    start: *const f32,
    pitch: usize,
    rows: usize,
    cols: usize,
    memory: PhantomData<&'a [Cell<f32>]>,
}

impl<'a> Lines<'a> {
    /// Those of a tile; `None`: it is too short.
    pub(super) fn of(elements: &'a [f32], Grid { rows, cols, pitch }: Grid) -> Option<Self> {
        Self::new((elements.as_ptr(), elements.len()), pitch, [rows, cols])
    }

    /// Those of a tensor, from its first element on; `None`: they leave it.
    pub(super) fn of_cells(
        cells: &'a [Cell<f32>],
        pitch: usize,
        extents: [usize; 2],
    ) -> Option<Self> {
        Self::new((cells.as_ptr().cast::<f32>(), cells.len()), pitch, extents)
    }

    fn new(
        (start, len): (*const f32, usize),
        pitch: usize,
        [rows, cols]: [usize; 2],
    ) -> Option<Self> {
        let needed = rows.saturating_sub(1).checked_mul(pitch)?.checked_add(cols)?;
        (needed <= len).then_some(Self { start, pitch, rows, cols, memory: PhantomData })
    }

    /// How many there are.
    pub(super) const fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns they have.
    pub(super) const fn cols(&self) -> usize {
        self.cols
    }

    /// Whether they have this many columns from this one on.
    pub(super) fn have(&self, col: usize, count: usize) -> bool {
        col.checked_add(count).is_some_and(|end| end <= self.cols)
    }

    /// Where an element is. It can be read if the row is one of the lines and they have the column.
    pub(super) const fn pointer(&self, row: usize, col: usize) -> *const f32 {
        self.start.wrapping_add(row.wrapping_mul(self.pitch).wrapping_add(col))
    }

    /// Elements of a row, from a column on; those that are not there are zero.
    #[inline(always)]
    pub(super) fn part<const C: usize>(&self, row: usize, col: usize) -> [f32; C] {
        if row < self.rows && self.have(col, C) {
            // SAFETY: the row has these columns, as was just seen.
            return unsafe { self.pointer(row, col).cast::<[f32; C]>().read_unaligned() };
        }
        core::array::from_fn(|at| {
            if row >= self.rows || !self.have(col, at + 1) {
                return 0.0;
            }
            // SAFETY: the row has this column.
            unsafe { self.pointer(row, col + at).read_unaligned() }
        })
    }
}
