//! The tensor map: which task touches which bytes of which tensor.
//!
//! ```text
//! tensor's address --> its record: one region, its last writer, who has read it since
//!                       |--> writes of other regions, newest first .. until one is retired   (chains.rs)
//!                       |--> reads of other regions
//!                       `--> its cells, where it is cut into tiles: records like this one    (cells.rs)
//! ```
//! Most tensors are always used as a whole, or in the same tiles. The accesses to one region stand in one line: to look
//! at them is to compare the region once and up to four numbers of tasks with the watermark. Accesses to other regions
//! stand in chains. Nothing is cleaned up: a task below the watermark is not seen, a record that has only such
//! tasks takes the next region that comes, and the entries of chains come out of a ring that retires at the watermark.
//!
//! **The rule of the direct edges.** Task `t` has an edge from an earlier task `p` if and only if an access of `p` and one
//! of `t` have a byte of a tensor in common, one of them writes, and the access of `p` is not *hidden*. An access is hidden
//! once a write of a later task of derived dependencies *covers* it ([`Region::covers`](super::region::Region::covers)): whoever meets the hidden access
//! meets that write as well, and that write waits for the hidden access; the order is transitive. For the same reason a
//! write needs no edge from an earlier write if it has one from a task that has read just what that one wrote: the
//! accesses in a record are those of tasks that have waited for its writer.

use core::cell::Cell;

use pto_abi::stream::{MapEntry, MapGrid, MapRow};
use pto_abi::sync::{AtomicU32, Ordering::Relaxed};

pub use super::access::{Access, AccessKind, Hide};
use super::looks::{Keep, Look, Now, Stop};
use super::records::Records;
use super::rings::before;

/// Accesses that a walk passes in vain before the accesses of the tensor are sorted by a grid. 24 comparisons of bounds cost
/// about as much as what a grid costs a submission.
const MISSES: u32 = 24;
/// Nobody's base address.
pub(super) const NOBODY: u64 = u64::MAX;
/// No record.
pub(super) const NONE: u32 = u32::MAX;

/// In `link` of a tensor's record: its accesses are not sorted by a grid.
pub(super) const NO_GRID: u32 = 0;
/// They are.
pub(super) const HAS_GRID: u32 = 1;
/// They are, and nothing under way stands at the tensor: all of it is in cells.
pub(super) const QUIET: u32 = 2;

/// The tables of the map: powers of two, as many grids as tensors.
#[derive(Clone, Copy)]
pub struct MapMemory<'a> {
    /// Records of tensors.
    pub tensors: &'a [MapRow],
    /// A place for each of them.
    pub tensor_places: &'a [AtomicU32],
    /// Records of cells.
    pub cells: &'a [MapRow],
    /// A place for each of them.
    pub cell_places: &'a [AtomicU32],
    /// Grids of tensors.
    pub grids: &'a [MapGrid],
    /// Accesses that stand in no record.
    pub entries: &'a [MapEntry],
}

/// See the module.
pub struct TensorMap<'a> {
    pub(super) tensors: Records<'a>,
    pub(super) cells: Records<'a>,
    pub(super) grids: &'a [MapGrid],
    entries: &'a [MapEntry],
    mask: u64,
    /// Positions given out; the number of the next one.
    head: Cell<u64>,
    /// Entries before this position are retired.
    tail: Cell<u64>,
    /// The oldest task that has not completed.
    watermark: Cell<u64>,
}

/// Where the accesses that an access may meet are.
#[derive(Clone, Copy)]
pub struct Place<'a> {
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
    /// The access is within none.
    All,
}

impl<'a> TensorMap<'a> {
    /// An empty map on this memory, for tasks and with positions from `first` on; `None`: the tables are too small, or no
    /// powers of two.
    #[must_use]
    pub fn new(memory: MapMemory<'a>, first: u64) -> Option<Self> {
        let MapMemory { tensors, tensor_places, cells, cell_places, grids, entries } = memory;
        let count = entries.len();
        if !count.is_power_of_two() || count < 2 || grids.len() != tensors.len() {
            return None;
        }
        let [head, tail, watermark] = [first; 3].map(Cell::new);
        let mask = count as u64 - 1;
        let tensors = Records::new(tensors, tensor_places)?;
        let cells = Records::new(cells, cell_places)?;
        tensors.clear();
        // Those of cells are cleared when the first grid is chosen.
        grids.first()?.has_cells.store(0, Relaxed);
        Some(Self { tensors, cells, grids, entries, mask, head, tail, watermark })
    }

    /// Empties a record that is used for the first time.
    fn empty(&self, record: &MapRow) {
        // A position that is never live: it is older than all entries that will be.
        let none = low_half(self.tail.get().wrapping_sub(1));
        record.base.store(NOBODY, Relaxed);
        record.write_chain.store(none, Relaxed);
        record.read_chain.store(none, Relaxed);
        record.forget(self.now(self.watermark.get()).gone());
        record.next.store(NONE, Relaxed);
        record.link.store(NO_GRID, Relaxed);
    }

    /// Entries given out so far.
    #[must_use]
    #[inline]
    pub const fn head(&self) -> u64 {
        self.head.get()
    }

    /// Head, tail and watermark.
    pub(super) const fn positions(&self) -> [u64; 3] {
        [self.head.get(), self.tail.get(), self.watermark.get()]
    }

