//! Rings: storage that is given out in order and taken back in order.
//!
//! Positions only grow; a position modulo the capacity is the place. [`SpanRing`] gives out spans that do not wrap, for
//! the heap: what is left at its end may be skipped. [`RunOnRing`] skips nothing: there is memory behind its end for the longest
//! span, and a span that begins before the end runs on there. So what it has in use is what was taken, wherever it stands, and a
//! ring of exactly that size suffices; it is for argument words, and for chunks, which are spans of one. A heap belongs to one depth of scopes and is taken back scope by scope: at a
//! depth one scope is open at a time, so the oldest part of a full heap belongs either to scopes that are closed, whose
//! tasks will complete, or to the open one, and then nothing can retire: that is the proof of `STREAM_HEAP_RING`.

use core::hash::{Hash, Hasher};

use heapless::Deque;

/// Closed scopes that a heap keeps apart; beyond that, the newest ones retire together.
const CLOSED_SCOPES: usize = 16;

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

    /// Takes a span of `count`, for which there is room; returns its place.
    #[inline]
    pub const fn take(&mut self, count: u64) -> u64 {
        // What is skipped ends where the ring does.
        self.ring.take(self.skip(count));
        self.ring.take(count)
    }

    /// Units at the end of the ring that a span of `count` does not fit into.
    #[inline]
    const fn skip(&self, count: u64) -> u64 {
        let rest = self.ring.capacity() - self.ring.place();
        if count > rest { rest } else { 0 }
    }
}

