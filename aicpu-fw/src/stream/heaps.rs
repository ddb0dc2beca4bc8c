//! The heaps of tensors: one for each depth of scopes.
//!
//! A heap is taken back scope by scope: at a depth one scope is open at a time, so the oldest part of a full heap belongs
//! either to scopes that are closed, whose tasks will complete, or to the open one, and then nothing can retire: that is the
//! proof of `STREAM_HEAP_RING`. Invariants: the parts of closed scopes follow each other from the tail of the ring on, and
//! what the open scope has taken comes last.

use core::hash::{Hash, Hasher};

use heapless::{Deque, Vec};
use pto_abi::GmAddr;
use pto_abi::stream::MAX_HEAP_RINGS;

use super::rings::SpanRing;
use crate::mutant::{self, Mutant};

/// Closed scopes that a heap keeps apart; beyond that, the newest ones retire together.
const CLOSED_SCOPES: usize = 16;

/// The heaps of all depths, one after another.
pub(super) struct Heaps {
    rings: Vec<HeapRing, MAX_HEAP_RINGS>,
    /// Where the first one is.
    start: GmAddr,
    /// Bytes of each.
    bytes: u64,
}

/// Why a heap does not take a tensor now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HeapFull {
    pub(super) in_use: u64,
    /// A capacity with which it would have fitted.
    pub(super) suffices: u64,
    /// Whether everything in it belongs to the open scope: waiting does not help.
    pub(super) is_held: bool,
}

impl Heaps {
    /// `count` empty heaps; more than there can be are not used.
    pub(super) fn new(count: usize, start: GmAddr, bytes: u64) -> Self {
        let rings = (0..count.min(MAX_HEAP_RINGS)).map(|_| HeapRing::new(bytes)).collect();
        Self { rings, start, bytes }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.rings.len()
    }

    /// Bytes of each.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes back what has retired at `depth`, and a part of `bytes` bytes, if it fits; where that is. `None`: there is no
    /// such heap. `report` gets what is in use then, and a capacity that holds the open scope with these bytes, wherever in
    /// the ring that begins.
    #[inline(always)]
    pub(super) fn take(
        &mut self,
        depth: usize,
        watermark: u64,
        bytes: u64,
        report: impl FnOnce(u64, u64),
    ) -> Option<Result<GmAddr, HeapFull>> {
        let heap = self.rings.get_mut(depth)?;
        heap.retire(watermark);
        let needed = heap.needed(bytes);
        if heap.has_room(bytes) {
            let offset = heap.take(bytes);
            report(heap.in_use(), needed);
            return Some(Ok(self.start.offset(depth as u64 * self.bytes + offset)));
        }
        let (is_held, in_use) = (heap.is_held(), heap.in_use());
        report(in_use, needed);
        let suffices = if is_held { needed } else { heap.needed_with(bytes) };
        Some(Err(HeapFull { in_use, suffices, is_held }))
    }

    /// A capacity that holds all that was taken at each depth for scopes that were not closed before task `from` was added.
    pub(super) fn needed_since(&self, from: u64) -> impl Iterator<Item = u64> {
        self.rings.iter().map(move |heap| heap.needed_since(from))
    }

    /// The open scope at `depth` ends; `next_task` is the number that the next task will have.
    pub(super) fn close(&mut self, depth: usize, next_task: u64) {
        if let Some(heap) = self.rings.get_mut(depth) {
            heap.close(next_task);
        }
    }

    /// Hashes their positions.
    pub(super) fn hash_state<H: Hasher>(&self, into: &mut H) {
        self.rings.iter().for_each(|heap| heap.hash_state(into));
    }
}

/// The heap of one depth of scopes.
#[derive(Clone, Debug)]
struct HeapRing {
    span: SpanRing,
    /// Where the parts of closed scopes end, and the number of the first task after each.
    closed: Deque<(u64, u64), CLOSED_SCOPES>,
    /// What the open scope has taken, and its largest span.
    open_bytes: u64,
    open_largest: u64,
    /// The largest span that was ever taken.
    largest: u64,
}

