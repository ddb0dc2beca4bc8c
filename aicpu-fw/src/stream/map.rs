//! The tensor map: which task touches which bytes of which tensor.
//!
//! ```text
//! tensor's address -> bucket -> newest writer -> older -> .. -> position behind the watermark: the end
//!                          `--> newest reader -> older -> ..
//! ```
//! Entries are given out in the order of the tasks, and retire in it. A chain runs from new to old, so the first
//! entry that is retired ends it: stale entries cost nothing. A task that only reads looks at the writers; one that
//! writes looks at both chains (read after write, write after write, write after read).
//!
//! **The rule of the direct edges.** Task `t` has an edge from an earlier task `p` if and only if an access of `p` and one
//! of `t` have a byte of a tensor in common, one of them writes, and the access of `p` is not *hidden*. An access is hidden
//! once a write of a later task of derived dependencies *covers* it ([`Region::covers`]): whoever meets the hidden access
//! meets that write as well, and that write waits for the hidden access; the order is transitive.

use pto_abi::stream::{MAX_RANK, MapBucket, MapCell, MapEntry};
use pto_abi::sync::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::grid::Grid;
use super::overlap::{Undecided, overlap};
use super::region::{Dim, Region};

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
pub struct Access {
    /// The tensor.
    pub base: u64,
    /// The bytes.
    pub region: Region,
    /// What it does.
    pub kind: AccessKind,
}

impl Access {
    /// Entries that it takes.
    #[must_use]
    #[inline]
    pub fn entries(&self) -> u64 {
        if self.region.dims().len() > 1 { 2 } else { 1 }
    }
}

/// Whether a walk unlinks what the access covers.
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

/// See the module.
#[derive(Clone, Copy)]
pub struct TensorMap<'a> {
    buckets: &'a [MapBucket],
    cells: &'a [MapCell],
    entries: &'a [MapEntry],
    mask: u64,
    bucket_shift: u32,
    cell_shift: u32,
    /// Positions given out; the number of the next one.
    head: u64,
    /// Entries before this position are retired.
    tail: u64,
}

/// Why a walk ended early.
enum Stop<E> {
    Undecided,
    Found(E),
}

/// Which chain a walk follows.
#[derive(Clone, Copy)]
enum Chain {
    Bucket,
    Cell,
}

impl Chain {
    #[inline]
    const fn link(self, entry: &MapEntry) -> &AtomicU32 {
        match self {
            Self::Bucket => &entry.next,
            Self::Cell => &entry.next_in_cell,
        }
    }
}

impl<'a> TensorMap<'a> {
    /// An empty map on this memory, with positions from `first` on; `None`: the tables are too small, or no powers of
    /// two.
    #[must_use]
    pub fn new(
        (buckets, cells): (&'a [MapBucket], &'a [MapCell]),
        entries: &'a [MapEntry],
        first: u64,
    ) -> Option<Self> {
        let sizes = [buckets.len(), cells.len(), entries.len()];
        if sizes.into_iter().any(|size| !size.is_power_of_two() || size < 2) {
            return None;
        }
        // A position that is never live: it is older than all entries that will be.
        let none = low_half(first.wrapping_sub(1));
        for bucket in buckets {
            for chain in [&bucket.writers, &bucket.wide_writers, &bucket.old_writers] {
                chain.store(none, Relaxed);
            }
            for chain in [&bucket.readers, &bucket.wide_readers, &bucket.old_readers] {
                chain.store(none, Relaxed);
            }
            bucket.pitch.store(0, Relaxed);
            bucket.chosen.store(0, Relaxed);
        }
        for cell in cells {
            cell.writers.store(none, Relaxed);
            cell.readers.store(none, Relaxed);
        }
        let bucket_shift = 64 - buckets.len().checked_ilog2()?;
        let cell_shift = 64 - cells.len().checked_ilog2()?;
        let mask = entries.len() as u64 - 1;
        Some(Self {
            buckets,
            cells,
            entries,
            mask,
            bucket_shift,
            cell_shift,
            head: first,
            tail: first,
        })
    }

    /// Entries given out so far.
    #[must_use]
    #[inline]
    pub const fn head(&self) -> u64 {
        self.head
    }

    /// Entries in use.
    #[must_use]
    #[inline]
    pub const fn in_use(&self) -> u64 {
        self.head - self.tail
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
        self.in_use() + count <= self.capacity()
    }

    /// Everything before `position` is retired.
    #[inline]
    pub const fn retire(&mut self, position: u64) {
        self.tail = position;
    }

