//! One look at the tensor map: which tasks under way an access meets in a record; and how a record takes an access.

use pto_abi::stream::MapRow;
use pto_abi::sync::{AtomicU32, Ordering::Relaxed};

use super::access::{Access, AccessKind, MANY};
use super::map::{TensorMap, low_half};
use super::overlap::{Undecided, overlap};
use super::region::{Region, tiles_meet};
use crate::mutant::{self, Mutant};

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
    #[inline]
    pub(super) const fn new(number: u64, alive: u32) -> Self {
        Self { number, low: low_half(number), alive }
    }

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

impl<F> Look<'_, '_, F> {
    /// Everything that stands at one record.
    #[inline]
    pub(super) fn record<E>(&mut self, record: &MapRow) -> Result<(), Stop<E>>
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
    fn region<E>(&mut self, record: &MapRow) -> Result<(), Stop<E>>
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
            Some(producer) => self.find(producer),
            None => Ok(false),
        }
    }

    /// Most tasks in records have completed: only those that have not are worth a call.
    #[inline(never)]
    fn find<E>(&mut self, producer: u64) -> Result<bool, Stop<E>>
    where
        F: FnMut(u64) -> Result<(), E>,
    {
        (self.found)(producer).map(|()| true).map_err(Stop::Found)
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
    /// Whether its region is that of the access.
    fn is_of(&self, access: &Access<'_>) -> bool;
    /// The region of the access becomes its own.
    fn begin(&self, access: &Access<'_>, now: Now);
    /// Notes that the task reads its region; `false`: there are too many readers.
    fn add_reader(&self, now: Now) -> bool;
    /// The task writes its region, and waits for those under way that have touched it.
    fn write<E>(&self, now: Now, found: impl FnMut(u64) -> Result<(), E>) -> Result<(), E>;
    /// Notes an access; `false`: it is to another region, or there are too many readers.
    fn take(&self, access: &Access<'_>, now: Now) -> bool;
}

impl Keep for MapRow {
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
    fn is_of(&self, access: &Access<'_>) -> bool {
        self.base.load(Relaxed) == access.base
            && self.low.load(Relaxed) == access.low
            && self.high.load(Relaxed) == access.high
            && self.rows.load(Relaxed) == access.rows
    }

    #[inline]
    fn begin(&self, access: &Access<'_>, now: Now) {
        self.base.store(access.base, Relaxed);
        self.low.store(access.low, Relaxed);
        self.high.store(access.high, Relaxed);
        self.rows.store(access.rows, Relaxed);
        self.forget(now.gone());
    }

    #[inline]
    fn add_reader(&self, now: Now) -> bool {
        if mutant::is(Mutant::ForgetsReaders) {
            return true;
        }
        let place = self.readers.iter().find(|task| now.is_gone(task));
        if let Some(place) = place {
            place.store(now.low, Relaxed);
        }
        place.is_some()
    }

    #[inline]
    fn write<E>(&self, now: Now, mut found: impl FnMut(u64) -> Result<(), E>) -> Result<(), E> {
        let mut is_read = false;
        let readers = if mutant::is(Mutant::ForgetsReaders) { &[] } else { &self.readers[..] };
        for reader in readers {
            if let Some(reader) = now.producer(reader.load(Relaxed)) {
                is_read = true;
                found(reader)?;
            }
        }
        if let Some(writer) = now.producer(self.writer.load(Relaxed)).filter(|_| !is_read) {
            found(writer)?;
        }
        self.forget(now.gone());
        self.writer.store(now.low, Relaxed);
        Ok(())
    }

    #[inline]
    fn take(&self, access: &Access<'_>, now: Now) -> bool {
        if access.rows == MANY {
            return false;
        }
        if !self.is_of(access) {
            if !self.is_free(now) {
                return false;
            }
            self.begin(access, now);
        }
        if access.kind == AccessKind::Write {
            let is_gone = now.is_gone(&self.writer);
            if is_gone {
                self.writer.store(now.low, Relaxed);
            }
            return is_gone;
        }
        self.add_reader(now)
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
