//! As many slots as there are objects. Slots are made in segments that double in size and are never freed, so that a look needs no lock; only
//! making and ending objects takes one.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::slot::Slot;

const INDEX_BITS: u32 = 24;
const ROUND_BITS: u32 = 12;
/// How many objects there can be at a time.
pub const INDICES: u32 = 1 << INDEX_BITS;
/// How many objects one slot can have, one after the other. After them it stays empty, so that no key comes twice.
pub const ROUNDS: u32 = 1 << ROUND_BITS;
/// Slots of the first segment, as a power of two.
const FIRST_BITS: u32 = 6;
const SEGMENTS: usize = (INDEX_BITS - FIRST_BITS + 1) as usize;

/// The key of an object: a slot, and its round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    index: u32,
    round: u32,
}

impl Key {
    /// The key as a number of 36 bits.
    #[must_use]
    pub const fn number(self) -> u64 {
        ((self.round as u64) << INDEX_BITS) | self.index as u64
    }

    /// The key of a number; `None`: it has more bits than keys have.
    #[inline]
    #[must_use]
    pub fn of(number: u64) -> Option<Self> {
        let round = u32::try_from(number >> INDEX_BITS).ok().filter(|round| *round < ROUNDS)?;
        let index = u32::try_from(number & u64::from(INDICES - 1)).ok()?;
        Some(Self { index, round })
    }
}

/// The slots that can have an object.
#[derive(Debug, Default)]
struct Free {
    /// Slots from here on were never used.
    next: u32,
    free_list: Vec<u32>,
}

/// A slot in its table. It has its own index, so that a pinned object is one pointer.
#[derive(Debug)]
struct TableSlot<T> {
    slot: Slot<T>,
    index: u32,
    free: Arc<Mutex<Free>>,
}

/// A table of objects.
#[derive(Debug)]
pub struct Slots<T> {
    segments: [OnceLock<Box<[TableSlot<T>]>>; SEGMENTS],
    free: OnceLock<Arc<Mutex<Free>>>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Slots<T> {
    /// An empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self { segments: [const { OnceLock::new() }; SEGMENTS], free: OnceLock::new() }
    }

    /// A key that was never given before, for an object that is yet to be made.
    ///
    /// # Panics
    /// There are [`INDICES`] objects, or so many keys were given that none is left.
    #[must_use]
    pub fn reserve(&self) -> Key {
        let shared = self.free.get_or_init(Arc::default);
        let mut free = lock(shared);
        let index = free.free_list.pop().unwrap_or_else(|| {
            let index = free.next;
            assert!(index < INDICES, "a table of handles is full: {INDICES} slots are in use");
            free.next += 1;
            index
        });
        drop(free);
        let (segment, offset) = position(index);
        let slots = self.segments[segment].get_or_init(|| {
            let bits = FIRST_BITS as usize + segment;
            let first = (1u32 << bits) - (1 << FIRST_BITS);
            let slot = |index| TableSlot { slot: Slot::default(), index, free: Arc::clone(shared) };
            (first..first + (1 << bits)).map(slot).collect()
        });
        Key { index, round: slots[offset].slot.round() }
    }

    /// Puts the object of a reserved key in.
    ///
    /// # Panics
    /// The key is not from [`Slots::reserve`] of this table, or had an object before.
    pub fn insert(&self, key: Key, object: T) {
        let slot = self.slot(key.index).expect("a reserved key has a slot");
        assert!(slot.slot.open(key.round, object).is_ok(), "{key:?} has had its object");
    }