    /// Gives out the entry at the head.
    #[inline]
    pub(super) fn advance(&self) {
        self.head.set(self.head.get() + 1);
    }

    /// Entries in use.
    #[must_use]
    #[inline]
    pub const fn in_use(&self) -> u64 {
        self.head.get() - self.tail.get()
    }

    /// Entries that were given out from the position with this low half on.
    #[must_use]
    pub const fn since_low(&self, position: u32) -> u64 {
        self.head.get() - before(self.head.get(), position)
    }

    /// Entries that it holds.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.mask + 1
    }

    /// Whether `count` more fit.
    #[must_use]
    #[inline]
    pub const fn has_room(&self, count: u64) -> bool {
        self.in_use() + count <= self.mask + 1
    }

    /// Tasks before `watermark` have completed, and entries before `position` are retired.
    #[inline]
    pub fn retire(&self, watermark: u64, position: u64) {
        self.watermark.set(watermark);
        self.tail.set(position);
    }

    #[inline]
    pub(super) const fn now(&self, number: u64) -> Now {
        // The window is below 2^25.
        Now::new(number, low_half(number.wrapping_sub(self.watermark.get())))
    }

    /// Where to look for what an access meets, and to note it.
    #[inline]
    #[must_use]
    pub fn place(&self, access: &Access<'_>) -> Option<Place<'a>> {
        let (tensor, at) = self.tensor_of(access.base)?;
        let has_grid = tensor.link.load(Relaxed) != NO_GRID;
        let cells = if has_grid { self.cells_of(at, access) } else { Cells::NoGrid };
        Some(Place { tensor, at, cells })
    }

    /// The record for the tensor at `base`, and its number.
    #[inline]
    pub(super) fn tensor_of(&self, base: u64) -> Option<(&'a MapRow, u32)> {
        // Tensors are aligned: the low bits say nothing.
        self.tensors.of(base >> 4, |record| self.empty(record))
    }

    /// Hands the tasks under way before task `number` whose accesses conflict with this one to `found`; a task may come
    /// more than once.
    ///
    /// # Errors
    /// That of `found`; `undecided` when two regions cannot be compared.
    #[inline]
    pub fn look<E>(
        &self,
        place: &Place<'a>,
        access: &Access<'_>,
        (number, hide): (u64, Hide),
        undecided: E,
        found: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let hides = hide == Hide::Covered && access.kind == AccessKind::Write;
        let now = self.now(number);
        let mut look = Look { map: self, access, hides, now, found, misses: 0 };
        let result = look.record(place.tensor).and_then(|()| match place.cells {
            Cells::NoGrid => Ok(()),
            Cells::One(cell, _) if cell.base.load(Relaxed) == access.base => look.record(cell),
            Cells::One(..) => Ok(()),
            Cells::All => look.cells(place),
        });
        let misses = look.misses;
        match result {
            Ok(()) if misses > MISSES => {
                self.choose_grid(place, &access.region());
                Ok(())
            }
            Ok(()) => Ok(()),
            Err(Stop::Undecided) => Err(undecided),
            Err(Stop::Found(error)) => Err(error),
        }
    }

    /// Notes an access of task `number`; `hide`: as it was looked for, or [`Hide::Nothing`]. There is room for it.
    #[inline]
    pub fn note(&self, place: &Place<'a>, access: &Access<'_>, (number, hide): (u64, Hide)) {
        let now = self.now(number);
        let record = match place.cells {
            Cells::One(cell, at) if self.owns(place, cell, at, access, now) => cell,
            Cells::NoGrid => place.tensor,
            _ => {
                place.tensor.link.store(HAS_GRID, Relaxed);
                place.tensor
            }
        };
        if hide == Hide::Nothing || !record.take(access, now) {
            let is_write = access.kind == AccessKind::Write;
            let chain = if is_write { &record.write_chain } else { &record.read_chain };
            self.insert(chain, access, number);
        }
    }

    /// Makes sure that no number of a task that was noted a long time ago comes to look like one under way. To be called
    /// every 2^30 tasks, at least.
    #[cold]
    pub fn sweep(&self, number: u64) {
        let now = self.now(number);
        for record in self.tensors.used().chain(self.cells.used()) {
            for task in record.tasks() {
                if now.producer(task.load(Relaxed)).is_none() {
                    task.store(now.gone(), Relaxed);
                }
            }
        }
    }

    /// The record for the cell whose first byte has this address, and its number.
    #[inline]
    pub(super) fn cell_at(&self, corner: u64) -> Option<(&'a MapRow, u32)> {
        self.cells.of(corner >> 2, |record| self.empty(record))
    }

    /// The record of the cell that begins where the access does, if there is such a cell.
    #[inline]
    pub(super) fn corner_of(&self, access: &Access<'_>) -> Option<(&'a MapRow, u32)> {
        self.cell_at(access.base.wrapping_add(access.low))
    }

    /// The ring is a power of two below 2^32: the low half of a position suffices.
    #[inline]
    pub(super) fn entry(&self, position: u64) -> Option<&'a MapEntry> {
        self.entries.get(usize::try_from(position & self.mask).ok()?)
    }
}

#[inline]
pub(super) const fn low_half(position: u64) -> u32 {
    (position & 0xFFFF_FFFF) as u32
}
