//! Rings: storage that is given out in order and taken back in order.
//!
//! Positions only grow; a position modulo the capacity is the offset. [`SpanRing`] gives out spans that do not wrap, for
//! the heap: what is left at its end may be skipped. [`RunOnRing`] skips nothing: there is memory past its end for the longest
//! span, and a span that begins before the end runs on there. So what it has in use is what was taken, wherever it is, and a
//! ring of exactly that size suffices; it is for argument words, and for chunks, which are spans of one.
//!
//! Invariants: `tail <= head`, and `head - tail` is at most the capacity.

use core::hash::Hash;

/// See the module.
#[derive(Clone, Copy, Debug, Hash)]
pub struct SpanRing {
    ring: RunOnRing,
}

impl SpanRing {
    /// An empty ring of `capacity` units, with positions from `first` on.
    #[must_use]
    pub const fn new(capacity: u64, first: u64) -> Self {
        Self { ring: RunOnRing::new(capacity, first) }
    }

    /// The next position.
    #[must_use]
    #[inline]
    pub const fn head(&self) -> u64 {
        self.ring.head()
    }

    /// Units that are not retired, with what was skipped so that no span wraps.
    #[must_use]
    #[inline]
    pub const fn in_use(&self) -> u64 {
        self.ring.in_use()
    }

    /// As [`RunOnRing::retire`].
    #[inline]
    pub const fn retire(&mut self, position: u64) {
        self.ring.retire(position);
    }

    /// Whether a span of `count` fits now.
    #[must_use]
    #[inline]
    pub const fn has_room(&self, count: u64) -> bool {
        self.ring.has_room(self.skip(count) + count)
    }

    /// Takes a span of `count`, for which there is room; returns its offset.
    #[inline]
    pub const fn take(&mut self, count: u64) -> u64 {
        // What is skipped ends where the ring does.
        self.ring.take(self.skip(count));
        self.ring.take(count)
    }

    /// Everything before this position is retired.
    #[must_use]
    pub const fn tail(&self) -> u64 {
        self.ring.tail
    }

    /// Units at the end of the ring that a span of `count` does not fit into.
    #[inline]
    const fn skip(&self, count: u64) -> u64 {
        let rest = self.ring.capacity() - self.ring.offset();
        if count > rest { rest } else { 0 }
    }
}

/// A ring in which a span may continue past the end, into extra memory. The module's documentation compares the two rings.
#[derive(Clone, Copy, Debug, Hash)]
pub struct RunOnRing {
    capacity: u64,
    head: u64,
    tail: u64,
    /// The offset of `head`.
    at: u64,
}

impl RunOnRing {
    /// An empty ring of `capacity` units, with positions from `first` on.
    #[must_use]
    pub const fn new(capacity: u64, first: u64) -> Self {
        Self { capacity, head: first, tail: first, at: 0 }
    }

    /// Units that it holds.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The next position.
    #[must_use]
    #[inline]
    pub const fn head(&self) -> u64 {
        self.head
    }

    /// Where the next span will be: below the capacity.
    #[must_use]
    #[inline]
    pub const fn offset(&self) -> u64 {
        self.at
    }

    /// Units that are not retired.
    #[must_use]
    #[inline]
    pub const fn in_use(&self) -> u64 {
        self.head - self.tail
    }

    /// Units that were taken from the position with this low half on.
    #[must_use]
    pub const fn since_low(&self, position: u32) -> u64 {
        self.head - before(self.head, position)
    }

    /// Everything before `position` is retired. A ring with nothing in it begins anew at its start, whose memory was used
    /// last.
    #[inline]
    pub const fn retire(&mut self, position: u64) {
        self.tail = position;
        if self.head == position {
            self.at = 0;
        }
    }

    /// Everything before the position with this low half is retired.
    #[inline]
    pub const fn retire_low(&mut self, position: u32) {
        self.retire(before(self.head, position));
    }

    /// Whether `count` units are free.
    #[must_use]
    #[inline]
    pub const fn has_room(&self, count: u64) -> bool {
        self.in_use() + count <= self.capacity
    }

    /// Takes a span of `count`, for which there is room; returns its offset.
    #[inline]
    pub const fn take(&mut self, count: u64) -> u64 {
        let offset = self.at;
        self.head += count;
        self.at = offset + count;
        if self.at >= self.capacity {
            self.at -= self.capacity;
        }
        offset
    }
}

/// The position with this low half, fewer than 2^32 before `head`.
#[must_use]
#[inline]
pub const fn before(head: u64, position: u32) -> u64 {
    head - low_half(head).wrapping_sub(position) as u64
}

/// What a position is noted by.
#[inline]
pub(super) const fn low_half(position: u64) -> u32 {
    (position & 0xFFFF_FFFF) as u32
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    extern crate std;
    use super::{RunOnRing, SpanRing};

    #[test]
    fn spans_never_wrap_and_never_meet() {
        let mut ring = SpanRing::new(10, u64::from(u32::MAX) - 12);
        let mut held = std::collections::VecDeque::new();
        for count in [3, 4, 5, 1, 10, 2, 7, 7, 3, 6, 4, 9, 1, 1].into_iter().cycle().take(4000) {
            while !ring.has_room(count) {
                let (end, _, _) = held.pop_front().unwrap();
                ring.retire(end);
            }
            let offset = ring.take(count);
            assert!(offset + count <= 10);
            assert!(
                held.iter().all(|(_, p, c)| offset + count <= *p || p + c <= offset),
                "{held:?}"
            );
            held.push_back((ring.head(), offset, count));
        }
        assert!(!ring.has_room(11));
    }

    #[test]
    fn spans_that_run_on_fill_the_ring_to_the_last_unit_and_never_meet() {
        let counts = [3, 4, 5, 1, 10, 2, 7, 7, 3, 6, 4, 9, 1, 1];
        let mut ring = RunOnRing::new(10, u64::from(u32::MAX) - 12);
        let (mut held, mut in_use) = (std::collections::VecDeque::new(), 0);
        for count in counts.into_iter().cycle().take(4000) {
            while !ring.has_room(count) {
                assert!(in_use + count > 10, "as much fits as is free");
                let (end, _, size) = held.pop_front().unwrap();
                ring.retire(end);
                in_use -= size;
            }
            let (start, offset) = (ring.head(), ring.offset());
            assert_eq!((offset, offset < 10), (ring.take(count), true));
            // Past the end there is memory for the longest span but one unit.
            assert!(offset + count < 20);
            assert!(
                held.iter().all(|(_, p, c)| offset + count <= *p || p + c <= offset),
                "{held:?}"
            );
            assert_eq!(ring.since_low(super::low_half(start)), count);
            held.push_back((ring.head(), offset, count));
            in_use += count;
            assert_eq!(ring.in_use(), in_use);
        }
        assert!(!ring.has_room(11));
    }
}