impl HeapRing {
    /// An empty heap.
    const fn new(capacity: u64) -> Self {
        let span = SpanRing::new(capacity, 0);
        Self { span, closed: Deque::new(), open_bytes: 0, open_largest: 0, largest: 0 }
    }

    /// Hashes its position.
    fn hash_state<H: Hasher>(&self, into: &mut H) {
        // What is only reported is left out.
        let Self { span, closed, open_bytes, open_largest, largest: _ } = self;
        (span, open_bytes, open_largest).hash(into);
        closed.iter().for_each(|scope| scope.hash(into));
    }

    /// Takes back what belongs to scopes all of whose tasks are below `watermark`.
    #[inline]
    fn retire(&mut self, watermark: u64) {
        while let Some(&(end, first_after)) = self.closed.front() {
            if first_after > watermark && !mutant::is(Mutant::ReusesTheHeapEarly) {
                return;
            }
            self.span.retire(end);
            self.closed.pop_front();
        }
    }

    /// Whether a span of `bytes` fits now.
    #[inline]
    const fn has_room(&self, bytes: u64) -> bool {
        self.span.has_room(bytes)
    }

    /// Whether everything in it belongs to the open scope.
    #[inline]
    fn is_held(&self) -> bool {
        self.closed.is_empty()
    }

    /// Takes a span for which there is room; returns its offset.
    #[inline]
    const fn take(&mut self, bytes: u64) -> u64 {
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
    #[inline]
    const fn in_use(&self) -> u64 {
        self.span.in_use()
    }

    /// A capacity that holds the open scope with `more` bytes, wherever in the ring it begins: its sum, and what is
    /// skipped at the end of the ring, which is less than its largest span.
    #[inline]
    const fn needed(&self, more: u64) -> u64 {
        let largest = if more > self.open_largest { more } else { self.open_largest };
        self.open_bytes.saturating_add(more).saturating_add(largest)
    }

    /// A capacity that holds all that is in it with `more` bytes, while none of it can retire.
    const fn needed_with(&self, more: u64) -> u64 {
        let largest = if more > self.largest { more } else { self.largest };
        self.in_use().saturating_add(more).saturating_add(largest)
    }

    /// A capacity that holds all that was taken for scopes that were not closed before task `from` was added: while that one
    /// is kept back, none of it retires. Zero: there is nothing but the open scope.
    fn needed_since(&self, from: u64) -> u64 {
        let retires = self.closed.iter().take_while(|(_, first_after)| *first_after <= from);
        let start = retires.last().map_or(self.span.tail(), |(end, _)| *end);
        let is_kept = self.closed.back().is_some_and(|(_, first_after)| *first_after > from);
        if is_kept { (self.span.head() - start).saturating_add(self.largest) } else { 0 }
    }

    /// The open scope ends; `next_task` is the number that the next task will have.
    fn close(&mut self, next_task: u64) {
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
    use super::{HeapFull, HeapRing, Heaps};
    use pto_abi::GmAddr;
    use std::vec::Vec;

    #[test]
    fn each_depth_has_a_heap_of_its_own() {
        let mut heaps = Heaps::new(2, GmAddr(0x1000), 256);
        let reported = core::cell::Cell::new((0, 0));
        let report = |in_use, needed| reported.set((in_use, needed));
        assert_eq!(heaps.take(0, 0, 192, report), Some(Ok(GmAddr(0x1000))));
        assert_eq!(heaps.take(1, 0, 64, report), Some(Ok(GmAddr(0x1100))));
        assert_eq!(heaps.take(2, 0, 64, report), None);
        let full = HeapFull { in_use: 192, suffices: 192 + 128 + 192, is_held: true };
        assert_eq!(heaps.take(0, 0, 128, report), Some(Err(full)));
        heaps.close(0, 5);
        assert_eq!(heaps.needed_since(4).collect::<Vec<_>>(), [384, 0]);
        assert!(matches!(
            heaps.take(0, 4, 128, report),
            Some(Err(HeapFull { is_held: false, .. }))
        ));
        assert_eq!(heaps.take(0, 5, 128, report), Some(Ok(GmAddr(0x1000))), "it begins anew");
        assert_eq!((reported.get(), heaps.count()), ((128, 256), 2));
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