    /// Hands the tasks of the accesses that conflict with this one to `found`, newest first within a chain; a task may
    /// come more than once.
    ///
    /// # Errors
    /// That of `found`; `undecided` when two regions cannot be compared.
    #[inline]
    pub fn conflicts<E>(
        &self,
        access: &Access,
        hide: Hide,
        undecided: E,
        mut found: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(bucket) = self.bucket(access.base) else { return Ok(()) };
        match self.look(bucket, access, hide, &mut found) {
            Ok(misses) if misses > MISSES => {
                self.choose_grid(bucket, &access.region);
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(Stop::Undecided) => Err(undecided),
            Err(Stop::Found(error)) => Err(error),
        }
    }

    /// How many accesses were passed in vain.
    #[inline]
    fn look<E>(
        &self,
        bucket: &'a MapBucket,
        access: &Access,
        hide: Hide,
        found: &mut impl FnMut(u64) -> Result<(), E>,
    ) -> Result<u32, Stop<E>> {
        let writes = access.kind == AccessKind::Write;
        let cell = Grid::of(bucket).and_then(|grid| grid.cell_of(&access.region));
        let Some(cell) = cell.and_then(|cell| self.cell(access.base, cell)) else {
            let mut misses = self.walk(&bucket.writers, Chain::Bucket, access, hide, found)?;
            if writes {
                misses += self.walk(&bucket.readers, Chain::Bucket, access, hide, found)?;
            }
            return Ok(misses);
        };
        self.walk(&cell.writers, Chain::Cell, access, hide, found)?;
        self.walk(&bucket.old_writers, Chain::Bucket, access, hide, found)?;
        let mut misses = self.walk(&bucket.wide_writers, Chain::Cell, access, hide, found)?;
        if writes {
            self.walk(&cell.readers, Chain::Cell, access, hide, found)?;
            self.walk(&bucket.old_readers, Chain::Bucket, access, hide, found)?;
            misses += self.walk(&bucket.wide_readers, Chain::Cell, access, hide, found)?;
        }
        Ok(misses)
    }

    #[inline]
    fn walk<E>(
        &self,
        first: &'a AtomicU32,
        chain: Chain,
        access: &Access,
        hide: Hide,
        found: &mut impl FnMut(u64) -> Result<(), E>,
    ) -> Result<u32, Stop<E>> {
        let hides = hide == Hide::Covered && access.kind == AccessKind::Write;
        let (mut link, mut misses) = (first, 0);
        while let Some(entry) = self.live(link.load(Relaxed)) {
            let (low, high) = (entry.low.load(Relaxed), entry.high.load(Relaxed));
            let is_near = low < access.region.high && access.region.low < high;
            if is_near && entry.base.load(Relaxed) == access.base {
                let region = self.region(entry, link.load(Relaxed));
                if overlap(&access.region, &region).map_err(|Undecided| Stop::Undecided)? {
                    found(entry.task.load(Relaxed)).map_err(Stop::Found)?;
                    if hides && access.region.covers(&region) {
                        entry.high.store(0, Relaxed);
                        link.store(chain.link(entry).load(Relaxed), Relaxed);
                        continue;
                    }
                }
            } else if high == 0 {
                // Hidden, by a walk of another chain.
                link.store(chain.link(entry).load(Relaxed), Relaxed);
                continue;
            }
            misses += 1;
            link = chain.link(entry);
        }
        Ok(misses)
    }

    /// Sorts what comes from now on by the grid around `region`, if there is one. What is there already stays in the
    /// chain of the bucket; while some of it is live, no other grid is chosen.
    #[cold]
    #[inline(never)]
    fn choose_grid(&self, bucket: &'a MapBucket, region: &Region) {
        let is_fresh = bucket.pitch.load(Relaxed) > 0 && bucket.chosen.load(Relaxed) > self.tail;
        let Some(grid) = Grid::around(region).filter(|_| !is_fresh) else { return };
        grid.store(bucket);
        bucket.chosen.store(self.head, Relaxed);
        bucket.old_writers.store(bucket.writers.load(Relaxed), Relaxed);
        bucket.old_readers.store(bucket.readers.load(Relaxed), Relaxed);
        let none = low_half(self.tail.wrapping_sub(1));
        bucket.wide_writers.store(none, Relaxed);
        bucket.wide_readers.store(none, Relaxed);
    }

    /// Notes an access of `task`. There is room for it.
    #[inline]
    pub fn insert(&mut self, access: &Access, task: u64) {
        let position = self.head;
        let Some((bucket, entry)) = self.bucket(access.base).zip(self.entry(position)) else {
            return;
        };
        let region = &access.region;
        entry.base.store(access.base, Relaxed);
        entry.low.store(region.low, Relaxed);
        entry.high.store(region.high, Relaxed);
        entry.task.store(task, Relaxed);
        let link = low_half(position);
        let is_write = access.kind == AccessKind::Write;
        let chain = if is_write { &bucket.writers } else { &bucket.readers };
        entry.next.store(chain.load(Relaxed), Relaxed);
        chain.store(link, Relaxed);
        if let Some(grid) = Grid::of(bucket) {
            let cell = grid.cell_of(region).and_then(|cell| self.cell(access.base, cell));
            let chain = match (cell, access.kind) {
                (Some(cell), AccessKind::Write) => &cell.writers,
                (Some(cell), AccessKind::Read) => &cell.readers,
                (None, AccessKind::Write) => &bucket.wide_writers,
                (None, AccessKind::Read) => &bucket.wide_readers,
            };
            entry.next_in_cell.store(chain.load(Relaxed), Relaxed);
            chain.store(link, Relaxed);
        }
        self.head = position + 1;
        let dims = region.dims();
        entry.rank.store(u32::try_from(dims.len()).unwrap_or(0), Relaxed);
        if let Some(inner) = dims.first() {
            entry.run.store(region.run, Relaxed);
            entry.stride.store(inner.stride, Relaxed);
            entry.count.store(inner.count, Relaxed);
            self.insert_outer(dims.get(1..).unwrap_or(&[]), position + 1);
        }
    }

    /// The dimensions beyond the first one stand in an entry of their own.
    fn insert_outer(&mut self, dims: &[Dim], position: u64) {
        let Some(entry) = self.entry(position).filter(|_| !dims.is_empty()) else { return };
        for (dim, (stride, count)) in dims.iter().zip(outer_fields(entry)) {
            stride.store(dim.stride, Relaxed);
            count.0.store(count.1.put(count.0.load(Relaxed), dim.count), Relaxed);
        }
        self.head = position + 1;
    }

    /// The region of the entry that `link` leads to.
    #[inline]
    fn region(&self, entry: &MapEntry, link: u32) -> Region {
        let (low, high) = (entry.low.load(Relaxed), entry.high.load(Relaxed));
        let rank = entry.rank.load(Relaxed) as usize;
        if rank == 0 {
            return Region::from_parts(low, high, high - low, &[]);
        }
        let mut dims = [Dim::default(); MAX_RANK];
        dims[0] = Dim { stride: entry.stride.load(Relaxed), count: entry.count.load(Relaxed) };
        let outer = self.entry(u64::from(link.wrapping_add(1))).filter(|_| rank > 1);
        if let Some(outer) = outer {
            for (dim, (stride, count)) in dims.iter_mut().skip(1).zip(outer_fields(outer)) {
                let count = count.1.get(count.0.load(Relaxed));
                *dim = Dim { stride: stride.load(Relaxed), count };
            }
        }
        Region::from_parts(low, high, entry.run.load(Relaxed), dims.get(..rank).unwrap_or(&[]))
    }

    /// The entry of a link, unless it is retired. A link that is 2^32 positions old may be taken for a young one: it then
    /// leads to some live entry, and every entry that a walk comes to is compared as a whole.
    #[inline]
    fn live(&self, link: u32) -> Option<&'a MapEntry> {
        let age = low_half(self.head).wrapping_sub(link);
        if u64::from(age.wrapping_sub(1)) < self.in_use() { self.entry(link.into()) } else { None }
    }

