//! Rows of the tensor map: one region of a tensor, its last writer, and its readers since.
//!
//! A row keeps the low halves of the numbers of tasks. [`Now`] knows which of them may be under way. Invariants: all readers
//! in a row are later than its writer, and have waited for it; a row that has only completed tasks is free for another
//! region.

use pto_abi::stream::MapRow;
use pto_abi::sync::{AtomicU32, Ordering::Relaxed};

use super::super::rings::low_half;
use super::access::{AccessKind, MANY, TensorAccess};
use crate::mutant::{self, Mutant};

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

    /// Whether a task has completed. The one that looks has not.
    #[inline]
    pub(super) fn is_gone(self, task: &AtomicU32) -> bool {
        let age = self.low.wrapping_sub(task.load(Relaxed));
        age > self.alive
    }
}

/// What the builder does with a row.
pub(super) trait MapRowExt {
    /// The tasks of the row.
    fn tasks(&self) -> impl Iterator<Item = &AtomicU32>;
    /// Records that no access to the region of the row is left.
    fn forget(&self, gone: u32);
    /// Whether no task under way has touched its region.
    fn is_free(&self, now: Now) -> bool;
    /// Whether its region is that of the access.
    fn is_of(&self, access: &TensorAccess<'_>) -> bool;
    /// The region of the access becomes its own.
    fn begin(&self, access: &TensorAccess<'_>, now: Now);
    /// Notes that the task reads its region; `false`: there are too many readers.
    fn add_reader(&self, now: Now) -> bool;
    /// The task writes its region, and waits for those under way that have touched it.
    fn write<E>(&self, now: Now, found: impl FnMut(u64) -> Result<(), E>) -> Result<(), E>;
    /// Notes an access; `false`: it is to another region, or there are too many readers.
    fn take(&self, access: &TensorAccess<'_>, now: Now) -> bool;
}

impl MapRowExt for MapRow {
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
    fn is_of(&self, access: &TensorAccess<'_>) -> bool {
        self.base.load(Relaxed) == access.base
            && self.low.load(Relaxed) == access.low
            && self.high.load(Relaxed) == access.high
            && self.rows.load(Relaxed) == access.rows
    }

    #[inline]
    fn begin(&self, access: &TensorAccess<'_>, now: Now) {
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
        let entry = self.readers.iter().find(|task| now.is_gone(task));
        if let Some(entry) = entry {
            entry.store(now.low, Relaxed);
        }
        entry.is_some()
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
    fn take(&self, access: &TensorAccess<'_>, now: Now) -> bool {
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
