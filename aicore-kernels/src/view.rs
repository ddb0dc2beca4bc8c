//! Views of operands in GM: [`Vector`] and the strided [`Matrix`].
//!
//! Elements are [`Cell`]s, because operands of one kernel may be the same memory (in-place
//! operation), which two slices `&[f32]` and `&mut [f32]` could not express. Nothing here panics:
//! what is out of range is empty.

use core::cell::Cell;

/// Contiguous elements.
pub type Vector<'a> = &'a [Cell<f32>];

/// A mutable slice as a [`Vector`], for callers that start from a slice.
#[inline]
#[must_use]
pub fn vector(elements: &mut [f32]) -> Vector<'_> {
    Cell::from_mut(elements).as_slice_of_cells()
}

/// The elements from the first to the last of a strided matrix; `None` if that overflows.
#[inline]
#[must_use]
pub fn extent(rows: usize, cols: usize, ld: usize) -> Option<usize> {
    if cols == 0 {
        return Some(0);
    }
    rows.checked_sub(1).map_or(Some(0), |last| last.checked_mul(ld)?.checked_add(cols))
}

/// A row-major matrix; row `r` begins at element `r * ld`.
///
/// `ld` may be smaller than `cols` for an operand that is only read: 0 repeats one row.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    cells: Vector<'a>,
    rows: usize,
    cols: usize,
    ld: usize,
}

impl<'a> Matrix<'a> {
    /// No rows, no columns.
    pub const EMPTY: Self = Self { cells: &[], rows: 0, cols: 0, ld: 0 };

    /// A view of `cells`; `None` if they are fewer than the [`extent`].
    #[inline]
    #[must_use]
    pub fn new(cells: Vector<'a>, rows: usize, cols: usize, ld: usize) -> Option<Self> {
        let cells = cells.get(..extent(rows, cols, ld)?)?;
        Some(Self { cells, rows, cols, ld })
    }

    /// The number of rows.
    #[inline]
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    #[inline]
    #[must_use]
    pub const fn cols(&self) -> usize {
        self.cols
    }

    /// Row `r`, of [`Self::cols`] elements; empty if there is no such row.
    #[inline]
    #[must_use]
    pub fn row(&self, r: usize) -> Vector<'a> {
        self.window(r, 0, self.cols)
    }

    /// The rows from the top, at most `rows` of them.
    #[inline]
    #[must_use]
    pub const fn first_rows(self, rows: usize) -> Self {
        let rows = if rows < self.rows { rows } else { self.rows };
        Self { rows, ..self }
    }

    /// All rows in order.
    #[inline]
    pub fn iter_rows(self) -> impl Iterator<Item = Vector<'a>> {
        (0..self.rows).map(move |r| self.row(r))
    }

    /// Columns `col .. col + N` of every row, from the top; nothing if they are not all there.
    #[inline]
    pub fn panel<const N: usize>(self, col: usize) -> impl Iterator<Item = &'a [Cell<f32>; N]> {
        let fits = col.checked_add(N).is_some_and(|end| end <= self.cols);
        let rows = if fits { self.rows } else { 0 };
        (0..rows).map_while(move |r| self.window(r, col, N).first_chunk())
    }

    #[inline]
    fn window(&self, r: usize, col: usize, width: usize) -> Vector<'a> {
        if r >= self.rows {
            return &[];
        }
        // An existing row does not wrap: `extent` has computed where the last one ends.
        let start = r.wrapping_mul(self.ld).wrapping_add(col);
        self.cells.get(start..start.wrapping_add(width)).unwrap_or(&[])
    }
}