    /// The ring is a power of two below 2^32: the low half of a position suffices.
    #[inline]
    fn entry(&self, position: u64) -> Option<&'a MapEntry> {
        self.entries.get(usize::try_from(position & self.mask).ok()?)
    }

    #[inline]
    fn bucket(&self, base: u64) -> Option<&'a MapBucket> {
        // Tensors are aligned: the low bits say nothing.
        self.buckets.get(usize::try_from(spread(base >> 4) >> self.bucket_shift).ok()?)
    }

    #[inline]
    fn cell(&self, base: u64, cell: u64) -> Option<&'a MapCell> {
        let hash = spread(spread(base >> 4) ^ cell.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        self.cells.get(usize::try_from(hash >> self.cell_shift).ok()?)
    }
}

/// The multiplier is 2^64 divided by the golden ratio: neighbours go to places far apart.
#[inline]
const fn spread(key: u64) -> u64 {
    key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[inline]
const fn low_half(position: u64) -> u32 {
    (position & 0xFFFF_FFFF) as u32
}

/// Which half of a word.
#[derive(Clone, Copy)]
enum Half {
    Low,
    High,
}

impl Half {
    const fn get(self, word: u64) -> u32 {
        let shifted = match self {
            Self::Low => word,
            Self::High => word >> 32,
        };
        (shifted & 0xFFFF_FFFF) as u32
    }

    const fn put(self, word: u64, half: u32) -> u64 {
        match self {
            Self::Low => word & !0xFFFF_FFFF | half as u64,
            Self::High => word & 0xFFFF_FFFF | (half as u64) << 32,
        }
    }
}

/// Where an entry keeps the dimensions beyond the first one: strides, and counts in halves of words.
fn outer_fields(entry: &MapEntry) -> [(&AtomicU64, (&AtomicU64, Half)); MAX_RANK - 1] {
    [
        (&entry.base, (&entry.run, Half::Low)),
        (&entry.low, (&entry.run, Half::High)),
        (&entry.high, (&entry.stride, Half::Low)),
        (&entry.task, (&entry.stride, Half::High)),
    ]
}
