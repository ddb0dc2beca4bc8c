//! Edges and publishes of the streaming builder.
//!
//! Chunks of edges are a ring: one is given out while a task is added, for a producer that was added before, and is
//! taken back with that task. Waiting for one ends when the producer has completed, too: no edge is needed then. So it
//! never deadlocks where edges lead forward and no task is held back.

use pto_abi::kinds::TaskState;
use pto_abi::stream::RingKind;
use pto_abi::sync::{Ordering, Sharing};
use pto_abi::task::{INLINE_CONSUMERS, NO_CHUNK, SHAPED, Task};
use pto_abi::trace::TraceKind;
use pto_abi::{Fault, TaskId};
use pto_graph::EdgeOutcome;

use super::builder::Stream;
use crate::builder::{BuilderHost, DeviceMemory, RESERVE, count_one, release_published};
use crate::fanout::{FanoutPolicy, Place, place_of};
use crate::state::kind_in;

impl<'a, S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> Stream<'a, S, F, M, H> {
    /// An edge that a caller of the interface wants.
    pub(super) fn explicit_edge(&mut self, from: TaskId, to: TaskId) -> Result<EdgeOutcome, Fault> {
        let (producer, consumer) = (self.number_of(from)?, self.number_of(to)?);
        if producer == consumer {
            return Err(self.refuse_task(Fault::BUILD_SELF_EDGE, to, 0, 0));
        }
        if consumer < self.watermark || self.state_of(consumer) != TaskState::ADDED.get() {
            let found = self.state_of(consumer).into();
            return Err(self.refuse_task(Fault::BUILD_CONSUMER_PUBLISHED, to, found, 1));
        }
        if producer > consumer {
            self.kept.waits_for_later(consumer);
        }
        self.edge(producer, consumer)
    }

    /// Makes the newest task wait for one that the program names.
    #[inline]
    pub(super) fn edge_after(&mut self, from: TaskId, newest: u64) -> Result<(), Fault> {
        let producer = self.number_of(from)?;
        if producer == newest {
            return Err(self.refuse_task(Fault::BUILD_SELF_EDGE, from, 0, 0));
        }
        self.edge(producer, newest).map(|_| ())
    }

    /// Makes `consumer`, which is not published, wait for `producer`, unless it need not.
    fn edge(&mut self, producer: u64, consumer: u64) -> Result<EdgeOutcome, Fault> {
        let slots = (self.slot_of(producer), self.slot_of(consumer));
        let from = self.state.task(slots.0).filter(|_| producer >= self.watermark);
        match from.and_then(|from| F::count(from).map(|count| (from, count))) {
            Some((from, count)) => self.append((from, count), producer, slots),
            // Its slot may be another task's: it cannot be told in a timeline.
            None if producer + self.mask < self.next => {
                count_one(&self.line.edges_satisfied);
                Ok(EdgeOutcome::AlreadySatisfied)
            }
            None => Ok(self.satisfied(slots)),
        }
    }

    /// Makes the newest task wait for `producer`, unless it does or need not.
    #[inline]
    pub(super) fn derived_edge(&mut self, producer: u64, newest: u64) -> Result<(), Fault> {
        let slots = (self.slot_of(producer), self.slot_of(newest));
        let from = self.state.task(slots.0).filter(|_| producer >= self.watermark);
        let Some(from) = from else { return Ok(()) };
        let outcome = match F::count(from) {
            // Most tasks have few consumers.
            Some(count) if (count as usize) < INLINE_CONSUMERS => {
                let places = &from.consumers;
                let last = places.get((count as usize).wrapping_sub(1));
                if last.is_some_and(|last| last.load(Ordering::Relaxed) == slots.1) {
                    return Ok(());
                }
                if let Some(place) = places.get(count as usize) {
                    place.store(slots.1, Ordering::Relaxed);
                }
                self.commit(from, count, slots)
            }
            None => self.satisfied(slots),
            // An edge from another argument, or for another entry, or one that the program wanted.
            Some(count) if self.is_last(from, count, slots.1) => return Ok(()),
            Some(count) => self.append((from, count), producer, slots)?,
        };
        self.host.derived(slots.0, slots.1, outcome);
        Ok(())
    }

    /// Whether `consumer` is the last one of the `count` that a task has. The newest task is, if it is one of them.
    #[inline]
    fn is_last(&self, producer: &Task, count: u32, consumer: u32) -> bool {
        let chunk = || {
            let last = producer.last_chunk.load(Ordering::Relaxed);
            self.state.chunks.get(last as usize)
        };
        let place = match count.checked_sub(1).map(place_of) {
            None => None,
            Some(Place::Inline(at)) => producer.consumers.get(at),
            Some(Place::Chunk(at)) => chunk().and_then(|chunk| chunk.consumers.get(at)),
            Some(Place::NewChunk) => chunk().and_then(|chunk| chunk.consumers.first()),
        };
        place.is_some_and(|place| place.load(Ordering::Relaxed) == consumer)
    }

