//! The tables of the tensor map, and how rows are found and emptied.
//!
//! Invariants: a row that is in use names its tensor in `base`, or `NO_TENSOR`; as many grids as rows of tensors; what is noted
//! of a task before the watermark is not seen.

use core::cell::Cell;
use core::hash::{Hash, Hasher};

use pto_abi::stream::{MapEntry, MapGrid, MapRow};
use pto_abi::sync::{AtomicU32, Ordering::Relaxed};

use super::super::rings::low_half;
use super::access::TensorAccess;
use super::entries::Entries;
use super::row::{MapRowExt, Now};
use super::rows::{NONE, Rows};

/// The base address of no tensor.
pub(super) const NO_TENSOR: u64 = u64::MAX;
/// In `link` of a tensor's row: its accesses are not sorted by a grid.
pub(super) const NO_GRID: u32 = 0;
/// They are.
pub(super) const HAS_GRID: u32 = 1;
/// They are, and no access under way is noted at the tensor: all of them are in cells.
pub(super) const QUIET: u32 = 2;

/// Where the row of a cell is found.
#[inline]
pub(super) const fn cell_key(corner: u64) -> u64 {
    corner >> 2
}

/// The tables of the map: powers of two, as many grids as tensors.
#[derive(Clone, Copy)]
pub struct MapMemory<'a> {
    /// Rows of tensors.
    pub tensors: &'a [MapRow],
    /// An index entry for each of them.
    pub tensor_index: &'a [AtomicU32],
    /// Rows of cells.
    pub cells: &'a [MapRow],
    /// An index entry for each of them.
    pub cell_index: &'a [AtomicU32],
    /// Grids of tensors.
    pub grids: &'a [MapGrid],
    /// Accesses that are in no row.
    pub entries: &'a [MapEntry],
}

/// See the file.
pub struct TensorMap<'a> {
    pub(super) tensors: Rows<'a>,
    pub(super) cells: Rows<'a>,
    pub(super) grids: &'a [MapGrid],
    pub(super) entries: Entries<'a>,
    /// The oldest task that has not completed.
    watermark: Cell<u64>,
    /// The position after the newest entry in a lane.
    pub(super) in_lanes: Cell<u64>,
}

/// The rows that hold the accesses that an access may meet.
#[derive(Clone, Copy)]
pub struct MapPosition<'a> {
    pub(super) tensor: &'a MapRow,
    pub(super) at: u32,
    pub(super) cells: Cells<'a>,
}

/// Which cells of its tensor an access may meet.
#[derive(Clone, Copy)]
pub(super) enum Cells<'a> {
    /// The tensor has no grid.
    NoGrid,
    /// The access is within this one.
    One(&'a MapRow, u32),
    /// It touches several that are side by side or one below the other; the row of their lane, for which it is noted.
    Strip(&'a MapRow, u32),
    /// It touches others, or it is not known which.
    All,
}

impl<'a> TensorMap<'a> {
    /// An empty map on this memory, for tasks and with positions from `first` on; `None`: the tables are too small, or no
    /// powers of two.
    #[must_use]
    pub fn new(memory: MapMemory<'a>, first: u64) -> Option<Self> {
        let MapMemory { tensors, tensor_index, cells, cell_index, grids, entries } = memory;
        if grids.len() != tensors.len() {
            return None;
        }
        let entries = Entries::new(entries, first)?;
        let tensors = Rows::new(tensors, tensor_index)?;
        let cells = Rows::new(cells, cell_index)?;
        tensors.clear();
        // Those of cells are cleared when the first grid is chosen.
        grids.first()?.has_cells.store(0, Relaxed);
        Some(Self {
            tensors,
            cells,
            grids,
            entries,
            watermark: Cell::new(first),
            in_lanes: Cell::new(first),
        })
    }

    /// Empties a row that is used for the first time.
    fn empty(&self, row: &MapRow) {
        let none = self.entries.dead_link();
        row.base.store(NO_TENSOR, Relaxed);
        row.write_chain.store(none, Relaxed);
        row.read_chain.store(none, Relaxed);
        row.forget(self.now(self.watermark.get()).gone());
        row.next.store(NONE, Relaxed);
        row.link.store(NO_GRID, Relaxed);
    }

    /// Entries given out so far.
    #[must_use]
    #[inline]
    pub const fn head(&self) -> u64 {
        self.entries.head()
    }

    /// Entries in use.
    #[must_use]
    #[inline]
    pub const fn in_use(&self) -> u64 {
        self.entries.in_use()
    }

    /// Entries that were given out from the position with this low half on.
    #[must_use]
    pub const fn since_low(&self, position: u32) -> u64 {
        self.entries.since_low(position)
    }

    /// Entries that it holds.
    #[must_use]
    #[inline]
    pub const fn capacity(&self) -> u64 {
        self.entries.capacity()
    }

    /// Whether `count` more fit.
    #[must_use]
    #[inline]
    pub const fn has_room(&self, count: u64) -> bool {
        self.in_use() + count <= self.capacity()
    }

    /// Tasks before `watermark` have completed, and entries before `position` are retired.
    #[inline]
    pub fn retire(&self, watermark: u64, position: u64) {
        self.watermark.set(watermark);
        self.entries.retire(position);
    }

    /// Hashes what is not in its memory.
    pub(in crate::stream) fn hash_state<H: Hasher>(&self, into: &mut H) {
        (self.entries.positions(), self.watermark.get(), self.in_lanes.get()).hash(into);
        (self.tensors.count(), self.cells.count()).hash(into);
    }

    #[inline]
    pub(super) const fn now(&self, number: u64) -> Now {
        // The window is below 2^25.
        Now::new(number, low_half(number.wrapping_sub(self.watermark.get())))
    }

    /// The row for the tensor at `base`, and its number.
    #[inline]
    pub(super) fn tensor_of(&self, base: u64) -> Option<(&'a MapRow, u32)> {
        // Tensors are aligned: the low bits say nothing.
        self.tensors.of(base >> 4, |row| self.empty(row))
    }

    /// Makes sure that no number of a task that was noted a long time ago comes to look like one under way. To be called
    /// every 2^30 tasks, at least.
    #[cold]
    pub fn sweep(&self, number: u64) {
        let now = self.now(number);
        for row in self.tensors.used().chain(self.cells.used()) {
            for task in row.tasks() {
                if now.producer(task.load(Relaxed)).is_none() {
                    task.store(now.gone(), Relaxed);
                }
            }
        }
    }

    /// The row for the cell whose first byte has this address, and its number.
    #[inline]
    pub(super) fn cell_at(&self, corner: u64) -> Option<(&'a MapRow, u32)> {
        self.lane_at(cell_key(corner))
    }

    /// The row for this key of a cell or a lane, and its number.
    #[inline]
    pub(super) fn lane_at(&self, key: u64) -> Option<(&'a MapRow, u32)> {
        self.cells.of(key, |row| self.empty(row))
    }

    /// Whether an access under way may be in a lane.
    #[inline]
    pub(super) const fn has_strips(&self) -> bool {
        self.in_lanes.get() > self.entries.tail()
    }

    /// The row of the cell that begins where the access does, if there is such a cell.
    #[inline]
    pub(super) fn corner_of(&self, access: &TensorAccess<'_>) -> Option<(&'a MapRow, u32)> {
        self.cell_at(access.base.wrapping_add(access.low))
    }
}
