//! A slot for an object. One word has its state: the round, whether the object is open, and how many pins it has.
//!
//! ```text
//!            open                      close                   the last pin goes
//!  empty, r  ------>  open, r, pins  --------->  closed, r, pins  ------------->  empty, r + 1
//!                       ^      |  pin, unpin        ^      |  unpin
//!                       +------+                    +------+
//! ```
//! While `open` writes the object, the word says so, and no other thread can use the slot. `pin` needs the round, so that a key of an earlier object finds nothing.
//! The thread that removes the last pin after `close` drops the object, and no other thread does.

use std::ops::Deref;

use super::sync::{AtomicU64, Ordering, UnsafeCell};

const OPEN: u64 = 1 << 31;
const OPENING: u64 = 1 << 30;
const PINS: u64 = OPENING - 1;
const ROUND_SHIFT: u32 = 32;

/// A slot for an object.
#[derive(Debug)]
pub struct Slot<T> {
    word: AtomicU64,
    object: UnsafeCell<Option<T>>,
}

// SAFETY: `object` is written only by the thread that has set OPENING, and by the one that took the last pin of a closed slot away; the
// word orders both with those who read it (the comments at the orderings). Readers on several threads share `&T`, and the last of them
// drops it: hence Sync and Send.
unsafe impl<T: Send + Sync> Sync for Slot<T> {}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { word: AtomicU64::new(0), object: UnsafeCell::new(None) }
    }
}

impl<T> Slot<T> {
    /// The round of the slot: how many objects it has had before.
    #[must_use]
    pub fn round(&self) -> u32 {
        // Relaxed: `open` and `pin` compare the round with the word again.
        u32::try_from(self.word.load(Ordering::Relaxed) >> ROUND_SHIFT).unwrap_or(u32::MAX)
    }

    /// Puts the object of a round into the slot.
    ///
    /// # Errors
    /// The object, where the slot is not empty or has another round.
    pub fn open(&self, round: u32, object: T) -> Result<(), T> {
        let empty = u64::from(round) << ROUND_SHIFT;
        // Acquire: pairs with the Release of `empty`, so that the last object is gone.
        let claimed = self.word.compare_exchange(
            empty,
            empty | OPENING,
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        if claimed.is_err() {
            return Err(object);
        }
        // SAFETY: no thread pins a slot that is not open, and no other thread has claimed it.
        self.object.with_mut(|cell| unsafe { *cell = Some(object) });
        // Release: pairs with the Acquire of `pin` and of `close`, which then see the object.
        self.word.store(empty | OPEN, Ordering::Release);
        Ok(())
    }

    /// Looks at the object of a round; `None`: it is not there, or is closed.
    #[inline]
    #[must_use]
    pub fn pin(&self, round: u32) -> Option<Pin<'_, T>> {
        self.change(round, |word| word + 1)
    }

    /// Looks at the object of a round, in a slot that is never closed: no pin is needed.
    ///
    /// # Safety
    /// The slot is never closed.
    #[inline]
    #[must_use]
    pub unsafe fn kept(&self, round: u32) -> Option<&T> {
        // Acquire: pairs with the Release of `open`, so that the object is there.
        let word = self.word.load(Ordering::Acquire);
        if word >> ROUND_SHIFT != u64::from(round) || word & OPEN == 0 {
            return None;
        }
        // SAFETY: `open` has written the object, and it is not written again, as the slot is never closed.
        self.object.with(|cell| unsafe { (*cell).as_ref() })
    }

    /// Closes the object of a round: `pin` does not find it any more. The returned pin keeps it until the pin is dropped. `None`: it is not there, or
    /// another thread has closed it.
    #[must_use]
    pub fn close(&self, round: u32) -> Option<Pin<'_, T>> {
        self.change(round, |word| (word & !OPEN) + 1)
    }

    #[inline]
    fn change(&self, round: u32, next: impl Fn(u64) -> u64) -> Option<Pin<'_, T>> {
        // Relaxed: the exchange below checks what was read.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let is_there = word >> ROUND_SHIFT == u64::from(round) && word & OPEN != 0;
            if !is_there || word & PINS == PINS {
                return None;
            }
            // Acquire: pairs with the Release of `open`, also across the exchanges of others, which continue its sequence.
            let changed = self.word.compare_exchange_weak(
                word,
                next(word),
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match changed {
                Ok(_) => return Some(Pin { slot: self }),
                Err(found) => word = found,
            }
        }
    }

    /// The object.
    ///
    /// # Safety
    /// A pin of the slot lives as long as the reference.
    #[inline]
    pub(crate) unsafe fn pinned(&self) -> &T {
        // SAFETY: the pin was taken while the object was there, and it is not written before the pin is dropped.
        let object = self.object.with(|cell| unsafe { (*cell).as_ref() });
        object.expect("a pinned slot has an object")
    }

    /// Removes a pin. The last pin of a closed object empties the slot; returns whether this was the last.
    #[inline]
    pub(crate) fn unpin(&self) -> bool {
        // Release: pairs with the Acquire load in `empty`: the object is dropped after every thread has used it.
        let before = self.word.fetch_sub(1, Ordering::Release);
        before & (OPEN | PINS) == 1 && self.empty()
    }

    #[cold]
    fn empty(&self) -> bool {
        // Acquire: pairs with the Release of every other `unpin`; their subtractions are one sequence, and this load reads its end.
        let word = self.word.load(Ordering::Acquire);
        // SAFETY: the slot is closed and has no pins: only this thread can reach the object.
        let object = self.object.with_mut(|cell| unsafe { (*cell).take() });
        // Release: pairs with the Acquire of the next `open`.
        self.word.store(((word >> ROUND_SHIFT) + 1) << ROUND_SHIFT, Ordering::Release);
        drop(object);
        true
    }
}

/// A look at an object. The object lives at least as long.
#[derive(Debug)]
pub struct Pin<'a, T> {
    slot: &'a Slot<T>,
}

impl<T> Pin<'_, T> {
    /// Ends the look; whether the slot is empty now, so that it can have another object.
    #[must_use]
    pub fn end(self) -> bool {
        let slot = self.slot;
        std::mem::forget(self);
        slot.unpin()
    }
}

impl<T> Deref for Pin<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this is the pin.
        unsafe { self.slot.pinned() }
    }
}

impl<T> Drop for Pin<'_, T> {
    fn drop(&mut self) {
        self.slot.unpin();
    }
}
