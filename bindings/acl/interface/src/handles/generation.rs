//! Counts the changes of a table. A look-up in it stays valid as long as the count is the same.

use super::sync::{AtomicU64, Ordering};

/// The number of a table's changes. It begins with 1, so that nothing was looked up at 0.
#[derive(Debug)]
pub struct Generation(AtomicU64);

impl Default for Generation {
    fn default() -> Self {
        Self(AtomicU64::new(1))
    }
}

impl Generation {
    /// That of a table that is new.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU64::new(1))
    }

    /// The number now. Ask for it under the lock of the table where something is looked up to be used again.
    #[inline]
    #[must_use]
    pub fn now(&self) -> u64 {
        // Relaxed: the looked-up value is in memory of the thread itself. A thread that knows of a change, by whatever orders it, sees its number.
        self.0.load(Ordering::Relaxed)
    }

    /// The table is about to change: under its lock, in front of the change.
    #[inline]
    pub fn next(&self) {
        // Relaxed: as in `now`; the lock orders the number with the table.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
