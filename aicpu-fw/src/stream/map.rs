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
//! once a write of a later task of derived dependencies *covers* it ([`Region::covers`]): whoever meets the hidden access
//! meets that write as well, and that write waits for the hidden access; the order is transitive. For the same reason a
//! write needs no edge from an earlier write if it has one from a task that has read just what that one wrote: the
//! accesses in a record are those of tasks that have waited for its writer.

use core::cell::Cell;

use pto_abi::stream::{MapEntry, MapGrid, MapRecord, TensorView};
use pto_abi::sync::{AtomicU32, Ordering::Relaxed};

use super::grid::Divisor;
use super::overlap::{Undecided, overlap};
use super::region::{Region, tile, tiles_meet};

/// Whether an access changes the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// It only reads.
    Read,
    /// It writes, and may read as well.
    Write,
}

/// One access of one task.
#[derive(Clone, Copy, Debug)]
pub struct Access<'r> {
    /// The tensor.
    pub(super) base: u64,
    /// What it does.
    pub(super) kind: AccessKind,
    /// The first byte, and the one behind the last one.
    pub(super) low: u64,
    pub(super) high: u64,
    /// [`Region::rows`]; `MANY`: the region has none.
    rows: u64,
    region: Option<&'r Region>,
}

/// In `rows`: more than one stride, or larger ones.
const MANY: u64 = u64::MAX;

impl<'r> Access<'r> {
    /// Entries that it takes at most.
    pub const MAX_ENTRIES: u64 = 2;

    /// An access to a region of the tensor at `base`.
    #[must_use]
    pub fn new(base: u64, kind: AccessKind, region: &'r Region) -> Self {
        let rows = region.rows().unwrap_or(MANY);
        Self { base, kind, low: region.low, high: region.high, rows, region: Some(region) }
    }

    /// An access to a view; `None`: its region has to be worked out for [`new`](Self::new).
    #[inline]
    #[must_use]
    pub fn simple(view: &TensorView<'_>, kind: AccessKind) -> Option<Self> {
        let (base, low) = (view.base().0, view.offset_bytes());
        let (high, rows) = if view.is_dense() {
            (low + view.span_bytes(), 0)
        } else {
            let (reach, rows) = tile(view)?;
            (low + reach, rows)
        };
        Some(Self { base, kind, low, high, rows, region: None })
    }

    /// An access to all bytes from `low` up to `high`.
    #[must_use]
    pub const fn run(base: u64, kind: AccessKind, low: u64, high: u64) -> Self {
        Self { base, kind, low, high, rows: 0, region: None }
    }

    #[inline]
    pub(super) const fn is_run(&self) -> bool {
        self.rows == 0
    }

    /// Rows and bytes of each, where they are `pitch` apart; `None`: they are not.
    #[inline]
    pub(super) fn rows_of(&self, pitch: Divisor) -> Option<(u64, u64)> {
        match (self.rows, self.rows >> 32) {
            (0, _) => Some((1, self.high - self.low)),
            // Strides of 2^32 and more are not among the rows, and make no grid.
            (rows, stride) if stride == pitch.get() && rows != MANY => {
                let run = rows & 0xFFFF_FFFF;
                Some((pitch.divide(self.high - self.low - run).0 + 1, run))
            }
            _ => None,
        }
    }

    /// The bytes.
    pub(super) fn region(&self) -> Region {
        match self.region {
            Some(region) => *region,
            None => Region::of_rows(self.low, self.high, self.rows),
        }
    }
}

/// Whether what an access covers is hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hide {
    /// The task that looks waits for everything that it finds.
    Covered,
    /// It does not.
    Nothing,
}

/// Accesses that a walk passes in vain before the accesses of the tensor are sorted by a grid. 24 comparisons of bounds cost
/// about as much as what a grid costs a submission.
const MISSES: u32 = 24;
/// Nobody's base address.
pub(super) const NOBODY: u64 = u64::MAX;
/// No record.
pub(super) const NONE: u32 = u32::MAX;

/// The tables of the map: powers of two, as many grids as tensors.
#[derive(Clone, Copy)]
pub struct MapMemory<'a> {
    /// Records of tensors.
    pub tensors: &'a [MapRecord],
    /// Records of cells.
    pub cells: &'a [MapRecord],
    /// Grids of tensors.
    pub grids: &'a [MapGrid],
    /// Accesses that stand in no record.
    pub entries: &'a [MapEntry],
}

/// See the module.
pub struct TensorMap<'a> {
    pub(super) memory: MapMemory<'a>,
    shift: u32,
    cell_shift: u32,
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
    pub(super) tensor: &'a MapRecord,
    pub(super) at: u32,
    pub(super) cells: Cells<'a>,
}

/// Which cells of its tensor an access may meet.
#[derive(Clone, Copy)]
pub(super) enum Cells<'a> {
    /// The tensor has no grid.
    NoGrid,
    /// The access is within this one.
    One(&'a MapRecord, u32),
    /// The access is within none.
    All,
}

