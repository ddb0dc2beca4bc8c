//! Waiting for room, and the marks that a run leaves.
//!
//! Rings retire at the watermark. It will move unless the oldest task that has not completed is one that the program has
//! not published, or the schedulers wait for the program, or there is no such task, or that task waits for others of
//! which none moves (proof.rs): those four are the proof that nothing can retire. Everything else that keeps it from moving is
//! the schedulers' business, and their watchdog's.

use pto_abi::Fault;
use pto_abi::kinds::TaskState;
use pto_abi::stream::RingKind;
use pto_abi::sync::{AtomicU64, Ordering, Sharing};

use super::FEWEST_ENTRIES;
use super::builder::{Schedulers, Stream};
use super::proof::{Patience, Until};
use crate::blame::Blame;
use crate::builder::{BuilderHost, DeviceMemory};
use crate::fanout::FanoutPolicy;

impl<S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> Stream<'_, S, F, M, H> {
    /// Lets the others work, then looks again; `at`: for what.
    ///
    /// # Errors
    /// The fault of the run, if it has one.
    pub(super) fn wait_a_turn(&mut self, at: u64) -> Result<(), Fault> {
        if self.state.fault.is_raised() {
            return Err(self.raised());
        }
        self.tell_state(at);
        self.host.relax();
        self.advance();
        Ok(())
    }

    /// Waits until `ring` takes `count` more.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for_room(&mut self, ring: RingKind, count: u64) -> Result<(), Fault> {
        self.wait_for_room_or(ring, count, None)
    }

    /// Waits until `ring` takes `count` more, or this task is complete.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for_room_or(
        &mut self,
        ring: RingKind,
        count: u64,
        complete: Option<u64>,
    ) -> Result<(), Fault> {
        self.advance();
        self.mark_need(ring, count);
        if self.is_over(ring, count, complete) {
            return Ok(());
        }
        self.mark_use();
        self.count_wait(usize::from(ring.get()));
        let until = complete.map_or(Until::Retired, Until::RetiredOrComplete);
        let mut patience = Patience::new();
        while !self.is_over(ring, count, complete) {
            // The states are read before room is looked for once more: a task may complete in between.
            let is_hopeless = self.is_hopeless(until, &mut patience);
            self.advance();
            if is_hopeless && !self.is_over(ring, count, complete) {
                return Err(self.ring_too_small(ring, count));
            }
            self.wait_a_turn(count)?;
        }
        Ok(())
    }

    fn is_over(&self, ring: RingKind, count: u64, complete: Option<u64>) -> bool {
        self.has_room(ring, count) || complete.is_some_and(|task| self.has_completed(task))
    }

    /// Whether a task has completed, or retired.
    pub(super) fn has_completed(&self, number: u64) -> bool {
        number < self.watermark || self.state_of(number) == TaskState::COMPLETED.get()
    }

    #[cold]
    fn ring_too_small(&mut self, ring: RingKind, count: u64) -> Fault {
        let index = usize::from(ring.get());
        let in_use = self.in_use().get(index).copied().unwrap_or(0);
        let blame = self.blame_ring(ring, in_use, in_use + count);
        self.hopeless(blame, self.watermark)
    }

    /// What is added at once is more than the whole ring.
    #[cold]
    pub(super) fn too_large(&mut self, ring: RingKind, count: u64) -> Fault {
        let blame = self.blame_ring(ring, 0, count);
        self.hopeless(blame, self.next)
    }

    fn blame_ring(&self, ring: RingKind, in_use: u64, suffices: u64) -> Blame {
        let (fault, suffices) = match ring {
            // As many as are added until the oldest one is published.
            RingKind::WINDOW => (Fault::STREAM_WINDOW_RING, suffices.next_power_of_two()),
            RingKind::ARGS => (Fault::STREAM_ARGS_RING, suffices),
            RingKind::EDGES => (Fault::STREAM_EDGES_RING, suffices),
            _ => (Fault::STREAM_MAP_RING, map_of(suffices)),
        };
        let scope = self.scopes.last().map_or(0, |scope| scope.id.serial);
        Blame::of(fault).detail(in_use, suffices).ring(ring.get().into(), scope)
    }

    pub(super) fn begin_marks(&self) {
        for line in &self.header.rings {
            for word in [&line.capacity, &line.high_water, &line.waits, &line.needed] {
                word.store(0, Ordering::Relaxed);
            }
        }
        for (line, capacity) in self.header.rings.iter().zip(self.capacities()) {
            line.capacity.store(capacity, Ordering::Relaxed);
        }
        for line in
            self.header.rings.iter().skip(usize::from(RingKind::HEAP.get())).take(self.heaps.len())
        {
            line.capacity.store(self.heap_bytes, Ordering::Relaxed);
        }
        self.header.scopes.store(0, Ordering::Relaxed);
        self.header.tensors.store(0, Ordering::Relaxed);
    }

    /// Notes how much of the rings is in use: before anything retires, so that no peak is missed.
    #[inline]
    pub(super) fn mark_use(&self) {
        for (line, in_use) in self.header.rings.iter().zip(self.in_use()) {
            raise(&line.high_water, in_use);
        }
    }

    pub(super) fn mark_need(&self, ring: RingKind, count: u64) {
        if let Some(line) = self.header.rings.get(usize::from(ring.get())) {
            raise(&line.needed, count);
        }
    }

    pub(super) fn mark_heap(&self, depth: usize, in_use: u64, needed: u64) {
        if let Some(line) = self.header.rings.get(usize::from(RingKind::HEAP.get()) + depth) {
            raise(&line.high_water, in_use);
            raise(&line.needed, needed);
        }
    }

    pub(super) fn count_wait(&self, ring: usize) {
        if let Some(line) = self.header.rings.get(ring) {
            let waits = line.waits.load(Ordering::Relaxed);
            line.waits.store(waits + 1, Ordering::Relaxed);
        }
    }

    pub(super) fn end_marks(&self) {
        self.mark_use();
        let [window, words, chunks, entries] = self.largest;
        let window = window.max(self.added().min(1));
        if window > 0 {
            self.mark_need(RingKind::WINDOW, window.next_power_of_two());
        }
        self.mark_need(RingKind::ARGS, words);
        self.mark_need(RingKind::EDGES, chunks);
        if entries > 0 {
            // Where the schedulers wait, everything is kept back.
            let kept = if self.schedulers == Schedulers::Wait { self.map.in_use() } else { 0 };
            self.mark_need(
                RingKind::MAP,
                map_of(self.kept.entries_beside(entries).max(kept + entries)),
            );
        }
    }
}

/// The smallest tensor map with so many entries.
fn map_of(entries: u64) -> u64 {
    entries.next_power_of_two().max(FEWEST_ENTRIES.into())
}

/// Only the builder writes the marks.
#[inline]
fn raise(mark: &AtomicU64, value: u64) {
    if value > mark.load(Ordering::Relaxed) {
        mark.store(value, Ordering::Relaxed);
    }
}
