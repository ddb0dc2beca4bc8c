//! The memory of a streaming run, as the builder gives it out and takes it back.
//!
//! **The watermark** `W`: every task with a number below `W` has completed. Slots, argument words, chunks of edges and entries
//! of the tensor map are given out in the order of the tasks and taken back in that order, when `W` passes: one number,
//! read from the state of one task, instead of a reference count on everything. Parts of the heaps are taken back when a
//! closed scope is below `W`; recordings are kept until the run ends.
//!
//! Invariant: the note of a slot holds the positions of the rings before its task took a part of them, so what comes before the
//! note of the oldest task under way has retired.

use pto_abi::GmAddr;
use pto_abi::limits::MAX_ARGS;
use pto_abi::stream::{RingKind, SlotNote, StreamHeader};
use pto_abi::sync::{AtomicU64, Ordering::Relaxed};
use pto_abi::task::{EdgeChunk, Task};

use super::heaps::{HeapFull, Heaps};
use super::map::TensorMap;
use super::marks::Marks;
use super::recording::Recordings;
use super::rings::{RunOnRing, before, low_half};
use super::unpublished::UnpublishedTasks;
use super::window::SlotWindow;
use crate::builder::BLOCK_0_OF_1;
use crate::builder::consumers::put_consumer;
use crate::state::SharedState;

/// The memory of a streaming run, checked. See `super::memory`.
pub struct StreamMemory<'a> {
    /// Sizes and marks.
    pub header: &'a StreamHeader,
    /// Notes on the slots: as many as the window has; a power of two.
    pub notes: &'a [SlotNote],
    /// The tensor map, empty.
    pub map: TensorMap<'a>,
    /// Words of recordings.
    pub recordings: &'a [AtomicU64],
    /// Argument words. Memory holds [`MAX_ARGS`] more, past the end of the ring.
    pub arg_words: u64,
    /// Chunks of edges.
    pub edge_chunks: u64,
    /// Heap rings, and bytes of each.
    pub heap_rings: usize,
    /// See `heap_rings`.
    pub heap_bytes: u64,
    /// Where the first heap ring is.
    pub heap: GmAddr,
    /// Number of the run's first task.
    pub first_task: u64,
}

/// See the file.
pub(super) struct Storage<'a> {
    window: SlotWindow<'a>,
    /// The argument words, and the ring that they are given out by.
    payloads: &'a [AtomicU64],
    words: RunOnRing,
    chunks: RunOnRing,
    map: &'a TensorMap<'a>,
    heaps: Heaps,
    recordings: Recordings<'a>,
    marks: Marks<'a>,
    unpublished: UnpublishedTasks,
}

impl<'a> Storage<'a> {
    /// All of it is free.
    pub(super) fn new(state: &SharedState<'a>, generation: u32, of: &'a StreamMemory<'a>) -> Self {
        let first = of.first_task;
        let window = SlotWindow::new(state.tasks, of.notes, first, generation);
        // The words of one task run on past the end of the ring.
        let held = (state.payloads.len() as u64).saturating_sub(MAX_ARGS as u64);
        let words = RunOnRing::new(of.arg_words.min(held), first);
        let chunks = RunOnRing::new(of.edge_chunks, first);
        let heaps = Heaps::new(of.heap_rings, of.heap, of.heap_bytes);
        let capacities = [window.slots(), words.capacity(), chunks.capacity(), of.map.capacity()];
        let marks = Marks::new(of.header, capacities, (heaps.count(), heaps.bytes()));
        Self {
            window,
            payloads: state.payloads,
            words,
            chunks,
            map: &of.map,
            heaps,
            recordings: Recordings::new(of.recordings),
            marks,
            unpublished: UnpublishedTasks::new(),
        }
    }