/// Why a look ended early.
pub(super) enum Stop<E> {
    Undecided,
    Found(E),
}

/// One look for one access.
pub(super) struct Look<'m, 'a, F> {
    pub(super) map: &'m TensorMap<'a>,
    pub(super) access: &'m Access<'m>,
    pub(super) hides: bool,
    pub(super) now: Now,
    pub(super) found: F,
    pub(super) misses: u32,
}

/// The number of the task that looks, and how many before it may be under way.
#[derive(Clone, Copy)]
pub(super) struct Now {
    number: u64,
    low: u32,
    alive: u32,
}

impl Now {
    /// The number of a task that may be under way and is not the one that looks; `None`: it is not.
    #[inline]
    pub(super) const fn producer(self, task: u32) -> Option<u64> {
        let age = self.low.wrapping_sub(task);
        if age.wrapping_sub(1) < self.alive { Some(self.number - age as u64) } else { None }
    }

    /// What no task under way is called, for a long time to come.
    #[inline]
    pub(super) const fn gone(self) -> u32 {
        self.low ^ 1 << 31
    }
}

impl<'a> TensorMap<'a> {
    /// An empty map on this memory, for tasks and with positions from `first` on; `None`: the tables are too small, or no
    /// powers of two.
    #[must_use]
    pub fn new(memory: MapMemory<'a>, first: u64) -> Option<Self> {
        let count = memory.tensors.len();
        let entries = memory.entries.len();
        let cells = memory.cells.len();
        if [count, entries, cells].into_iter().any(|size| !size.is_power_of_two() || size < 2)
            || memory.grids.len() != count
        {
            return None;
        }
        let shift = 64 - count.checked_ilog2()?;
        let cell_shift = 64 - cells.checked_ilog2()?;
        let mask = entries as u64 - 1;
        let [head, tail, watermark] = [first; 3].map(Cell::new);
        let map = Self { memory, shift, cell_shift, mask, head, tail, watermark };
        map.empty(memory.tensors, 0);
        // The cells are emptied when the first grid is chosen.
        memory.grids.first()?.has_cells.store(0, Relaxed);
        Some(map)
    }

    /// Empties records; `link` is what tensors and cells begin with.
    pub(super) fn empty(&self, records: &[MapRecord], link: u32) {
        // A position that is never live: it is older than all entries that will be.
        let none = low_half(self.tail.get().wrapping_sub(1));
        let gone = self.now(self.watermark.get()).gone();
        for record in records {
            record.base.store(NOBODY, Relaxed);
            record.write_chain.store(none, Relaxed);
            record.read_chain.store(none, Relaxed);
            record.forget(gone);
            record.next.store(NONE, Relaxed);
            record.link.store(link, Relaxed);
        }
    }

    /// Entries given out so far.
    #[must_use]
    #[inline]
    pub const fn head(&self) -> u64 {
        self.head.get()
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
    const fn now(&self, number: u64) -> Now {
        // The window is below 2^25.
        let alive = low_half(number.wrapping_sub(self.watermark.get()));
        Now { number, low: low_half(number), alive }
    }

    /// Where to look for what an access meets, and to note it.
    #[inline]
    #[must_use]
    pub fn place(&self, access: &Access<'_>) -> Option<Place<'a>> {
        // Tensors are aligned: the low bits say nothing.
        let at = self.index(spread(access.base >> 4));
        let tensor = self.memory.tensors.get(at as usize)?;
        let has_grid = tensor.link.load(Relaxed) != 0;
        let cells = if has_grid { self.cells_of(at, access) } else { Cells::NoGrid };
        Some(Place { tensor, at, cells })
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
            _ => place.tensor,
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
        let has_cells = self.memory.grids.first().is_some_and(|g| g.has_cells.load(Relaxed) != 0);
        let cells = if has_cells { self.memory.cells } else { &[] };
        for record in self.memory.tensors.iter().chain(cells) {
            for task in record.tasks() {
                if now.producer(task.load(Relaxed)).is_none() {
                    task.store(now.gone(), Relaxed);
                }
            }
        }
    }

    /// A place in the table of tensors.
    #[inline]
    const fn index(&self, hash: u64) -> u32 {
        low_half(hash >> self.shift)
    }

    /// A place in the table of cells.
    #[inline]
    pub(super) const fn cell_index(&self, hash: u64) -> u32 {
        low_half(hash >> self.cell_shift)
    }

    /// The ring is a power of two below 2^32: the low half of a position suffices.
    #[inline]
    pub(super) fn entry(&self, position: u64) -> Option<&'a MapEntry> {
        self.memory.entries.get(usize::try_from(position & self.mask).ok()?)
    }
}

impl<F> Look<'_, '_, F> {
    /// Everything that stands at one record.
    #[inline]
    pub(super) fn record<E>(&mut self, record: &MapRecord) -> Result<(), Stop<E>>
    where
        F: FnMut(u64) -> Result<(), E>,
    {
        if record.base.load(Relaxed) == self.access.base {
            self.region(record)?;
        }
        self.chain(&record.write_chain)?;
        if self.access.kind == AccessKind::Write {
            self.chain(&record.read_chain)?;
        }
        Ok(())
    }

