//! Tables of rows that are found by an address.
//!
//! ```text
//! address --spread--> bucket: number of a row --> row
//! ```
//! Every bucket gets a row of its own when it is first asked for. Rows are numbered in that order, so that
//! those that are used one after the other are adjacent, and only those that are used take part of a cache, however
//! large the table is.

use core::cell::Cell;

use pto_abi::stream::MapRow;
use pto_abi::sync::{AtomicU32, Ordering::Relaxed};

use super::super::rings::low_half;

/// No row.
pub(super) const NONE: u32 = u32::MAX;

/// See the file.
/// Invariant: buckets that are not `NONE` hold different numbers, all below `used`.
pub(super) struct Rows<'a> {
    rows: &'a [MapRow],
    /// The number of each bucket's row, or `NONE`.
    buckets: &'a [AtomicU32],
    shift: u32,
    /// How many buckets have one.
    used: Cell<u32>,
}

impl<'a> Rows<'a> {
    /// As many rows as buckets: a power of two from 2 on, else `None`. [`clear`](Self::clear) comes before the first use.
    pub(super) fn new(rows: &'a [MapRow], buckets: &'a [AtomicU32]) -> Option<Self> {
        let count = rows.len();
        if !count.is_power_of_two() || count < 2 || buckets.len() != count {
            return None;
        }
        Some(Self { rows, buckets, shift: 64 - count.checked_ilog2()?, used: Cell::new(0) })
    }

    /// How many buckets have a row.
    pub(super) const fn count(&self) -> u32 {
        self.used.get()
    }

    /// Forgets all of them.
    pub(super) fn clear(&self) {
        for bucket in self.buckets {
            bucket.store(NONE, Relaxed);
        }
        self.used.set(0);
    }

    /// The row for `key` and its number; `empty` empties it when it is asked for first.
    #[inline]
    pub(super) fn of(&self, key: u64, empty: impl FnOnce(&MapRow)) -> Option<(&'a MapRow, u32)> {
        let bucket = self.buckets.get(low_half(spread(key) >> self.shift) as usize)?;
        let number = bucket.load(Relaxed);
        match self.rows.get(number as usize) {
            Some(row) => Some((row, number)),
            None => self.begin(bucket, empty),
        }
    }

    /// The row for `key`, if it has been asked for.
    #[inline]
    pub(super) fn find(&self, key: u64) -> Option<&'a MapRow> {
        let bucket = self.buckets.get(low_half(spread(key) >> self.shift) as usize)?;
        self.get(bucket.load(Relaxed))
    }

    #[cold]
    fn begin(&self, bucket: &AtomicU32, empty: impl FnOnce(&MapRow)) -> Option<(&'a MapRow, u32)> {
        let number = self.used.get();
        let row = self.rows.get(number as usize)?;
        self.used.set(number + 1);
        bucket.store(number, Relaxed);
        empty(row);
        Some((row, number))
    }

    /// The row with this number, if it is in use.
    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&'a MapRow> {
        self.rows.get(number as usize)
    }

    /// Those in use.
    pub(super) fn used(&self) -> impl Iterator<Item = &'a MapRow> {
        self.rows.iter().take(self.used.get() as usize)
    }
}

/// The multiplier is 2^64 divided by the golden ratio: neighbours go to distant buckets.
#[inline]
const fn spread(key: u64) -> u64 {
    key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    extern crate std;
    use super::Rows;
    use pto_abi::stream::MapRow;
    use pto_abi::sync::{AtomicU32, Ordering::Relaxed};
    use std::vec::Vec;

    #[test]
    fn rows_are_numbered_as_they_are_used_and_stay_in_their_buckets() {
        let rows: Vec<MapRow> = (0..64).map(|_| MapRow::default()).collect();
        let buckets: Vec<AtomicU32> = (0..64).map(|_| AtomicU32::new(7)).collect();
        assert!(Rows::new(&rows, &buckets[..32]).is_none());
        assert!(Rows::new(&rows[..48], &buckets[..48]).is_none());
        let table = Rows::new(&rows, &buckets).unwrap();
        table.clear();
        let number = |key| table.of(key, |row| row.base.store(key, Relaxed)).unwrap().1;
        let first: Vec<u32> = (0..40).map(|key| number(1000 * key)).collect();
        // Two keys may share a bucket; a new number is always the next one.
        let mut next = 0;
        assert!(first.iter().all(|number| *number < next || {
            next += 1;
            *number + 1 == next
        }));
        assert!(next > 20 && table.used().count() == next as usize);
        let again: Vec<u32> = (0..40).map(|key| number(1000 * key)).collect();
        assert_eq!(again, first);
        assert_eq!(rows[0].base.load(Relaxed), 0, "emptied when it was used first, not again");
        table.clear();
        assert_eq!((number(39_000), table.used().count()), (0, 1));
    }
}