    /// The slots.
    #[inline]
    pub(super) const fn window(&self) -> &SlotWindow<'a> {
        &self.window
    }

    /// The tensor map.
    #[inline]
    pub(super) const fn map(&self) -> &'a TensorMap<'a> {
        self.map
    }

    /// What is kept to be built again.
    #[inline]
    pub(super) const fn recordings(&self) -> &Recordings<'a> {
        &self.recordings
    }

    /// See [`recordings`](Self::recordings).
    pub(super) const fn recordings_mut(&mut self) -> &mut Recordings<'a> {
        &mut self.recordings
    }

    /// What a run leaves.
    pub(super) const fn marks(&self) -> &Marks<'a> {
        &self.marks
    }

    /// How many depths of scopes have a heap.
    pub(super) fn heap_count(&self) -> usize {
        self.heaps.count()
    }

    /// Moves the watermark, and takes back what is below it.
    #[inline]
    pub(super) fn advance(&mut self) {
        if self.window.advance() {
            self.retire();
        }
    }

    #[inline]
    fn retire(&mut self) {
        self.marks.in_use(self.in_use());
        let watermark = self.window.watermark();
        match self.window.note(watermark) {
            Some(note) if watermark < self.window.next() => {
                self.words.retire_low(note.first_word.load(Relaxed));
                self.chunks.retire_low(note.first_chunk.load(Relaxed));
                let entry = before(self.map.head(), note.first_entry.load(Relaxed));
                self.map.retire(watermark, entry);
            }
            _ => {
                self.words.retire(self.words.head());
                self.chunks.retire(self.chunks.head());
                self.map.retire(watermark, self.map.head());
            }
        }
    }

    /// What is in use of the rings of window, words, chunks and entries.
    pub(super) const fn in_use(&self) -> [u64; 4] {
        let window = self.window.in_use();
        [window, self.words.in_use(), self.chunks.in_use(), self.map.in_use()]
    }

    /// Whether a ring takes `count` more.
    #[inline]
    pub(super) const fn has_room(&self, ring: RingKind, count: u64) -> bool {
        match ring {
            RingKind::WINDOW => self.window.in_use() + count <= self.window.slots(),
            RingKind::ARGS => self.words.has_room(count),
            RingKind::EDGES => self.chunks.has_room(count),
            _ => self.map.has_room(count),
        }
    }

    /// Notes that one task, or what is added at once, takes so much of a ring.
    #[inline]
    pub(super) fn takes(&mut self, ring: RingKind, count: u64) {
        self.marks.takes(ring, count);
    }

    /// Where the next `count` argument words are.
    #[inline]
    pub(super) fn next_words(&self, count: usize) -> &'a [AtomicU64] {
        let start = usize::try_from(self.words.offset()).unwrap_or(usize::MAX);
        let words = self.payloads.get(start..).unwrap_or(&[]);
        words.get(..count).unwrap_or(&[])
    }

    /// Takes what a task needs with its slot: `count` argument words, which have been written, and then one of block context;
    /// returns the offset of the first one.
    #[inline]
    pub(super) fn take_args(&mut self, note: &SlotNote, count: usize) -> u32 {
        self.note_rings(note, self.words.head());
        let payload = self.words.take(count as u64 + 1);
        let start = usize::try_from(payload).unwrap_or(usize::MAX);
        if let Some(context) = self.payloads.get(start + count) {
            context.store(BLOCK_0_OF_1, Relaxed);
        }
        u32::try_from(payload).unwrap_or(u32::MAX)
    }

    /// Takes argument words of many tasks at once; the offset of the first one and its position.
    pub(super) const fn take_words(&mut self, count: u64) -> (u32, u64) {
        let position = self.words.head();
        // The line of a task has 32 bits for the offset.
        (low_half(self.words.take(count)), position)
    }

    /// All argument words, and how many of them the ring has: what follows is its overrun.
    pub(super) const fn payloads(&self) -> (&'a [AtomicU64], u32) {
        (self.payloads, low_half(self.words.capacity()))
    }

    /// Notes the positions of the rings before a task takes its part of them; `first_word`: that of the arguments.
    #[inline]
    pub(super) fn note_rings(&self, note: &SlotNote, first_word: u64) {
        note.first_word.store(low_half(first_word), Relaxed);
        note.first_chunk.store(low_half(self.chunks.head()), Relaxed);
        note.first_entry.store(low_half(self.map.head()), Relaxed);
    }

    /// The next task has been written into its slot.
    #[inline]
    pub(super) const fn add_task(&mut self) {
        self.window.add();
    }

    /// Writes a consumer into the producer's fanout, which has `count` and room for one more.
    #[inline]
    pub(super) fn put_consumer(
        &mut self,
        chunks: &[EdgeChunk],
        producer: &Task,
        count: u32,
        consumer: u32,
    ) {
        // There is room: a chunk is there.
        put_consumer(chunks, producer, count, consumer, || self.take_chunk()).unwrap_or_default();
    }

    #[inline]
    fn take_chunk(&mut self) -> Option<u32> {
        self.marks.takes(RingKind::EDGES, 1);
        u32::try_from(self.chunks.take(1)).ok()
    }

    /// The newest task, `number`, takes `count` more entries of the map.
    pub(super) fn takes_more_entries(&mut self, number: u64, count: u64) {
        let first = self.window.note(number).map_or(0, |note| note.first_entry.load(Relaxed));
        self.marks.takes(RingKind::MAP, self.map.since_low(first) + count);
    }

    /// Takes a part of the heap of `depth`; `None`: there is no such heap.
    #[inline(always)]
    pub(super) fn take_heap(
        &mut self,
        depth: usize,
        bytes: u64,
    ) -> Option<Result<GmAddr, HeapFull>> {
        let (marks, watermark) = (&self.marks, self.window.watermark());
        self.heaps.take(depth, watermark, bytes, |in_use, needed| {
            marks.heap(depth, in_use, needed);
        })
    }

    /// The open scope at `depth` ends.
    pub(super) fn close_heap(&mut self, depth: usize) {
        self.heaps.close(depth, self.window.next());
    }

    /// Task `consumer`, which is not published, waits for a later one.
    pub(super) const fn waits_for_later(&mut self, consumer: u64) {
        self.unpublished.waits_for_later(consumer);
    }

    /// Task `number`, which is added, is about to be published; `published` says how many were before.
    #[inline]
    pub(super) fn note_kept(&mut self, number: u64, published: impl FnOnce() -> u64) {
        if self.unpublished.concerns(number, self.window.next()) {
            self.count_kept(number, published());
        }
    }

    #[inline(never)]
    fn count_kept(&mut self, number: u64, published: u64) {
        let (watermark, next) = (self.window.watermark(), self.window.next());
        if let Some(from) = self.unpublished.count_from(number, watermark, next) {
            self.count_since(from);
        }
        if published + 1 == self.window.added() {
            self.unpublished.none_is_left();
        }
    }

    fn count_since(&mut self, from: u64) {
        let Some(note) = self.window.note(from) else { return };
        let low = [&note.first_word, &note.first_chunk, &note.first_entry];
        let [word, chunk, entry] = low.map(|position| position.load(Relaxed));
        self.marks.takes(RingKind::WINDOW, self.window.next() - from);
        self.marks.takes(RingKind::ARGS, self.words.since_low(word));
        self.marks.takes(RingKind::EDGES, self.chunks.since_low(chunk));
        self.unpublished.count_entries(self.map.since_low(entry));
        for (depth, needed) in self.heaps.needed_since(from).enumerate() {
            self.marks.heap(depth, 0, needed);
        }
    }

    /// The build is over; `is_held`: nothing could retire in it.
    pub(super) fn end_marks(&self, is_held: bool) {
        let kept = if is_held { self.map.in_use() } else { 0 };
        let any = self.window.added() > 0;
        self.marks.end(self.in_use(), any, self.unpublished.entries().max(kept));
    }

    /// Hashes the positions of everything.
    pub(super) fn hash_state<H: core::hash::Hasher>(&self, into: &mut H) {
        use core::hash::Hash;
        // What is only reported is left out, and what is memory of the run.
        let Self {
            window,
            payloads: _,
            words,
            chunks,
            map,
            heaps,
            recordings,
            marks: _,
            unpublished: _,
        } = self;
        window.hash_state(into);
        (words, chunks).hash(into);
        recordings.hash_state(into);
        heaps.hash_state(into);
        map.hash_state(into);
    }
}