    /// The accesses to the region of a record.
    #[inline]
    fn region<E>(&mut self, record: &MapRecord) -> Result<(), Stop<E>>
    where
        F: FnMut(u64) -> Result<(), E>,
    {
        let access = self.access;
        let (low, high) = (record.low.load(Relaxed), record.high.load(Relaxed));
        if access.low >= high || low >= access.high {
            return Ok(());
        }
        let rows = record.rows.load(Relaxed);
        let is_same = access.low == low && access.high == high && access.rows == rows;
        if !is_same && access.rows | rows != 0 && !self.meets(low, high, rows)? {
            return Ok(());
        }
        if access.kind == AccessKind::Read {
            return self.task(&record.writer).map(|_| ());
        }
        let mut is_read = false;
        for reader in &record.readers {
            is_read |= self.task(reader)?;
        }
        if !is_read {
            self.task(&record.writer)?;
        }
        let covers = is_same || access.is_run() && access.low <= low && high <= access.high;
        if self.hides && covers {
            record.forget(self.now.gone());
        }
        Ok(())
    }

    #[inline(never)]
    fn meets<E>(&self, low: u64, high: u64, rows: u64) -> Result<bool, Stop<E>> {
        let access = self.access;
        if access.rows == rows && rows != MANY {
            return Ok(tiles_meet((access.low, access.high), (low, high), rows));
        }
        let other = Region::of_rows(low, high, rows);
        overlap(&self.access.region(), &other).map_err(|Undecided| Stop::Undecided)
    }

    /// Whether a task may be under way; then it has been found.
    #[inline]
    pub(super) fn task<E>(&mut self, task: &AtomicU32) -> Result<bool, Stop<E>>
    where
        F: FnMut(u64) -> Result<(), E>,
    {
        match self.now.producer(task.load(Relaxed)) {
            Some(producer) => (self.found)(producer).map(|()| true).map_err(Stop::Found),
            None => Ok(false),
        }
    }
}

/// What the builder does with a record.
pub(super) trait Keep {
    /// Its tasks.
    fn tasks(&self) -> impl Iterator<Item = &AtomicU32>;
    /// There is no access to its region any more.
    fn forget(&self, gone: u32);
    /// Whether no task under way has touched its region.
    fn is_free(&self, now: Now) -> bool;
    /// Notes an access; `false`: it is to another region, or there are too many readers.
    fn take(&self, access: &Access<'_>, now: Now) -> bool;
}

impl Keep for MapRecord {
    #[inline]
    fn tasks(&self) -> impl Iterator<Item = &AtomicU32> {
        self.readers.iter().chain([&self.writer])
    }

    #[inline]
    fn forget(&self, gone: u32) {
        self.writer.store(gone, Relaxed);
        for reader in &self.readers {
            reader.store(gone, Relaxed);
        }
    }

    #[inline]
    fn is_free(&self, now: Now) -> bool {
        self.tasks().all(|task| now.is_gone(task))
    }

    #[inline]
    fn take(&self, access: &Access<'_>, now: Now) -> bool {
        if access.rows == MANY {
            return false;
        }
        let is_here = self.base.load(Relaxed) == access.base
            && self.low.load(Relaxed) == access.low
            && self.high.load(Relaxed) == access.high
            && self.rows.load(Relaxed) == access.rows;
        if !is_here {
            if !self.is_free(now) {
                return false;
            }
            self.base.store(access.base, Relaxed);
            self.low.store(access.low, Relaxed);
            self.high.store(access.high, Relaxed);
            self.rows.store(access.rows, Relaxed);
            self.forget(now.gone());
        }
        if access.kind == AccessKind::Write {
            let is_gone = now.is_gone(&self.writer);
            if is_gone {
                self.writer.store(now.low, Relaxed);
            }
            return is_gone;
        }
        let place = self.readers.iter().find(|task| now.is_gone(task));
        if let Some(place) = place {
            place.store(now.low, Relaxed);
        }
        place.is_some()
    }
}

impl Now {
    /// Whether a task has completed. The one that looks has not.
    #[inline]
    pub(super) fn is_gone(self, task: &AtomicU32) -> bool {
        let age = self.low.wrapping_sub(task.load(Relaxed));
        age > self.alive
    }
}

/// The multiplier is 2^64 divided by the golden ratio: neighbours go to places far apart.
#[inline]
pub(super) const fn spread(key: u64) -> u64 {
    key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[inline]
pub(super) const fn low_half(position: u64) -> u32 {
    (position & 0xFFFF_FFFF) as u32
}
