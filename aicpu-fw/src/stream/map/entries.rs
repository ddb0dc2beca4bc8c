//! Accesses that are in no row: chains of entries, newest first.
//!
//! Entries come out of a ring, in the order of the tasks, and retire in that order. A chain runs from new to old, so the first
//! entry that is retired ends the chain: stale entries cost nothing.
//!
//! Invariants: positions only grow, `tail <= head`, and no more entries are in use than there are; a chain is linked by the
//! low halves of positions.

use core::cell::Cell;

use pto_abi::limits::MAX_RANK;
use pto_abi::stream::MapEntry;
use pto_abi::sync::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::super::region::{Dim, Region};
use super::super::rings::{before, low_half};
use super::access::TensorAccess;

/// See the file.
pub(super) struct Entries<'a> {
    entries: &'a [MapEntry],
    mask: u64,
    /// The number of the next position.
    head: Cell<u64>,
    /// Entries before this position are retired.
    tail: Cell<u64>,
}

impl<'a> Entries<'a> {
    /// An empty ring, with positions from `first` on; `None`: it has fewer than two entries, or no power of two.
    pub(super) fn new(entries: &'a [MapEntry], first: u64) -> Option<Self> {
        let count = entries.len();
        let is_usable = count.is_power_of_two() && count >= 2;
        let [head, tail] = [first; 2].map(Cell::new);
        is_usable.then_some(Self { entries, mask: count as u64 - 1, head, tail })
    }

    /// The next position.
    #[inline]
    pub(super) const fn head(&self) -> u64 {
        self.head.get()
    }

    /// Entries before this position are retired.
    #[inline]
    pub(super) const fn tail(&self) -> u64 {
        self.tail.get()
    }

    /// Entries in use.
    #[inline]
    pub(super) const fn in_use(&self) -> u64 {
        self.head.get() - self.tail.get()
    }

    /// Entries that were given out from the position with this low half on.
    pub(super) const fn since_low(&self, position: u32) -> u64 {
        self.head.get() - before(self.head.get(), position)
    }

    /// Entries that it holds.
    #[inline]
    pub(super) const fn capacity(&self) -> u64 {
        self.mask + 1
    }

    /// Entries before `position` are retired.
    #[inline]
    pub(super) fn retire(&self, position: u64) {
        self.tail.set(position);
    }

    /// Head and tail.
    pub(super) const fn positions(&self) -> [u64; 2] {
        [self.head.get(), self.tail.get()]
    }

    /// A link that never leads to a live entry: it is older than all entries that will be.
    pub(super) const fn dead_link(&self) -> u32 {
        low_half(self.tail.get().wrapping_sub(1))
    }

    /// Gives out the entry at the head.
    #[inline]
    fn advance(&self) {
        self.head.set(self.head.get() + 1);
    }

    /// The ring is a power of two below 2^32: the low half of a position suffices.
    #[inline]
    fn entry(&self, position: u64) -> Option<&'a MapEntry> {
        self.entries.get(usize::try_from(position & self.mask).ok()?)
    }

    /// Whether a link leads to an entry that is not retired.
    #[inline]
    pub(super) const fn is_live(&self, link: u32) -> bool {
        self.live().holds(link)
    }

    /// Those that are not retired now.
    #[inline]
    pub(super) const fn live(&self) -> Live<'a> {
        let (entries, mask) = (self.entries, self.mask);
        Live { entries, mask, head: low_half(self.head.get()), in_use: self.in_use() }
    }

    /// Puts an access in front of a chain. There is room for it.
    pub(super) fn insert(&self, chain: &AtomicU32, access: &TensorAccess<'_>, task: u64) {
        let position = self.head();
        let Some(entry) = self.entry(position) else { return };
        entry.base.store(access.base, Relaxed);
        entry.low.store(access.low, Relaxed);
        entry.high.store(access.high, Relaxed);
        entry.task.store(low_half(task), Relaxed);
        entry.next.store(chain.load(Relaxed), Relaxed);
        chain.store(low_half(position), Relaxed);
        self.advance();
        if access.is_run() {
            entry.rank.store(0, Relaxed);
            return;
        }
        match access.even_rows() {
            Some((run, rows)) => store_rows(entry, (1, run), &rows),
            None => self.insert_region(entry, &access.region(), position + 1),
        }
    }

    /// A region that one word does not describe; `next` is the position of the entry after its own.
    #[inline(never)]
    fn insert_region(&self, entry: &MapEntry, region: &Region, next: u64) {
        let dims = region.dims();
        let rank = u32::try_from(dims.len()).unwrap_or(0);
        let Some((inner, outer)) = dims.split_first() else {
            return entry.rank.store(rank, Relaxed);
        };
        store_rows(entry, (rank, region.run), inner);
        self.insert_outer(outer, next);
    }

    /// The dimensions beyond the first one are in an entry of their own.
    fn insert_outer(&self, dims: &[Dim], position: u64) {
        let Some(entry) = self.entry(position).filter(|_| !dims.is_empty()) else { return };
        for (dim, (stride, count)) in dims.iter().zip(outer_fields(entry)) {
            stride.store(dim.stride, Relaxed);
            count.store(dim.count, Relaxed);
        }
        self.advance();
    }

    /// The region of the entry that `link` leads to.
    #[inline]
    pub(super) fn region(&self, entry: &MapEntry, link: u32) -> Region {
        let (low, high) = (entry.low.load(Relaxed), entry.high.load(Relaxed));
        let rank = entry.rank.load(Relaxed) as usize;
        if rank == 0 {
            return Region::run(low, high);
        }
        let mut dims = [Dim::default(); MAX_RANK];
        dims[0] = Dim { stride: entry.stride.load(Relaxed), count: entry.count.load(Relaxed) };
        let outer = self.entry(u64::from(link.wrapping_add(1))).filter(|_| rank > 1);
        if let Some(outer) = outer {
            for (dim, (stride, count)) in dims.iter_mut().skip(1).zip(outer_fields(outer)) {
                *dim = Dim { stride: stride.load(Relaxed), count: count.load(Relaxed) };
            }
        }
        Region::from_parts(low, high, entry.run.load(Relaxed), dims.get(..rank).unwrap_or(&[]))
    }
}