/// A ring whose spans run on behind its end. See the module.
#[derive(Clone, Copy, Debug, Hash)]
pub struct RunOnRing {
    capacity: u64,
    head: u64,
    tail: u64,
    /// The place of `head`.
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
    pub const fn place(&self) -> u64 {
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

    /// Takes a span of `count`, for which there is room; returns its place.
    #[inline]
    pub const fn take(&mut self, count: u64) -> u64 {
        let place = self.at;
        self.head += count;
        self.at = place + count;
        if self.at >= self.capacity {
            self.at -= self.capacity;
        }
        place
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

/// The heap of one depth of scopes.
#[derive(Clone, Debug)]
pub struct HeapRing {
    span: SpanRing,
    /// Where the parts of closed scopes end, and the number of the first task behind each.
    closed: Deque<(u64, u64), CLOSED_SCOPES>,
    /// What the open scope has taken, and its largest span.
    open_bytes: u64,
    open_largest: u64,
    /// The largest span that was ever taken.
    largest: u64,
}

impl HeapRing {
    /// An empty heap.
    #[must_use]
    pub const fn new(capacity: u64) -> Self {
        let span = SpanRing::new(capacity, 0);
        Self { span, closed: Deque::new(), open_bytes: 0, open_largest: 0, largest: 0 }
    }

    /// Hashes where it stands.
    pub(super) fn hash_state<H: Hasher>(&self, into: &mut H) {
        // What is only told is left out.
        let Self { span, closed, open_bytes, open_largest, largest: _ } = self;
        (span, open_bytes, open_largest).hash(into);
        closed.iter().for_each(|scope| scope.hash(into));
    }

    /// Takes back what belongs to scopes all of whose tasks are below `watermark`.
    pub fn retire(&mut self, watermark: u64) {
        while let Some(&(end, first_after)) = self.closed.front() {
            if first_after > watermark {
                return;
            }
            self.span.retire(end);
            self.closed.pop_front();
        }
    }

    /// Whether a span of `bytes` fits now.
    #[must_use]
    pub const fn has_room(&self, bytes: u64) -> bool {
        self.span.has_room(bytes)
    }

    /// Whether everything in it belongs to the open scope.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.closed.is_empty()
    }

    /// Takes a span for which there is room; returns its place.
    pub const fn take(&mut self, bytes: u64) -> u64 {
        self.open_bytes += bytes;
        if bytes > self.open_largest {
            self.open_largest = bytes;
        }
        if bytes > self.largest {
            self.largest = bytes;
        }
        self.span.take(bytes)
    }

    /// Bytes that are not retired.
    #[must_use]
    pub const fn in_use(&self) -> u64 {
        self.span.in_use()
    }

    /// A capacity that holds the open scope with `more` bytes, wherever in the ring it begins: its sum, and what is
    /// skipped at the end of the ring, which is less than its largest span.
    #[must_use]
    pub const fn needed(&self, more: u64) -> u64 {
        let largest = if more > self.open_largest { more } else { self.open_largest };
        self.open_bytes.saturating_add(more).saturating_add(largest)
    }

    /// A capacity that holds all that is in it with `more` bytes, while none of it can retire.
    #[must_use]
    pub const fn needed_beside(&self, more: u64) -> u64 {
        let largest = if more > self.largest { more } else { self.largest };
        self.in_use().saturating_add(more).saturating_add(largest)
    }

    /// A capacity that holds all that was taken for scopes that were not closed before task `from` was added: while that one
    /// is kept back, none of it retires. Zero: there is nothing but the open scope.
    #[must_use]
    pub fn needed_since(&self, from: u64) -> u64 {
        let retires = self.closed.iter().take_while(|(_, first_after)| *first_after <= from);
        let start = retires.last().map_or(self.span.ring.tail, |(end, _)| *end);
        let is_kept = self.closed.back().is_some_and(|(_, first_after)| *first_after > from);
        if is_kept { (self.span.head() - start).saturating_add(self.largest) } else { 0 }
    }

    /// The open scope ends; `next_task` is the number that the next task will have.
    pub fn close(&mut self, next_task: u64) {
        let taken = core::mem::take(&mut self.open_bytes);
        self.open_largest = 0;
        if taken == 0 {
            return;
        }
        let part = (self.span.head(), next_task);
        if self.closed.push_back(part).is_err()
            && let Some(newest) = self.closed.back_mut()
        {
            *newest = part;
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    extern crate std;
    use super::{HeapRing, RunOnRing, SpanRing};

    #[test]
    fn spans_never_wrap_and_never_meet() {
        let mut ring = SpanRing::new(10, u64::from(u32::MAX) - 12);
        let mut held = std::collections::VecDeque::new();
        for count in [3, 4, 5, 1, 10, 2, 7, 7, 3, 6, 4, 9, 1, 1].into_iter().cycle().take(4000) {
            while !ring.has_room(count) {
                let (end, _, _) = held.pop_front().unwrap();
                ring.retire(end);
            }
            let place = ring.take(count);
            assert!(place + count <= 10);
            assert!(held.iter().all(|(_, p, c)| place + count <= *p || p + c <= place), "{held:?}");
            held.push_back((ring.head(), place, count));
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
            let (start, place) = (ring.head(), ring.place());
            assert_eq!((place, place < 10), (ring.take(count), true));
            // Behind the end there is memory for the longest span but one unit.
            assert!(place + count < 20);
            assert!(held.iter().all(|(_, p, c)| place + count <= *p || p + c <= place), "{held:?}");
            assert_eq!(ring.since_low(super::low_half(start)), count);
            held.push_back((ring.head(), place, count));
            in_use += count;
            assert_eq!(ring.in_use(), in_use);
        }
        assert!(!ring.has_room(11));
    }

    #[test]
    fn a_heap_retires_scope_by_scope() {
        let mut heap = HeapRing::new(100);
        heap.take(60);
        heap.close(5);
        assert!(!heap.has_room(60) && !heap.is_held());
        heap.retire(4);
        assert!(!heap.has_room(60));
        heap.retire(5);
        assert!(heap.has_room(60) && heap.is_held());
        heap.take(60);
        assert_eq!((heap.has_room(60), heap.is_held(), heap.needed(60)), (false, true, 180));
    }

    #[test]
    fn more_scopes_than_are_kept_apart_retire_together() {
        let mut heap = HeapRing::new(1 << 20);
        for scope in 1..=1000 {
            heap.take(64);
            heap.close(scope);
        }
        heap.retire(15);
        assert_eq!(heap.in_use(), 64 * (1000 - 15));
        heap.retire(999);
        assert!(heap.in_use() > 0);
        heap.retire(1000);
        assert_eq!(heap.in_use(), 0);
    }
}
