//! Tasks that the program keeps back: added, and published later. What the rings need because of them.
//!
//! While a task is kept back, nothing that was taken since it was added retires. How much that was is known when it
//! is published, from what the builder has noted of its slot: nothing is counted on the way there, and tasks that are
//! published as they are added are not looked at. Beside it, an older task that waits for a later one keeps its place until that
//! one is published.

use pto_abi::stream::RingKind;
use pto_abi::sync::{Ordering, Sharing};

use super::builder::Stream;
use crate::builder::{BuilderHost, DeviceMemory};
use crate::fanout::FanoutPolicy;

/// No task.
const NONE: u64 = u64::MAX;

/// What is noted of tasks that are kept back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    /// The oldest task that waits for a later one, since all tasks were published last.
    waiting: u64,
    /// Task `next` was the next one, and what was taken since task `from` was counted.
    counted: (u64, u64),
    /// The most entries of the tensor map.
    entries: u64,
}

impl Kept {
    pub(super) const fn new() -> Self {
        Self { waiting: NONE, counted: (NONE, NONE), entries: 0 }
    }

    /// Task `consumer` waits for a later one.
    pub(super) const fn waits_for_later(&mut self, consumer: u64) {
        if consumer < self.waiting {
            self.waiting = consumer;
        }
    }

    /// Entries of the tensor map that suffice, if one task takes so many at most.
    pub(super) const fn entries_beside(&self, most: u64) -> u64 {
        self.entries + most
    }
}

impl<S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> Stream<'_, S, F, M, H> {
    /// Task `number`, which is added, is about to be published.
    #[inline]
    pub(super) fn note_kept(&mut self, number: u64) {
        if number + 1 != self.next || self.kept.waiting != NONE {
            self.count_kept(number);
        }
    }

    #[inline(never)]
    fn count_kept(&mut self, number: u64) {
        let from = number.min(self.kept.waiting.max(self.watermark));
        let (next, known) = self.kept.counted;
        if next != self.next || from < known {
            self.kept.counted = (self.next, from);
            self.count_since(from);
        }
        if self.line.published.load(Ordering::Relaxed) + 1 == self.added() {
            self.kept.waiting = NONE;
        }
    }

    fn count_since(&mut self, from: u64) {
        let Some(record) = self.record(from) else { return };
        let low = [&record.first_word, &record.first_chunk, &record.first_entry];
        let [word, chunk, entry] = low.map(|position| position.load(Ordering::Relaxed));
        self.takes(RingKind::WINDOW, self.next - from);
        self.takes(RingKind::ARGS, self.words.since_low(word));
        self.takes(RingKind::EDGES, self.chunks.since_low(chunk));
        self.kept.entries = self.kept.entries.max(self.map.since_low(entry));
        for depth in 0..self.heaps.len() {
            let needed = self.heaps.get(depth).map_or(0, |heap| heap.needed_since(from));
            self.mark_heap(depth, 0, needed);
        }
    }
}
