//! Grids: how the accesses to one large tensor that is cut into tiles are kept apart.
//!
//! A byte of a tensor has a row and a column: its offset, divided by the pitch. A grid cuts rows and columns into cells. A
//! region *within* a cell has all of its bytes there, so regions within different cells have none in common: only those
//! of the same cell, and those that are within none, need to be compared.

use pto_abi::stream::MapGrid;
use pto_abi::sync::{AtomicU64, Ordering::Relaxed};

use super::super::region::{Dim, Region};
use super::access::{AccessKind, TensorAccess};
use super::divisor::Divisor;

/// The cells that an access touches, which are side by side or one below the other, as numbers of rows and columns of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strip {
    /// The first row of cells, and how many there are.
    pub(super) rows: (u64, u64),
    /// The first column of cells, and how many there are.
    pub(super) columns: (u64, u64),
}

impl Strip {
    /// How many cells these are.
    pub(super) const fn cells(self) -> u64 {
        // One of them is 1.
        self.rows.1 + self.columns.1 - 1
    }
}

/// How rows and columns are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    /// Bytes from one row to the next.
    pitch: Divisor,
    /// Bytes of a row in a cell.
    width: Divisor,
    /// Rows of a cell.
    rows: Divisor,
}

impl Grid {
    /// The grid that has this region as one of its cells; `None`: there is none.
    pub(super) fn around(region: &Region) -> Option<Self> {
        let (pitch, rows) = match *region.dims() {
            [] => (region.run, 1),
            [Dim { stride, count }] => (stride, u64::from(count)),
            _ => return None,
        };
        let grid = Self::new([pitch, region.run, rows])?;
        let access = TensorAccess::new(0, AccessKind::Read, region);
        let (row, column) = grid.pitch.divide(region.low);
        let is_first = grid.width.divide(column).1 == 0 && grid.rows.divide(row).1 == 0;
        (is_first && grid.corner_of(&access).is_some()).then_some(grid)
    }

    fn new([pitch, width, rows]: [u64; 3]) -> Option<Self> {
        let [pitch, width, rows] = [pitch, width, rows].map(Divisor::new);
        Some(Self { pitch: pitch?, width: width?, rows: rows? })
    }

    /// The grid that these words hold; `None`: they hold none.
    #[inline]
    pub(super) fn of(words: &MapGrid) -> Option<Self> {
        let divisor = |by: &AtomicU64, magic: &AtomicU64| {
            Divisor::from_words([by.load(Relaxed), magic.load(Relaxed)])
        };
        Some(Self {
            pitch: divisor(&words.pitch, &words.pitch_magic)?,
            width: divisor(&words.width, &words.width_magic)?,
            rows: divisor(&words.rows, &words.rows_magic)?,
        })
    }

    pub(super) fn store(self, words: &MapGrid) {
        let targets = [
            (self.pitch, &words.pitch, &words.pitch_magic),
            (self.width, &words.width, &words.width_magic),
            (self.rows, &words.rows, &words.rows_magic),
        ];
        for (divisor, by, magic) in targets {
            let words = divisor.words();
            by.store(words[0], Relaxed);
            magic.store(words[1], Relaxed);
        }
    }

    /// The first byte of the cell that the access is within, from the tensor's first one; `None`: it is within none.
    #[inline]
    pub(super) fn corner_of(self, access: &TensorAccess<'_>) -> Option<u64> {
        let pitch = self.pitch.get();
        let (rows, run) = access.rows_of(self.pitch)?;
        let (row, column) = self.pitch.divide(access.low);
        let (in_row, in_column) = (self.rows.divide(row).1, self.width.divide(column).1);
        let is_within = column + run <= pitch
            && in_column + run <= self.width.get()
            && in_row + rows <= self.rows.get();
        is_within.then(|| access.low - in_row * pitch - in_column)
    }

    /// The cells that the access touches; `None`: it has bytes in several rows of cells and in several columns of them, or no
    /// rows that are as far apart as those of the grid.
    pub(super) fn strip_of(self, access: &TensorAccess<'_>) -> Option<Strip> {
        let (rows, run) = access.rows_of(self.pitch)?;
        let (row, column) = self.pitch.divide(access.low);
        let last = column + run;
        if last > self.pitch.get() || run == 0 {
            return None;
        }
        let span = |by: Divisor, first, last| {
            let first = by.divide(first).0;
            (first, by.divide(last).0 - first + 1)
        };
        let rows = span(self.rows, row, row + rows - 1);
        let columns = span(self.width, column, last - 1);
        (rows.1 == 1 || columns.1 == 1).then_some(Strip { rows, columns })
    }

    /// Where a row of cells begins, from the tensor's first byte.
    pub(super) const fn row(self, number: u64) -> u64 {
        number.wrapping_mul(self.rows.get()).wrapping_mul(self.pitch.get())
    }

    /// Where a column of cells begins.
    pub(super) const fn column(self, number: u64) -> u64 {
        number.wrapping_mul(self.width.get())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{AccessKind, Grid, TensorAccess};
    use crate::stream::region::{Dim, Region};

    fn tile(row: u64, column: u64, rows: u32, width: u64) -> Region {
        let low = 1000 * row + column;
        let high = low + 1000 * u64::from(rows - 1) + width;
        let dims = [Dim { stride: 1000, count: rows }];
        Region::from_parts(low, high, width, if rows > 1 { &dims } else { &[] })
    }

    #[test]
    fn tiles_are_within_cells() {
        let grid = Grid::around(&tile(8, 40, 4, 20)).unwrap();
        let cell = |row, column, rows, width| {
            grid.corner_of(&TensorAccess::new(0, AccessKind::Read, &tile(row, column, rows, width)))
        };
        assert_eq!(cell(8, 40, 4, 20), cell(9, 45, 2, 3));
        assert!(cell(8, 40, 4, 20).is_some() && cell(11, 59, 1, 1) == cell(8, 40, 4, 20));
        for other in
            [cell(4, 40, 4, 20), cell(12, 40, 4, 20), cell(8, 20, 4, 20), cell(8, 60, 4, 20)]
        {
            assert!(other.is_some() && other != cell(8, 40, 4, 20));
        }
        for wide in
            [cell(8, 50, 4, 20), cell(9, 40, 4, 20), cell(8, 40, 5, 20), cell(8, 980, 4, 40)]
        {
            assert_eq!(wide, None);
        }
        assert_eq!(Grid::around(&tile(9, 40, 4, 20)), None, "not at a cell's corner");
    }
}