/// The entries that are not retired at one moment: a walk along a chain adds none and retires none.
#[derive(Clone, Copy)]
pub(super) struct Live<'a> {
    entries: &'a [MapEntry],
    mask: u64,
    /// The low half of the next position.
    head: u32,
    in_use: u64,
}

impl<'a> Live<'a> {
    /// Whether a link leads to one of them. A link that is 2^32 positions old may be taken for a young
    /// one: it then leads to some live entry, and every entry that a walk comes to is compared as a whole.
    #[inline]
    const fn holds(self, link: u32) -> bool {
        (self.head.wrapping_sub(link).wrapping_sub(1) as u64) < self.in_use
    }

    /// The entry that a link leads to, if it is one of them.
    #[inline]
    pub(super) fn get(self, link: u32) -> Option<&'a MapEntry> {
        let at = usize::try_from(u64::from(link) & self.mask).ok()?;
        self.entries.get(at).filter(|_| self.holds(link))
    }
}

/// What an entry keeps of a region that is not one run: how many dimensions it has, the contiguous bytes, and the innermost dimension.
#[inline]
fn store_rows(entry: &MapEntry, (rank, run): (u32, u64), inner: &Dim) {
    entry.rank.store(rank, Relaxed);
    entry.run.store(run, Relaxed);
    entry.stride.store(inner.stride, Relaxed);
    entry.count.store(inner.count, Relaxed);
}

/// Where an entry keeps the dimensions beyond the first one.
fn outer_fields(entry: &MapEntry) -> [(&AtomicU64, &AtomicU32); MAX_RANK - 1] {
    [
        (&entry.base, &entry.count),
        (&entry.low, &entry.rank),
        (&entry.high, &entry.task),
        (&entry.run, &entry.next),
    ]
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    extern crate std;
    use super::{Dim, Entries, Region, TensorAccess};
    use crate::stream::map::AccessKind;
    use pto_abi::stream::MapEntry;
    use pto_abi::sync::{AtomicU32, Ordering::Relaxed};
    use std::vec::Vec;

    #[test]
    fn a_chain_ends_at_the_first_entry_that_is_retired() {
        let memory: Vec<MapEntry> = (0..4).map(|_| MapEntry::default()).collect();
        assert!(Entries::new(&memory[..3], 0).is_none() && Entries::new(&memory[..1], 0).is_none());
        let first = u64::from(u32::MAX) - 1;
        let entries = Entries::new(&memory, first).unwrap();
        let chain = AtomicU32::new(entries.dead_link());
        let dims = [Dim { stride: 64, count: 3 }, Dim { stride: 1024, count: 2 }];
        let region = Region::from_parts(8, 1180, 4, &dims);
        for low in 0..2 {
            entries.insert(&chain, &TensorAccess::run(9, AccessKind::Read, low, low + 1), low);
        }
        entries.insert(&chain, &TensorAccess::new(9, AccessKind::Write, &region), 7);
        assert_eq!((entries.in_use(), entries.capacity()), (4, 4), "two strides take two entries");
        let walk = || {
            let mut link = chain.load(Relaxed);
            let mut found = Vec::new();
            while let Some(entry) = entries.live().get(link) {
                found.push(entries.region(entry, link));
                link = entry.next.load(Relaxed);
            }
            found
        };
        assert_eq!(walk(), [region, Region::run(1, 2), Region::run(0, 1)]);
        entries.retire(first + 1);
        assert_eq!(walk(), [region, Region::run(1, 2)]);
        entries.retire(first + 4);
        assert_eq!((walk(), entries.in_use()), (Vec::new(), 0));
    }
}
