//! Grids: how the accesses to one large tensor that is cut into tiles are kept apart.
//!
//! A byte of a tensor has a row and a column: its offset, divided by the pitch. A grid cuts rows and columns into cells. A
//! region *within* a cell has all of its bytes there, so regions within different cells have none in common: only those
//! of the same cell, and those that are within none, need to be compared.

use core::num::NonZeroU64;

use pto_abi::stream::MapBucket;
use pto_abi::sync::Ordering::Relaxed;

use super::region::{Dim, Region};

/// How rows and columns are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    /// Bytes from one row to the next.
    pitch: NonZeroU64,
    /// Bytes of a row in a cell.
    width: NonZeroU64,
    /// Rows of a cell.
    rows: NonZeroU64,
}

impl Grid {
    /// The grid that has this region as one of its cells; `None`: there is none.
    pub(super) fn around(region: &Region) -> Option<Self> {
        let (pitch, rows) = match *region.dims() {
            [] => (region.run, 1),
            [Dim { stride, count }] => (stride, u64::from(count)),
            _ => return None,
        };
        let (pitch, rows) = NonZeroU64::new(pitch).zip(NonZeroU64::new(rows))?;
        let grid = Self { pitch, width: NonZeroU64::new(region.run)?, rows };
        let is_first = (region.low % pitch).is_multiple_of(region.run)
            && (region.low / pitch).is_multiple_of(rows.get());
        (is_first && grid.cell_of(region).is_some()).then_some(grid)
    }

    /// The grid of a bucket; `None`: it has none.
    #[inline]
    pub(super) fn of(bucket: &MapBucket) -> Option<Self> {
        Some(Self {
            pitch: NonZeroU64::new(bucket.pitch.load(Relaxed))?,
            width: NonZeroU64::new(bucket.width.load(Relaxed))?,
            rows: NonZeroU64::new(bucket.rows.load(Relaxed))?,
        })
    }

    pub(super) fn store(self, bucket: &MapBucket) {
        bucket.pitch.store(self.pitch.get(), Relaxed);
        bucket.width.store(self.width.get(), Relaxed);
        bucket.rows.store(self.rows.get(), Relaxed);
    }

    /// A number of the cell that the region is within; `None`: it is within none.
    #[inline]
    pub(super) fn cell_of(self, region: &Region) -> Option<u64> {
        let (row, column) = (region.low / self.pitch, region.low % self.pitch);
        let rows = match *region.dims() {
            [] => 1,
            [Dim { stride, count }] if stride == self.pitch.get() => u64::from(count),
            _ => return None,
        };
        let (cell_row, cell_column) = (row / self.rows, column / self.width);
        let last_column = column + region.run - 1;
        let is_within = last_column < self.pitch.get()
            && last_column / self.width == cell_column
            && (row + rows - 1) / self.rows == cell_row;
        is_within.then(|| cell_row.wrapping_mul(0x1_0000_0001).wrapping_add(cell_column))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::Grid;
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
        let cell = |row, column, rows, width| grid.cell_of(&tile(row, column, rows, width));
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
