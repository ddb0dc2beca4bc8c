//! The cells of tensors that are cut into tiles: a record for each, found by tensor and cell.
//!
//! A region within a cell meets only what is in that cell, and what is within none: those accesses stand at the tensor. A
//! region within no cell is compared with all cells of its tensor that are in use, which form a list:
//!
//! ```text
//! free --owns--> in the list of its tensor --owns, for another tensor--> in that one's list
//!   ^                    |
//!   `-- Look::cells -----'      both only when all of its accesses have completed
//! ```

use pto_abi::stream::MapRow;
use pto_abi::sync::Ordering::Relaxed;

use super::grid::Grid;
use super::looks::{Keep, Look, Now, Stop};
use super::map::{Access, Cells, HAS_GRID, NOBODY, NONE, Place, TensorMap};
use super::region::Region;

/// In `link` of the first cell of a list: the rest is the number of the tensor's record.
const FIRST: u32 = 1 << 31;

impl<'a> TensorMap<'a> {
    /// The cells of the tensor in record `at` that an access may meet.
    pub(super) fn cells_of(&self, at: u32, access: &Access<'_>) -> Cells<'a> {
        let grid = self.grids.get(at as usize).and_then(Grid::of);
        let Some(corner) = grid.and_then(|grid| grid.corner_of(access)) else {
            return Cells::All;
        };
        let cell = self.cell_at(access.base.wrapping_add(corner));
        cell.map_or(Cells::All, |(cell, at)| Cells::One(cell, at))
    }

    /// Whether an access may be noted in this cell: it is the tensor's, or becomes it.
    #[inline]
    pub(super) fn owns(
        &self,
        place: &Place<'a>,
        cell: &MapRow,
        at: u32,
        access: &Access<'_>,
        now: Now,
    ) -> bool {
        cell.base.load(Relaxed) == access.base || self.claim(place, cell, at, access.base, now)
    }

    fn claim(&self, place: &Place<'a>, cell: &MapRow, at: u32, base: u64, now: Now) -> bool {
        if !self.is_unused(cell, now) {
            return false;
        }
        self.unlink(cell);
        let first = place.tensor.next.load(Relaxed);
        cell.next.store(first, Relaxed);
        cell.link.store(FIRST | place.at, Relaxed);
        if let Some(second) = self.cells.get(first) {
            second.link.store(at, Relaxed);
        }
        place.tensor.next.store(at, Relaxed);
        cell.base.store(base, Relaxed);
        cell.low.store(0, Relaxed);
        cell.high.store(0, Relaxed);
        cell.forget(now.gone());
        true
    }

    /// Takes a cell out of the list that it is in, if any.
    fn unlink(&self, cell: &MapRow) {
        if cell.base.load(Relaxed) == NOBODY {
            return;
        }
        let (before, next) = (cell.link.load(Relaxed), cell.next.load(Relaxed));
        let before = if before & FIRST != 0 {
            self.tensors.get(before & !FIRST)
        } else {
            self.cells.get(before)
        };
        if let Some(before) = before {
            before.next.store(next, Relaxed);
        }
        if let Some(next) = self.cells.get(next) {
            next.link.store(cell.link.load(Relaxed), Relaxed);
        }
        cell.base.store(NOBODY, Relaxed);
    }

    pub(super) fn is_unused(&self, record: &MapRow, now: Now) -> bool {
        let chains = [&record.write_chain, &record.read_chain];
        record.is_free(now) && chains.into_iter().all(|chain| !self.is_live(chain.load(Relaxed)))
    }

    /// Sorts what comes from now on by the grid around `region`, if there is one. What is there already stays at the
    /// tensor; while cells of another grid are in use, it stays.
    #[cold]
    #[inline(never)]
    pub(super) fn choose_grid(&self, place: &Place<'a>, region: &Region) {
        let is_free = place.tensor.next.load(Relaxed) == NONE;
        let is_within = matches!(place.cells, Cells::One(..));
        let Some(grid) = Grid::around(region).filter(|_| is_free && !is_within) else { return };
        let Some(memory) = self.grids.get(place.at as usize) else { return };
        if let Some(first) = self.grids.first().filter(|g| g.has_cells.load(Relaxed) == 0) {
            self.cells.clear();
            first.has_cells.store(1, Relaxed);
        }
        grid.store(memory);
        place.tensor.link.store(HAS_GRID, Relaxed);
    }
}

impl<F> Look<'_, '_, F> {
    /// All cells of a tensor; those that are not in use any more leave its list.
    #[cold]
    pub(super) fn cells<E>(&mut self, place: &Place<'_>) -> Result<(), Stop<E>>
    where
        F: FnMut(u64) -> Result<(), E>,
    {
        let map = self.map;
        let mut at = place.tensor.next.load(Relaxed);
        while let Some(cell) = map.cells.get(at) {
            at = cell.next.load(Relaxed);
            if cell.base.load(Relaxed) == self.access.base {
                self.record(cell)?;
            }
            if map.is_unused(cell, self.now) {
                map.unlink(cell);
            }
        }
        Ok(())
    }
}
