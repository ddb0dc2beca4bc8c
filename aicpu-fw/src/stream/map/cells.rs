//! The cells of tensors that are cut into tiles: a row for each, found by tensor and cell.
//!
//! A region within a cell meets only what is in that cell, and what is within none: those accesses are noted at the tensor. A
//! region within no cell is compared with all cells of its tensor that are in use, which form a list:
//!
//! ```text
//! free --owns--> in the list of its tensor --owns, for another tensor--> in that one's list
//!   ^                    |
//!   `-- look_at_cells ----'      both only when all of its accesses have completed
//! ```

use pto_abi::stream::MapRow;
use pto_abi::sync::Ordering::Relaxed;

use super::super::region::Region;
use super::access::{AccessKind, TensorAccess};
use super::grid::Grid;
use super::lookup::{Lookup, Stop};
use super::row::{MapRowExt, Now};
use super::rows::NONE;
use super::tensor_map::{Cells, HAS_GRID, MapPosition, NO_TENSOR, TensorMap, cell_key};

/// A strip of more cells is compared with all cells and lanes of its tensor that are in use: one look-up takes about as long as a step in
/// their list.
const MAX_CELLS: u64 = 16;

/// The key of the lane of a row of cells, which is the key of no cell.
const fn row_key(base: u64, grid: Grid, row: u64) -> u64 {
    cell_key(base.wrapping_add(grid.row(row))) | 1 << 63
}

/// The key of the lane of a column of cells, which is the key of no cell.
const fn column_key(base: u64, grid: Grid, column: u64) -> u64 {
    cell_key(base.wrapping_add(grid.column(column))) | 1 << 62
}

/// In `link` of the first cell of a list: the rest is the number of the tensor's row.
const FIRST: u32 = 1 << 31;

