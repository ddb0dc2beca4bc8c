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

use pto_abi::stream::{MAX_RANK, MapBucket, MapEntry};
use pto_abi::sync::{AtomicU64, Ordering::Relaxed};

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

/// See the module.
#[derive(Clone, Copy)]
pub struct TensorMap<'a> {
    buckets: &'a [MapBucket],
    entries: &'a [MapEntry],
    mask: u64,
    bucket_shift: u32,
    /// Positions given out; the number of the next one.
    head: u64,
    /// Entries before this position are retired.
    tail: u64,
}

impl<'a> TensorMap<'a> {
    /// An empty map on this memory, with positions from `first` on; `None`: the tables are too small, or no powers of
    /// two.
    #[must_use]
    pub fn new(buckets: &'a [MapBucket], entries: &'a [MapEntry], first: u64) -> Option<Self> {
        if !buckets.len().is_power_of_two() || !entries.len().is_power_of_two() || buckets.len() < 2
        {
            return None;
        }
        for bucket in buckets {
            bucket.writers.store(0, Relaxed);
            bucket.readers.store(0, Relaxed);
        }
        let bucket_shift = 64 - buckets.len().ilog2();
        let mask = entries.len() as u64 - 1;
        Some(Self { buckets, entries, mask, bucket_shift, head: first, tail: first })
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
    ) -> Result<(), E>
    where
        E: Copy,
    {
        let Some(bucket) = self.bucket(access.base) else { return Ok(()) };
        self.walk(&bucket.writers, access, hide, &mut found).map_err(|e| e.unwrap_or(undecided))?;
        if access.kind == AccessKind::Write {
            self.walk(&bucket.readers, access, hide, &mut found)
                .map_err(|e| e.unwrap_or(undecided))?;
        }
        Ok(())
    }

    /// `Err(None)`: undecided.
    #[inline]
    fn walk<E>(
        &self,
        first: &'a AtomicU64,
        access: &Access,
        hide: Hide,
        found: &mut impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), Option<E>> {
        let hides = hide == Hide::Covered && access.kind == AccessKind::Write;
        let mut link = first;
        while let Some(entry) = self.live(link.load(Relaxed)) {
            if entry.base.load(Relaxed) == access.base {
                let (low, high) = (entry.low.load(Relaxed), entry.high.load(Relaxed));
                if low < access.region.high && access.region.low < high {
                    let region = self.region(entry, link.load(Relaxed));
                    if overlap(&access.region, &region).map_err(|Undecided| None)? {
                        found(entry.task.load(Relaxed)).map_err(Some)?;
                        if hides && access.region.covers(&region) {
                            link.store(entry.next.load(Relaxed), Relaxed);
                            continue;
                        }
                    }
                }
            }
            link = &entry.next;
        }
        Ok(())
    }

    /// Notes an access of `task`. There is room for it.
    #[inline]
    pub fn insert(&mut self, access: &Access, task: u64) {
        let position = self.head;
        let Some((bucket, entry)) = self.bucket(access.base).zip(self.entry(position)) else {
            return;
        };
        let chain = match access.kind {
            AccessKind::Read => &bucket.readers,
            AccessKind::Write => &bucket.writers,
        };
        let region = &access.region;
        entry.base.store(access.base, Relaxed);
        entry.low.store(region.low, Relaxed);
        entry.high.store(region.high, Relaxed);
        entry.task.store(task, Relaxed);
        entry.next.store(chain.load(Relaxed), Relaxed);
        chain.store(position + 1, Relaxed);
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

    #[inline]
    fn region(&self, entry: &MapEntry, link: u64) -> Region {
        let (low, high) = (entry.low.load(Relaxed), entry.high.load(Relaxed));
        let rank = entry.rank.load(Relaxed) as usize;
        if rank == 0 {
            return Region::from_parts(low, high, high - low, &[]);
        }
        let mut dims = [Dim::default(); MAX_RANK];
        dims[0] = Dim { stride: entry.stride.load(Relaxed), count: entry.count.load(Relaxed) };
        if let Some(outer) = self.entry(link).filter(|_| rank > 1) {
            for (dim, (stride, count)) in dims.iter_mut().skip(1).zip(outer_fields(outer)) {
                *dim =
                    Dim { stride: stride.load(Relaxed), count: count.1.get(count.0.load(Relaxed)) };
            }
        }
        Region::from_parts(low, high, entry.run.load(Relaxed), dims.get(..rank).unwrap_or(&[]))
    }

    /// The entry of a link, unless it is retired or there is none.
    #[inline]
    fn live(&self, link: u64) -> Option<&'a MapEntry> {
        // Links are positions plus 1. A position behind `tail` is retired, and everything older is as well.
        if link > self.tail { self.entry(link - 1) } else { None }
    }

    #[inline]
    fn entry(&self, position: u64) -> Option<&'a MapEntry> {
        self.entries.get(usize::try_from(position & self.mask).ok()?)
    }

    #[inline]
    fn bucket(&self, base: u64) -> Option<&'a MapBucket> {
        // Tensors are aligned: the low bits say nothing. The multiplier is 2^64 divided by the golden ratio.
        let hash = (base >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.bucket_shift;
        self.buckets.get(usize::try_from(hash).ok()?)
    }
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
