//! Tables of records that are found by an address.
//!
//! ```text
//! address --spread--> place: number of a record --> record
//! ```
//! Every place has a record of its own from the first time that it is asked for. Records are numbered in that order, so that
//! those that are used one after the other stand side by side, and only those that are used take part of a cache, however
//! large the table is.

use core::cell::Cell;

use pto_abi::stream::MapRow;
use pto_abi::sync::{AtomicU32, Ordering::Relaxed};

use super::map::{NONE, low_half};

/// See the module.
pub(super) struct Records<'a> {
    records: &'a [MapRow],
    /// The number of each place's record, or `NONE`.
    places: &'a [AtomicU32],
    shift: u32,
    /// How many places have one.
    used: Cell<u32>,
}

impl<'a> Records<'a> {
    /// As many records as places: a power of two from 2 on, else `None`. [`clear`](Self::clear) comes before the first use.
    pub(super) fn new(records: &'a [MapRow], places: &'a [AtomicU32]) -> Option<Self> {
        let count = records.len();
        if !count.is_power_of_two() || count < 2 || places.len() != count {
            return None;
        }
        Some(Self { records, places, shift: 64 - count.checked_ilog2()?, used: Cell::new(0) })
    }

    /// How many places have a record.
    pub(super) const fn count(&self) -> u32 {
        self.used.get()
    }

    /// Forgets all of them.
    pub(super) fn clear(&self) {
        for place in self.places {
            place.store(NONE, Relaxed);
        }
        self.used.set(0);
    }

    /// The record for `key` and its number; `empty` empties it when it is asked for first.
    #[inline]
    pub(super) fn of(&self, key: u64, empty: impl FnOnce(&MapRow)) -> Option<(&'a MapRow, u32)> {
        let place = self.places.get(low_half(spread(key) >> self.shift) as usize)?;
        let number = place.load(Relaxed);
        match self.records.get(number as usize) {
            Some(record) => Some((record, number)),
            None => self.begin(place, empty),
        }
    }

    #[cold]
    fn begin(&self, place: &AtomicU32, empty: impl FnOnce(&MapRow)) -> Option<(&'a MapRow, u32)> {
        let number = self.used.get();
        let record = self.records.get(number as usize)?;
        self.used.set(number + 1);
        place.store(number, Relaxed);
        empty(record);
        Some((record, number))
    }

    /// The record with this number, if it is in use.
    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&'a MapRow> {
        self.records.get(number as usize)
    }

    /// Those in use.
    pub(super) fn used(&self) -> impl Iterator<Item = &'a MapRow> {
        self.records.iter().take(self.used.get() as usize)
    }
}

/// The multiplier is 2^64 divided by the golden ratio: neighbours go to places far apart.
#[inline]
const fn spread(key: u64) -> u64 {
    key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    extern crate std;
    use super::Records;
    use pto_abi::stream::MapRow;
    use pto_abi::sync::{AtomicU32, Ordering::Relaxed};
    use std::vec::Vec;

    #[test]
    fn records_are_numbered_as_they_are_used_and_stay_with_their_places() {
        let records: Vec<MapRow> = (0..64).map(|_| MapRow::default()).collect();
        let places: Vec<AtomicU32> = (0..64).map(|_| AtomicU32::new(7)).collect();
        assert!(Records::new(&records, &places[..32]).is_none());
        assert!(Records::new(&records[..48], &places[..48]).is_none());
        let table = Records::new(&records, &places).unwrap();
        table.clear();
        let number = |key| table.of(key, |record| record.base.store(key, Relaxed)).unwrap().1;
        let first: Vec<u32> = (0..40).map(|key| number(1000 * key)).collect();
        // Two keys may have one place; a new number is always the next one.
        let mut next = 0;
        assert!(first.iter().all(|number| *number < next || {
            next += 1;
            *number + 1 == next
        }));
        assert!(next > 20 && table.used().count() == next as usize);
        let again: Vec<u32> = (0..40).map(|key| number(1000 * key)).collect();
        assert_eq!(again, first);
        assert_eq!(records[0].base.load(Relaxed), 0, "emptied when it was used first, not again");
        table.clear();
        assert_eq!((number(39_000), table.used().count()), (0, 1));
    }
}
