//! The marks that a run leaves: how full each ring was, how often the builder waited, and which sizes would suffice.
//!
//! Only the builder writes them. Rings are named by `RingKind`; the heaps follow the last one, by depth. Invariant:
//! `high_water` and `needed` only grow within a run.

use pto_abi::stream::{RingKind, StreamHeader};
use pto_abi::sync::{AtomicU64, Ordering::Relaxed};

use super::FEWEST_ENTRIES;

/// See the file.
pub(super) struct Marks<'a> {
    header: &'a StreamHeader,
    /// The most that one task took of a ring, or what was added at once, or was kept back, by `RingKind`.
    largest: [u64; 4],
}

impl<'a> Marks<'a> {
    /// Marks of rings of these sizes, and of this many heaps of this many bytes; nothing has happened yet.
    pub(super) fn new(
        header: &'a StreamHeader,
        capacities: [u64; 4],
        (heaps, heap_bytes): (usize, u64),
    ) -> Self {
        for line in &header.rings {
            for word in [&line.capacity, &line.high_water, &line.waits, &line.needed] {
                word.store(0, Relaxed);
            }
        }
        for (line, capacity) in header.rings.iter().zip(capacities) {
            line.capacity.store(capacity, Relaxed);
        }
        for line in header.rings.iter().skip(usize::from(RingKind::HEAP.get())).take(heaps) {
            line.capacity.store(heap_bytes, Relaxed);
        }
        header.scopes.store(0, Relaxed);
        header.tensors.store(0, Relaxed);
        Self { header, largest: [0; 4] }
    }

    /// One task, or what is added at once, takes so much of a ring.
    #[inline]
    pub(super) fn takes(&mut self, ring: RingKind, count: u64) {
        if let Some(largest) = self.largest.get_mut(usize::from(ring.get()))
            && count > *largest
        {
            *largest = count;
        }
    }

    /// So much of the rings is in use. Called before anything retires, so that no peak is missed.
    #[inline]
    pub(super) fn in_use(&self, in_use: [u64; 4]) {
        for (line, in_use) in self.header.rings.iter().zip(in_use) {
            raise(&line.high_water, in_use);
        }
    }

    /// So much of a ring was needed at once.
    pub(super) fn needs(&self, ring: RingKind, count: u64) {
        if let Some(line) = self.header.rings.get(usize::from(ring.get())) {
            raise(&line.needed, count);
        }
    }

    /// So much of the heap of a depth is in use, and so much would suffice.
    pub(super) fn heap(&self, depth: usize, in_use: u64, needed: u64) {
        if let Some(line) = self.header.rings.get(heap_ring(depth)) {
            raise(&line.high_water, in_use);
            raise(&line.needed, needed);
        }
    }

    /// The builder waits for a ring.
    pub(super) fn waits(&self, ring: usize) {
        if let Some(line) = self.header.rings.get(ring) {
            line.waits.store(line.waits.load(Relaxed) + 1, Relaxed);
        }
    }

    /// Stores how many scopes were opened.
    pub(super) fn scopes(&self, opened: u64) {
        self.header.scopes.store(opened, Relaxed);
    }

    /// One more tensor was given out.
    pub(super) fn tensor(&self) {
        self.header.tensors.store(self.header.tensors.load(Relaxed) + 1, Relaxed);
    }

    /// The build is over; `any`: a task was added; `kept`: entries of the map that were kept back, in addition to those of one task.
    pub(super) fn end(&self, in_use: [u64; 4], any: bool, kept: u64) {
        self.in_use(in_use);
        let [window, words, chunks, entries] = self.largest;
        let window = window.max(any.into());
        if window > 0 {
            self.needs(RingKind::WINDOW, window.next_power_of_two());
        }
        self.needs(RingKind::ARGS, words);
        self.needs(RingKind::EDGES, chunks);
        if entries > 0 {
            self.needs(RingKind::MAP, map_of(kept + entries));
        }
    }
}

/// The ring that a heap is among the marks.
pub(super) fn heap_ring(depth: usize) -> usize {
    usize::from(RingKind::HEAP.get()) + depth
}

/// The smallest tensor map with this many entries.
pub(super) fn map_of(entries: u64) -> u64 {
    entries.next_power_of_two().max(FEWEST_ENTRIES.into())
}

#[inline]
fn raise(mark: &AtomicU64, value: u64) {
    if value > mark.load(Relaxed) {
        mark.store(value, Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{FEWEST_ENTRIES, Marks, heap_ring};
    use pto_abi::stream::{RingKind, StreamHeader};
    use pto_abi::sync::Ordering::Relaxed;

    #[test]
    fn what_is_needed_is_the_most_that_was_taken_at_once() {
        let header = StreamHeader::default();
        header.rings[0].waits.store(7, Relaxed);
        let mut marks = Marks::new(&header, [8, 64, 16, 256], (2, 4096));
        for count in [3, 5, 2] {
            marks.takes(RingKind::WINDOW, count);
            marks.takes(RingKind::MAP, 100 * count);
        }
        marks.in_use([4, 0, 0, 9]);
        marks.waits(0);
        marks.heap(1, 10, 100);
        marks.heap(1, 5, 20);
        marks.end([2, 3, 0, 1], true, 20);
        let line = |ring: usize| {
            let line = &header.rings[ring];
            [&line.capacity, &line.high_water, &line.waits, &line.needed].map(|w| w.load(Relaxed))
        };
        assert_eq!(line(0), [8, 4, 1, 8], "a power of two; the marks of an earlier run are gone");
        assert_eq!(line(1), [64, 3, 0, 0]);
        assert_eq!(line(3), [256, 9, 0, 1024]);
        assert_eq!((line(heap_ring(0)), line(heap_ring(1))), ([4096, 0, 0, 0], [4096, 10, 0, 100]));
        assert!(line(heap_ring(2)) == [0; 4] && FEWEST_ENTRIES == 256);
    }
}