impl<'a> TensorMap<'a> {
    /// The cells of the tensor in row `at` that an access may meet.
    pub(super) fn cells_of(&self, at: u32, access: &TensorAccess<'_>) -> Cells<'a> {
        let grid = self.grids.get(at as usize).and_then(Grid::of);
        let Some(grid) = grid else { return Cells::All };
        let Some(corner) = grid.corner_of(access) else {
            let lane = grid.strip_of(access).and_then(|strip| {
                let key = match strip.rows.1 {
                    1 => row_key(access.base, grid, strip.rows.0),
                    _ => column_key(access.base, grid, strip.columns.0),
                };
                self.lane_at(key)
            });
            return lane.map_or(Cells::All, |(lane, at)| Cells::Strip(lane, at));
        };
        let cell = self.cell_at(access.base.wrapping_add(corner));
        cell.map_or(Cells::All, |(cell, at)| Cells::One(cell, at))
    }

    /// Whether an access may be noted in this cell: it is the tensor's, or becomes it.
    #[inline]
    pub(super) fn owns(
        &self,
        position: &MapPosition<'a>,
        cell: &MapRow,
        at: u32,
        access: &TensorAccess<'_>,
        now: Now,
    ) -> bool {
        cell.base.load(Relaxed) == access.base || self.claim(position, cell, at, access.base, now)
    }

    /// Notes an access in a lane. It takes an entry, so that the newest of them says whether lanes are in use.
    pub(super) fn note_in_lane(&self, lane: &MapRow, access: &TensorAccess<'_>, number: u64) {
        let is_write = access.kind == AccessKind::Write;
        let chain = if is_write { &lane.write_chain } else { &lane.read_chain };
        self.entries.insert(chain, access, number);
        self.in_lanes.set(self.entries.head());
    }

    fn claim(
        &self,
        position: &MapPosition<'a>,
        cell: &MapRow,
        at: u32,
        base: u64,
        now: Now,
    ) -> bool {
        if !self.is_unused(cell, now) {
            return false;
        }
        self.unlink(cell);
        let first = position.tensor.next.load(Relaxed);
        cell.next.store(first, Relaxed);
        cell.link.store(FIRST | position.at, Relaxed);
        if let Some(second) = self.cells.get(first) {
            second.link.store(at, Relaxed);
        }
        position.tensor.next.store(at, Relaxed);
        cell.base.store(base, Relaxed);
        cell.low.store(0, Relaxed);
        cell.high.store(0, Relaxed);
        cell.forget(now.gone());
        true
    }

    /// Takes a cell out of the list that it is in, if any.
    fn unlink(&self, cell: &MapRow) {
        if cell.base.load(Relaxed) == NO_TENSOR {
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
        cell.base.store(NO_TENSOR, Relaxed);
    }

    pub(super) fn is_unused(&self, row: &MapRow, now: Now) -> bool {
        let chains = [&row.write_chain, &row.read_chain];
        row.is_free(now)
            && chains.into_iter().all(|chain| !self.entries.is_live(chain.load(Relaxed)))
    }

    /// Sorts what comes from now on by the grid around `region`, if there is one. What is there already stays at the
    /// tensor; while cells of another grid are in use, it stays.
    #[cold]
    #[inline(never)]
    pub(super) fn choose_grid(&self, position: &MapPosition<'a>, region: &Region) {
        let is_free = position.tensor.next.load(Relaxed) == NONE;
        let is_within = matches!(position.cells, Cells::One(..));
        if !is_free || is_within {
            return;
        }
        let Some(grid) = Grid::around(region) else { return };
        let Some(memory) = self.grids.get(position.at as usize) else { return };
        if let Some(first) = self.grids.first().filter(|g| g.has_cells.load(Relaxed) == 0) {
            self.cells.clear();
            first.has_cells.store(1, Relaxed);
        }
        grid.store(memory);
        position.tensor.link.store(HAS_GRID, Relaxed);
    }

    /// Looks at the cells that an access touches, if it is not within one, and at the lanes that cross it.
    #[inline(never)]
    pub(super) fn look_at_strip<E, F>(
        &self,
        position: &MapPosition<'_>,
        look: &mut Lookup<'_, '_, F>,
    ) -> Result<(), Stop<E>>
    where
        F: FnMut(u64) -> Result<(), E>,
    {
        let grid = self.grids.get(position.at as usize).and_then(Grid::of);
        let strip = grid.and_then(|grid| Some((grid, grid.strip_of(look.access)?)));
        let strip = strip.filter(|(_, strip)| strip.cells() <= MAX_CELLS);
        let Some((grid, strip)) = strip else { return self.look_at_cells(position, look) };
        let base = look.access.base;
        let has_strips = self.has_strips();
        let rows = strip.rows.0..strip.rows.0 + strip.rows.1;
        let columns = strip.columns.0..strip.columns.0 + strip.columns.1;
        let lanes_of_rows = rows.clone().map(|row| row_key(base, grid, row));
        let lanes_of_columns = columns.clone().map(|column| column_key(base, grid, column));
        let lanes = lanes_of_rows.chain(lanes_of_columns);
        for key in lanes.filter(|_| has_strips) {
            self.look_at_key(key, look)?;
        }
        if strip.cells() > 1 {
            for row in rows {
                for column in columns.clone() {
                    let corner = base.wrapping_add(grid.row(row)).wrapping_add(grid.column(column));
                    self.look_at_key(cell_key(corner), look)?;
                }
            }
        }
        Ok(())
    }

    /// Looks at the row of a cell or of a lane, if there is one and it is the tensor's.
    fn look_at_key<E, F>(&self, key: u64, look: &mut Lookup<'_, '_, F>) -> Result<(), Stop<E>>
    where
        F: FnMut(u64) -> Result<(), E>,
    {
        match self.cells.find(key) {
            Some(row) if row.base.load(Relaxed) == look.access.base => look.row(row),
            _ => Ok(()),
        }
    }

    /// Looks at all cells of a tensor; those that are not in use any more leave its list.
    #[cold]
    pub(super) fn look_at_cells<E, F>(
        &self,
        position: &MapPosition<'_>,
        look: &mut Lookup<'_, '_, F>,
    ) -> Result<(), Stop<E>>
    where
        F: FnMut(u64) -> Result<(), E>,
    {
        let mut at = position.tensor.next.load(Relaxed);
        while let Some(cell) = self.cells.get(at) {
            at = cell.next.load(Relaxed);
            if cell.base.load(Relaxed) == look.access.base {
                look.row(cell)?;
            }
            if self.is_unused(cell, look.now) {
                self.unlink(cell);
            }
        }
        Ok(())
    }
}
