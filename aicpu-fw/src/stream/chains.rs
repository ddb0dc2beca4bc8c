//! Accesses that stand in no record: chains of entries, newest first.
//!
//! Entries are given out in the order of the tasks, and retire in it. A chain runs from new to old, so the first entry that
//! is retired ends it: stale entries cost nothing.

use pto_abi::sync::{AtomicU32, AtomicU64, Ordering::Relaxed};
use pto_abi::{limits::MAX_RANK, stream::MapEntry};

use super::access::Access;
use super::looks::{Look, Stop};
use super::map::{TensorMap, low_half};
use super::overlap::{Undecided, overlap};
use super::region::{Dim, Region};

impl<'a> TensorMap<'a> {
    /// Whether a link leads to an entry that is not retired. A link that is 2^32 positions old may be taken for a young
    /// one: it then leads to some live entry, and every entry that a walk comes to is compared as a whole.
    #[inline]
    pub(super) const fn is_live(&self, link: u32) -> bool {
        let age = low_half(self.head()).wrapping_sub(link);
        (age.wrapping_sub(1) as u64) < self.in_use()
    }

    #[inline]
    fn live(&self, link: u32) -> Option<&'a MapEntry> {
        if self.is_live(link) { self.entry(link.into()) } else { None }
    }

    /// Puts an access in front of a chain. There is room for it.
    pub(super) fn insert(&self, chain: &AtomicU32, access: &Access<'_>, task: u64) {
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
        let region = access.region();
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
    fn region(&self, entry: &MapEntry, link: u32) -> Region {
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

impl<F> Look<'_, '_, F> {
    /// The accesses of a chain.
    #[inline]
    pub(super) fn chain<E>(&mut self, first: &AtomicU32) -> Result<(), Stop<E>>
    where
        F: FnMut(u64) -> Result<(), E>,
    {
        if self.map.is_live(first.load(Relaxed)) { self.walk(first) } else { Ok(()) }
    }

    fn walk<E>(&mut self, first: &AtomicU32) -> Result<(), Stop<E>>
    where
        F: FnMut(u64) -> Result<(), E>,
    {
        let (map, access) = (self.map, self.access);
        let mut link = first;
        while let Some(entry) = map.live(link.load(Relaxed)) {
            let (low, high) = (entry.low.load(Relaxed), entry.high.load(Relaxed));
            let is_near = low < access.high && access.low < high;
            if is_near && entry.base.load(Relaxed) == access.base {
                let are_runs = access.is_run() && entry.rank.load(Relaxed) == 0;
                let region = || map.region(entry, link.load(Relaxed));
                let meets = are_runs || {
                    let meets = overlap(&access.region(), &region());
                    meets.map_err(|Undecided| Stop::Undecided)?
                };
                if meets {
                    self.task(&entry.task)?;
                    let is_around = access.low <= low && high <= access.high;
                    if self.hides && is_around && access.region().covers(&region()) {
                        link.store(entry.next.load(Relaxed), Relaxed);
                        continue;
                    }
                }
            }
            self.misses += 1;
            link = &entry.next;
        }
        Ok(())
    }
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