    /// Puts the consumer behind the `count` that the producer has.
    #[inline]
    fn append(
        &mut self,
        (from, mut count): (&'a Task, u32),
        producer: u64,
        slots: (u32, u32),
    ) -> Result<EdgeOutcome, Fault> {
        if place_of(count) == Place::NewChunk && !self.has_room(RingKind::EDGES, 1) {
            self.wait_for_room_or(RingKind::EDGES, 1, Some(producer))?;
            // The producer may have completed meanwhile.
            match F::count(from).filter(|_| producer >= self.watermark) {
                Some(now) => count = now,
                None => return Ok(self.satisfied(slots)),
            }
        }
        self.put(from, count, slots.1);
        Ok(self.commit(from, count, slots))
    }

    /// Counts the consumer that stands in place `count`.
    #[inline]
    fn commit(&mut self, from: &Task, count: u32, slots: (u32, u32)) -> EdgeOutcome {
        if !F::commit::<S>(from, count) {
            return self.satisfied(slots);
        }
        if let Some(to) = self.state.task(slots.1) {
            to.edges_in.store(to.edges_in.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        count_one(&self.line.edges);
        self.trace(TraceKind::EDGE, slots.1, slots.0);
        EdgeOutcome::Added
    }

    #[inline]
    fn satisfied(&mut self, (producer, consumer): (u32, u32)) -> EdgeOutcome {
        count_one(&self.line.edges_satisfied);
        self.trace(TraceKind::EDGE_SATISFIED, consumer, producer);
        EdgeOutcome::AlreadySatisfied
    }

    /// Puts `consumer` into place `count` of the producer's fanout, for which there is room.
    #[inline]
    pub(super) fn put(&mut self, producer: &Task, count: u32, consumer: u32) {
        let chunks = self.state.chunks;
        let last = producer.last_chunk.load(Ordering::Relaxed);
        let place = match place_of(count) {
            Place::Inline(at) => producer.consumers.get(at),
            Place::Chunk(at) => chunks.get(last as usize).and_then(|c| c.consumers.get(at)),
            Place::NewChunk => {
                self.takes(RingKind::EDGES, 1);
                let index = u32::try_from(self.chunks.take(1)).unwrap_or(NO_CHUNK);
                match chunks.get(last as usize).filter(|_| last != NO_CHUNK) {
                    None => producer.first_chunk.store(index, Ordering::Relaxed),
                    Some(previous) => previous.next.store(index, Ordering::Relaxed),
                }
                producer.last_chunk.store(index, Ordering::Relaxed);
                chunks.get(index as usize).and_then(|chunk| chunk.consumers.first())
            }
        };
        if let Some(place) = place {
            place.store(consumer, Ordering::Relaxed);
        }
    }

    /// Makes an added task visible to the schedulers.
    pub(super) fn publish_task(&mut self, id: TaskId) -> Result<(), Fault> {
        let number = self.number_of(id)?;
        let state = if number < self.watermark { 0 } else { self.state_of(number) };
        if state != TaskState::ADDED.get() {
            return Err(self.refuse_task(Fault::BUILD_ALREADY_PUBLISHED, id, state.into(), 1));
        }
        self.note_kept(number);
        self.publish_added(id.slot)
    }

    /// Makes the task in this slot, which is added, visible to the schedulers.
    #[inline]
    pub(super) fn publish_added(&mut self, slot: u32) -> Result<(), Fault> {
        let Some(task) = self.state.task(slot) else { return Ok(()) };
        task.state.store(TaskState::PUBLISHED.get(), Ordering::Relaxed);
        if self.reserve == 0 {
            // Relaxed: ordered before every decrement of these tasks by the publish itself.
            S::fetch_add(&self.state.progress.outstanding, RESERVE, Ordering::Relaxed);
            self.reserve = RESERVE;
        }
        self.reserve -= 1;
        count_one(&self.line.published);
        if H::TRACES {
            self.traced_ns = self.host.now_ns();
            self.trace(TraceKind::PUBLISHED, slot, 0);
        }
        if self.state.fault.is_raised() {
            return Err(self.raised());
        }
        if release_published::<S>(task, task.edges_in.load(Ordering::Relaxed)) {
            self.is_ready(slot, task);
        }
        self.tell_state(slot.into());
        self.host.published();
        Ok(())
    }

    /// A task is ready when it is published: it goes where the schedulers look.
    #[inline]
    pub(super) fn is_ready(&mut self, slot: u32, task: &Task) {
        self.trace(TraceKind::READY, slot, 0);
        let kind = task.kind.load(Ordering::Relaxed);
        if kind & SHAPED == 0 {
            self.state.queue(kind_in(kind)).push::<S>(&[slot]);
        } else {
            self.post_shaped(slot);
        }
    }
}
