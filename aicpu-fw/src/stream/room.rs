//! Waiting for room, the proof that there will be none, and the marks that a run leaves.
//!
//! The builder waits only for the watermark. It will move unless the oldest task that has not completed is one that
//! the program has not published, or the schedulers wait for the program, or there is no such task: those three are
//! the proof that nothing can retire. Everything else that keeps it from moving is the schedulers' business, and
//! their watchdog's.

use pto_abi::Fault;
use pto_abi::kinds::TaskState;
use pto_abi::stream::RingKind;
use pto_abi::sync::{AtomicU64, Ordering, Sharing};

use super::builder::{Schedulers, Stream};
use crate::blame::Blame;
use crate::builder::{BuilderHost, DeviceMemory};
use crate::fanout::FanoutPolicy;

/// Whether waiting can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outlook {
    /// A published task is under way.
    Moves,
    /// Nothing can retire.
    Stuck,
}

impl<S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> Stream<'_, S, F, M, H> {
    pub(super) fn outlook(&self) -> Outlook {
        let is_idle = self.watermark == self.next;
        if is_idle
            || self.schedulers == Schedulers::Wait
            || self.state_of(self.watermark) == TaskState::ADDED.get()
        {
            return Outlook::Stuck;
        }
        Outlook::Moves
    }

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
        self.advance();
        self.mark_need(ring, count);
        if self.has_room(ring, count) {
            return Ok(());
        }
        self.mark_use();
        self.count_wait(usize::from(ring.get()));
        while !self.has_room(ring, count) {
            // The state is read before room is looked for once more: a task may complete in between.
            let outlook = self.outlook();
            self.advance();
            if outlook == Outlook::Stuck && !self.has_room(ring, count) {
                return Err(self.ring_too_small(ring, count));
            }
            self.wait_a_turn(count)?;
        }
        Ok(())
    }

    #[cold]
    pub(super) fn ring_too_small(&mut self, ring: RingKind, count: u64) -> Fault {
        let index = usize::from(ring.get());
        let in_use = self.in_use().get(index).copied().unwrap_or(0);
        let (fault, suffices) = match ring {
            // As many as are added until the oldest one is published.
            RingKind::WINDOW => (Fault::STREAM_WINDOW_RING, (in_use + count).next_power_of_two()),
            RingKind::ARGS if self.watermark == self.next => (Fault::STREAM_ARGS_RING, count),
            RingKind::ARGS => (Fault::STREAM_ARGS_RING, in_use + 2 * count),
            RingKind::EDGES => (Fault::STREAM_EDGES_RING, in_use + count),
            _ => (Fault::STREAM_MAP_RING, (in_use + count).next_power_of_two()),
        };
        let oldest = if self.watermark < self.next { self.watermark } else { self.next };
        let scope = self.scopes.last().map_or(0, |scope| scope.id.serial);
        let blame = Blame::of(fault).task(self.id_of(oldest)).detail(in_use, suffices);
        self.blame.leave(blame.ring(ring.get().into(), scope))
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
        let kinds = [RingKind::WINDOW, RingKind::ARGS, RingKind::EDGES, RingKind::MAP];
        for (ring, largest) in kinds.into_iter().zip(self.largest) {
            self.mark_need(ring, largest);
        }
        self.mark_need(RingKind::WINDOW, self.added().min(1));
    }
}

/// Only the builder writes the marks.
#[inline]
fn raise(mark: &AtomicU64, value: u64) {
    if value > mark.load(Ordering::Relaxed) {
        mark.store(value, Ordering::Relaxed);
    }
}
