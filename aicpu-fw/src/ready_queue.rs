//! The queue of ready tasks of one core kind: many pushers, many poppers, ids only.
//!
//! ```text
//! push: tail += n (the slots are ours), then each slot = stamp(position) | id
//! pop:  read slots from head while their stamps are of this lap, then head: h -> h + k (they are ours)
//! ```
//! It cannot overflow: it has a slot for every task of the run, and a task is in it at most once. Therefore a
//! push needs no check and never retries. A popper that loses the exchange retries, because another one won.
//!
//! Why it is so: `docs/decisions/ready-queue.md`.

use pto_abi::ready::QueueEnds;
use pto_abi::sync::{AtomicU64, Ordering, Sharing};

/// A view of one queue.
#[derive(Clone, Copy)]
pub struct ReadyQueue<'a> {
    ends: &'a QueueEnds,
    slots: &'a [AtomicU64],
    mask: u64,
    lap_shift: u32,
}

use crate::mutant::{self, Mutant};

impl<'a> ReadyQueue<'a> {
    /// The queue over these words; uses the largest power of two of the slots. `None`: fewer than 2.
    #[must_use]
    pub fn new(ends: &'a QueueEnds, slots: &'a [AtomicU64]) -> Option<Self> {
        let lap_shift = slots.len().checked_ilog2().filter(|shift| *shift > 0)?;
        Some(Self { ends, slots, mask: (1 << lap_shift) - 1, lap_shift })
    }

    /// How many ids it can hold.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.mask + 1
    }

    /// How many ids are in it; a moment's guess while others use it.
    #[must_use]
    pub fn len(&self) -> u64 {
        let head = self.ends.head.load(Ordering::Relaxed);
        self.ends.tail.load(Ordering::Relaxed).saturating_sub(head)
    }

    /// How many ids have ever been pushed: the position that the next one gets.
    #[must_use]
    pub fn pushed(&self) -> u64 {
        self.ends.tail.load(Ordering::Relaxed)
    }

    /// The position of the id at the front, if there is one to pop; a moment's guess while others use it.
    #[must_use]
    pub fn front(&self) -> Option<u64> {
        let head = self.ends.head.load(Ordering::Relaxed);
        let slot = self.slot(head)?;
        (slot.load(Ordering::Relaxed) & STAMP == self.stamp(head)).then_some(head)
    }

    /// Takes the id at the front, if its position is before this one.
    pub fn pop_before<S: Sharing>(&self, position: u64) -> Option<u32> {
        loop {
            let head = self.ends.head.load(Ordering::Relaxed);
            let mut id = [0];
            if head >= position || self.peek(head, &mut id) == 0 {
                return None;
            }
            if S::compare_exchange(&self.ends.head, head, head + 1, Ordering::Relaxed).is_ok() {
                return Some(id[0]);
            }
        }
    }

    /// Whether it is empty; a moment's guess while others use it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts ids at the end.
    #[inline]
    pub fn push<S: Sharing>(&self, ids: &[u32]) {
        // AcqRel: with itself. A push that laps a slot comes after the push that filled it before, also where only
        // pops and pushes order them; otherwise the older store could overwrite the newer one.
        let first = S::fetch_add(&self.ends.tail, ids.len() as u64, Ordering::AcqRel);
        for (position, &id) in (first..).zip(ids) {
            if let Some(slot) = self.slot(position) {
                // Release: pairs with the Acquire load in `pop`; the popper of the id sees the task.
                slot.store(self.stamp(position) | u64::from(id), Ordering::Release);
            }
        }
    }

    /// Whether there is an id to pop; a moment's guess while others use it. Two loads: of the slot and not of the tail,
    /// where others push, because a push moves the tail each time and a line of slots takes eight.
    #[inline]
    #[must_use]
    pub fn has_ready<S: Sharing>(&self) -> bool {
        let head = self.ends.head.load(Ordering::Relaxed);
        if S::IS_EXCLUSIVE {
            return head != self.ends.tail.load(Ordering::Relaxed);
        }
        let slot = self.slot(head);
        slot.is_some_and(|slot| slot.load(Ordering::Relaxed) & STAMP == self.stamp(head))
    }

    /// Takes up to `ids.len()` ids from the front; returns how many.
    #[inline]
    pub fn pop<S: Sharing>(&self, ids: &mut [u32]) -> usize {
        if S::IS_EXCLUSIVE && !mutant::is(Mutant::QueueRepeats) && !mutant::is(Mutant::QueueLoses) {
            return self.pop_alone(ids);
        }
        loop {
            let head = self.ends.head.load(Ordering::Relaxed);
            let count = self.peek(head, ids);
            if count == 0 {
                return 0;
            }
            let next = head + count as u64;
            if mutant::is(Mutant::QueueRepeats) {
                return count;
            }
            if S::compare_exchange(&self.ends.head, head, next, Ordering::Relaxed).is_ok() {
                return count - usize::from(count > 1 && mutant::is(Mutant::QueueLoses));
            }
        }
    }

    /// Takes the id at the front.
    #[inline]
    pub fn pop_one<S: Sharing>(&self) -> Option<u32> {
        if !S::IS_EXCLUSIVE {
            let mut id = [0];
            return (self.pop::<S>(&mut id) == 1).then_some(id[0]);
        }
        // One agent does everything: what was pushed is there, and the ends say how much it is.
        let head = self.ends.head.load(Ordering::Relaxed);
        if head == self.ends.tail.load(Ordering::Relaxed) {
            return None;
        }
        let word = self.slot(head)?.load(Ordering::Relaxed);
        self.ends.head.store(head + 1, Ordering::Relaxed);
        Some(low_half(word))
    }

    /// One agent does everything: what was pushed is there, and the ends say how much it is.
    #[inline]
    fn pop_alone(&self, ids: &mut [u32]) -> usize {
        let head = self.ends.head.load(Ordering::Relaxed);
        let tail = self.ends.tail.load(Ordering::Relaxed);
        let mut next = head;
        for id in ids {
            let Some(slot) = self.slot(next).filter(|_| next != tail) else { break };
            *id = low_half(slot.load(Ordering::Relaxed));
            next += 1;
        }
        self.ends.head.store(next, Ordering::Relaxed);
        usize::try_from(next - head).unwrap_or_default()
    }

    #[inline]
    fn peek(&self, head: u64, ids: &mut [u32]) -> usize {
        let mut count = 0;
        for (position, id) in (head..).zip(ids) {
            let Some(slot) = self.slot(position) else { break };
            // Acquire: pairs with the Release store in `push`.
            let word = slot.load(Ordering::Acquire);
            if word & STAMP != self.stamp(position) {
                break;
            }
            *id = low_half(word);
            count += 1;
        }
        count
    }

    #[inline]
    fn slot(&self, position: u64) -> Option<&'a AtomicU64> {
        self.slots.get(usize::try_from(position & self.mask).ok()?)
    }

    /// The lap that `position` is in, in the high half; never that of fresh memory.
    #[inline]
    fn stamp(&self, position: u64) -> u64 {
        ((position >> self.lap_shift) + 1) << 32
    }
}

