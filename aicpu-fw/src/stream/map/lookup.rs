//! One look for one access: which tasks under way it meets in a row of the tensor map, and in the chains of that row.

use pto_abi::stream::{MapEntry, MapRow};
use pto_abi::sync::{AtomicU32, Ordering::Relaxed};

use super::super::overlap::{Undecided, overlap};
use super::super::region::{HALF, Region, rows_meet};
use super::access::{AccessKind, MANY, TensorAccess};
use super::entries::Entries;
use super::row::{MapRowExt, Now};

/// Why a look ended early.
pub(super) enum Stop<E> {
    Undecided,
    Found(E),
}

/// One look for one access.
pub(super) struct Lookup<'m, 'a, F> {
    pub(super) entries: &'m Entries<'a>,
    pub(super) access: &'m TensorAccess<'m>,
    pub(super) hides: bool,
    pub(super) now: Now,
    pub(super) found: F,
    pub(super) misses: u32,
}

impl<F> Lookup<'_, '_, F> {
    /// Everything that is noted at one row.
    #[inline]
    pub(super) fn row<E>(&mut self, row: &MapRow) -> Result<(), Stop<E>>
    where
        F: FnMut(u64) -> Result<(), E>,
    {
        if row.base.load(Relaxed) == self.access.base {
            self.region(row)?;
        }
        self.chain(&row.write_chain)?;
        if self.access.kind == AccessKind::Write {
            self.chain(&row.read_chain)?;
        }
        Ok(())
    }

    /// The accesses to the region of a row.
    #[inline]
    fn region<E>(&mut self, row: &MapRow) -> Result<(), Stop<E>>
    where
        F: FnMut(u64) -> Result<(), E>,
    {
        let access = self.access;
        let (low, high) = (row.low.load(Relaxed), row.high.load(Relaxed));
        if access.low >= high || low >= access.high {
            return Ok(());
        }
        let rows = row.rows.load(Relaxed);
        let is_same = access.low == low && access.high == high && access.rows == rows;
        if !is_same && access.rows | rows != 0 && !self.meets(low, high, rows)? {
            return Ok(());
        }
        if access.kind == AccessKind::Read {
            return self.task(&row.writer).map(|_| ());
        }
        let mut is_read = false;
        for reader in &row.readers {
            is_read |= self.task(reader)?;
        }
        if !is_read {
            self.task(&row.writer)?;
        }
        let covers = is_same || access.is_run() && access.low <= low && high <= access.high;
        if self.hides && covers {
            row.forget(self.now.gone());
        }
        Ok(())
    }

    #[inline(never)]
    fn meets<E>(&self, low: u64, high: u64, rows: u64) -> Result<bool, Stop<E>> {
        let access = self.access;
        if access.rows == rows && rows != MANY {
            let run = rows & HALF;
            return Ok(rows_meet((access.low, access.high, run), (low, high, run), rows >> 32));
        }
        let other = Region::of_rows(low, high, rows);
        overlap(&self.access.region(), &other).map_err(|Undecided| Stop::Undecided)
    }

    /// Whether a task may be under way; then it has been found.
    #[inline]
    fn task<E>(&mut self, task: &AtomicU32) -> Result<bool, Stop<E>>
    where
        F: FnMut(u64) -> Result<(), E>,
    {
        match self.now.producer(task.load(Relaxed)) {
            Some(producer) => self.find(producer),
            None => Ok(false),
        }
    }

    /// Most tasks in rows have completed: only those that have not are worth a call.
    #[inline(never)]
    fn find<E>(&mut self, producer: u64) -> Result<bool, Stop<E>>
    where
        F: FnMut(u64) -> Result<(), E>,
    {
        (self.found)(producer).map(|()| true).map_err(Stop::Found)
    }

    /// The accesses of a chain.
    #[inline]
    fn chain<E>(&mut self, first: &AtomicU32) -> Result<(), Stop<E>>
    where
        F: FnMut(u64) -> Result<(), E>,
    {
        if self.entries.is_live(first.load(Relaxed)) { self.walk(first) } else { Ok(()) }
    }

    fn walk<E>(&mut self, first: &AtomicU32) -> Result<(), Stop<E>>
    where
        F: FnMut(u64) -> Result<(), E>,
    {
        let (live, access) = (self.entries.live(), self.access);
        let (mut link, mut misses) = (first, self.misses);
        while let Some(entry) = live.get(link.load(Relaxed)) {
            let (low, high) = (entry.low.load(Relaxed), entry.high.load(Relaxed));
            let is_near = low < access.high && access.low < high;
            if is_near && entry.base.load(Relaxed) == access.base {
                let meets = match self.meets_in_step(entry, (low, high)) {
                    Some(meets) => meets,
                    None => self.meets_region_of(entry, link.load(Relaxed))?,
                };
                if meets {
                    self.task(&entry.task)?;
                    let is_around = access.low <= low && high <= access.high;
                    if self.hides && is_around && self.covers_rows_of(entry, link.load(Relaxed)) {
                        link.store(entry.next.load(Relaxed), Relaxed);
                        continue;
                    }
                }
            }
            misses += 1;
            link = &entry.next;
        }
        self.misses = misses;
        Ok(())
    }

    /// Whether the access meets an entry with which it has its hull in common, where both are runs, or rows at one distance, as chains of
    /// a loop have: nothing has to be put together for them. `None`: they are something else.
    #[inline(always)]
    fn meets_in_step(&self, entry: &MapEntry, (low, high): (u64, u64)) -> Option<bool> {
        let access = self.access;
        match (entry.rank.load(Relaxed), access.stride()) {
            (0, None) => access.is_run().then_some(true),
            (1, Some(stride)) if stride == entry.stride.load(Relaxed) => {
                let own = (access.low, access.high, access.rows & HALF);
                Some(rows_meet(own, (low, high, entry.run.load(Relaxed)), stride))
            }
            _ => None,
        }
    }

    /// The same of any two regions. Apart from [`walk`](Self::walk), because what it puts together is large.
    #[inline(never)]
    fn meets_region_of<E>(&self, entry: &MapEntry, at: u32) -> Result<bool, Stop<E>> {
        let meets = overlap(&self.access.region(), &self.entries.region(entry, at));
        meets.map_err(|Undecided| Stop::Undecided)
    }

    #[inline(never)]
    fn covers_rows_of(&self, entry: &MapEntry, at: u32) -> bool {
        self.access.region().covers(&self.entries.region(entry, at))
    }
}