    /// Looks at an object, where there is one.
    #[inline]
    #[must_use]
    pub fn find(&self, key: Key) -> Option<PinnedObject<'_, T>> {
        let slot = self.slot(key.index)?;
        slot.slot.pin(key.round).map(std::mem::forget)?;
        Some(PinnedObject { slot })
    }

    /// Looks at an object of a table that none is ever taken out of. It costs one load.
    ///
    /// # Safety
    /// [`Slots::take`] is never called on this table.
    #[inline]
    #[must_use]
    pub unsafe fn kept(&self, key: Key) -> Option<&T> {
        // SAFETY: only `take` closes slots.
        unsafe { self.slot(key.index)?.slot.kept(key.round) }
    }

    /// Takes an object out: `find` does not return it any more, and it lives until its last pin is dropped. `None`: another thread has taken it out.
    #[must_use]
    pub fn take(&self, key: Key) -> Option<PinnedObject<'_, T>> {
        let slot = self.slot(key.index)?;
        slot.slot.close(key.round).map(std::mem::forget)?;
        Some(PinnedObject { slot })
    }

    /// All objects, each with its key, in no order.
    pub fn all(&self) -> impl Iterator<Item = (Key, PinnedObject<'_, T>)> {
        let used = self.free.get().map_or(0, |free| lock(free).next);
        (0..used).filter_map(|index| {
            let key = Key { index, round: self.slot(index)?.slot.round() };
            Some((key, self.find(key)?))
        })
    }

    #[inline]
    fn slot(&self, index: u32) -> Option<&TableSlot<T>> {
        let (segment, offset) = position(index);
        self.segments.get(segment)?.get()?.get(offset)
    }
}

impl<T> TableSlot<T> {
    #[cold]
    fn release(&self) {
        // A slot whose rounds are used up is left alone.
        if self.slot.round() < ROUNDS {
            lock(&self.free).free_list.push(self.index);
        }
    }
}

fn lock(free: &Mutex<Free>) -> MutexGuard<'_, Free> {
    free.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The segment of a slot, and its index there.
#[inline]
const fn position(index: u32) -> (usize, usize) {
    let number = index + (1 << FIRST_BITS);
    let bits = number.ilog2();
    ((bits - FIRST_BITS) as usize, (number - (1 << bits)) as usize)
}

/// A look at an object of a table. The object lives at least as long.
///
/// Invariant: for each of these, `Slots` has left one pin in the slot.
#[derive(Debug)]
pub struct PinnedObject<'a, T> {
    slot: &'a TableSlot<T>,
}

impl<T> Deref for PinnedObject<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the pin of this look goes when the look is dropped.
        unsafe { self.slot.slot.pinned() }
    }
}

impl<T> Drop for PinnedObject<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.slot.slot.unpin() {
            self.slot.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{INDICES, Key, ROUNDS, SEGMENTS, Slots, position};

    fn open<T>(slots: &Slots<T>, object: T) -> Key {
        let key = slots.reserve();
        slots.insert(key, object);
        key
    }

    #[test]
    fn slots_follow_each_other_over_the_segments() {
        assert_eq!(
            [position(0), position(63), position(64), position(191)],
            [(0, 0), (0, 63), (1, 0), (1, 127)]
        );
        assert_eq!(position(INDICES - 1).0, SEGMENTS - 1);
    }

    #[test]
    fn numbers_are_keys_and_back() {
        let key = Key { index: INDICES - 1, round: ROUNDS - 1 };
        assert_eq!(Key::of(key.number()), Some(key));
        assert_eq!(Key::of(key.number() + 1), None);
    }

    #[test]
    fn a_key_never_comes_twice() {
        let slots = Slots::new();
        let mut seen = std::collections::BTreeSet::new();
        for object in 0..3 * ROUNDS {
            let key = open(&slots, object);
            assert!(seen.insert(key.number()), "{key:?} came twice");
            assert_eq!(slots.find(key).as_deref(), Some(&object));
            assert_eq!(slots.take(key).as_deref(), Some(&object));
            assert!(slots.find(key).is_none() && slots.take(key).is_none());
        }
    }

    #[test]
    fn an_object_lives_until_its_last_pin_is_dropped() {
        let slots = Slots::new();
        let key = open(&slots, std::sync::Arc::new(7));
        let held = slots.find(key).expect("it is there");
        let kept = std::sync::Arc::clone(&held);
        drop(slots.take(key).expect("it is there"));
        assert_eq!((std::sync::Arc::strong_count(&kept), slots.all().count()), (2, 0));
        drop(held);
        assert_eq!(std::sync::Arc::strong_count(&kept), 1);
    }
}