const STAMP: u64 = !0 << 32;

#[expect(clippy::cast_possible_truncation, reason = "the id is the low half by definition")]
const fn low_half(word: u64) -> u32 {
    word as u32
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    extern crate std;
    use super::ReadyQueue;
    use pto_abi::ready::QueueEnds;
    use pto_abi::sync::{AtomicU64, Concurrent, Exclusive, Ordering, Sharing};
    use std::vec::Vec;

    fn with_queue(slots: usize, test: impl FnOnce(ReadyQueue<'_>, &QueueEnds)) {
        let slots: Vec<_> = (0..slots).map(|_| AtomicU64::new(0)).collect();
        let ends = QueueEnds::default();
        test(ReadyQueue::new(&ends, &slots).unwrap(), &ends);
    }

    fn fifo_over_many_laps<S: Sharing>() {
        with_queue(4, |queue, _| {
            let mut next = 0;
            for round in 0..if cfg!(miri) { 20 } else { 1000_u32 } {
                let n = round % 5;
                let ids: Vec<u32> = (next..next + n).collect();
                queue.push::<S>(&ids);
                let mut out = [u32::MAX; 8];
                assert_eq!(queue.pop::<S>(&mut out), n as usize);
                assert_eq!(&out[..n as usize], &ids[..]);
                assert_eq!(queue.pop::<S>(&mut out), 0);
                next += n;
            }
        });
    }

    #[test]
    fn ids_come_out_in_the_order_they_went_in() {
        fifo_over_many_laps::<Concurrent>();
        fifo_over_many_laps::<Exclusive>();
    }

    #[test]
    fn a_pop_takes_no_more_than_it_may() {
        with_queue(8, |queue, _| {
            queue.push::<Concurrent>(&[1, 2, 3]);
            let mut two = [0; 2];
            assert_eq!((queue.pop::<Concurrent>(&mut two), two), (2, [1, 2]));
            assert_eq!((queue.pop::<Concurrent>(&mut two), two[0]), (1, 3));
        });
    }

    fn one_by_one<S: Sharing>() {
        with_queue(4, |queue, _| {
            for round in 0..10 {
                assert_eq!(queue.pop_one::<S>(), None);
                queue.push::<S>(&[round, round + 100, round + 200]);
                let ids = [(); 3].map(|()| queue.pop_one::<S>());
                assert_eq!(ids, [Some(round), Some(round + 100), Some(round + 200)]);
            }
        });
    }

    #[test]
    fn one_id_at_a_time_is_the_oldest() {
        one_by_one::<Concurrent>();
        one_by_one::<Exclusive>();
    }

    fn up_to_a_position<S: Sharing>() {
        with_queue(4, |queue, _| {
            assert_eq!((queue.front(), queue.pushed()), (None, 0));
            queue.push::<S>(&[7, 8, 9]);
            assert_eq!((queue.front(), queue.pushed()), (Some(0), 3));
            assert_eq!(queue.pop_before::<S>(0), None);
            let ids = [(); 3].map(|()| queue.pop_before::<S>(2));
            assert_eq!((ids, queue.front()), ([Some(7), Some(8), None], Some(2)));
            assert_eq!((queue.pop_before::<S>(9), queue.pop_before::<S>(9)), (Some(9), None));
        });
    }

    #[test]
    fn ids_before_a_position_are_popped_and_no_others() {
        up_to_a_position::<Concurrent>();
        up_to_a_position::<Exclusive>();
    }

    #[test]
    fn positions_may_start_anywhere() {
        with_queue(4, |queue, ends| {
            let start = (u64::from(u32::MAX) << 2) - 2;
            ends.head.store(start, Ordering::Relaxed);
            ends.tail.store(start, Ordering::Relaxed);
            for id in 0..20 {
                queue.push::<Concurrent>(&[id]);
                let mut out = [0];
                assert_eq!((queue.pop::<Concurrent>(&mut out), out[0]), (1, id));
            }
        });
    }

    #[test]
    fn memory_too_small_is_refused() {
        let ends = QueueEnds::default();
        assert!(ReadyQueue::new(&ends, &[]).is_none());
        assert!(ReadyQueue::new(&ends, &[AtomicU64::new(0)]).is_none());
    }
}
