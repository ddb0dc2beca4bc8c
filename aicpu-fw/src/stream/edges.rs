//! Edges and publishes of the streaming builder.
//!
//! Chunks of edges are a ring: one is given out while a task is added, for a producer that was added before, and is
//! taken back with that task. Waiting for chunks never deadlocks where edges lead forward: when all earlier tasks
//! have completed, no edge is needed any more.

use pto_abi::graph::EdgeOutcome;
use pto_abi::kinds::TaskState;
use pto_abi::stream::RingKind;
use pto_abi::sync::{Ordering, Sharing};
use pto_abi::task::{NO_CHUNK, Task};
use pto_abi::trace::TraceKind;
use pto_abi::{Fault, TaskId};

use super::builder::Stream;
use crate::builder::{BuilderHost, DeviceMemory, RESERVE, count_one, release_published};
use crate::fanout::{FanoutPolicy, Place, place_of};
use crate::state::kind_of;

impl<S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> Stream<'_, S, F, M, H> {
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
        self.edge(producer, consumer)
    }

    /// Makes `consumer`, which is not published, wait for `producer`, unless it does or need not.
    #[inline]
    pub(super) fn edge(&mut self, producer: u64, consumer: u64) -> Result<EdgeOutcome, Fault> {
        let slots = (self.slot_of(producer), self.slot_of(consumer));
        let tasks = self.state.task(slots.0).zip(self.state.task(slots.1));
        let Some(((from, to), record)) = tasks.zip(self.record(producer)) else {
            return Ok(EdgeOutcome::AlreadySatisfied);
        };
        if producer < self.watermark {
            count_one(&self.line.edges_satisfied);
            return Ok(EdgeOutcome::AlreadySatisfied);
        }
        let Some(mut count) = F::count(from) else { return Ok(self.satisfied(slots)) };
        if place_of(count) == Place::NewChunk && !self.has_room(RingKind::EDGES, 1) {
            self.wait_for_room(RingKind::EDGES, 1)?;
            // The producer may have completed meanwhile.
            match F::count(from).filter(|_| producer >= self.watermark) {
                Some(now) => count = now,
                None => return Ok(self.satisfied(slots)),
            }
        }
        record.edge_stamp.store(consumer + 1, Ordering::Relaxed);
        self.put(from, count, slots.1);
        if !F::commit::<S>(from, count) {
            return Ok(self.satisfied(slots));
        }
        to.edges_in.store(to.edges_in.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        count_one(&self.line.edges);
        self.trace(TraceKind::EDGE, slots.1, slots.0);
        Ok(EdgeOutcome::Added)
    }

    #[inline]
    fn satisfied(&mut self, (producer, consumer): (u32, u32)) -> EdgeOutcome {
        count_one(&self.line.edges_satisfied);
        self.trace(TraceKind::EDGE_SATISFIED, consumer, producer);
        EdgeOutcome::AlreadySatisfied
    }

    /// Puts `consumer` into place `count` of the producer's fanout, for which there is room.
    #[inline]
    fn put(&mut self, producer: &Task, count: u32, consumer: u32) {
        let chunks = self.state.chunks;
        let last = producer.last_chunk.load(Ordering::Relaxed);
        let place = match place_of(count) {
            Place::Inline(at) => producer.consumers.get(at),
            Place::Chunk(at) => chunks.get(last as usize).and_then(|c| c.consumers.get(at)),
            Place::NewChunk => {
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
    #[inline]
    pub(super) fn publish_task(&mut self, id: TaskId) -> Result<(), Fault> {
        let number = self.number_of(id)?;
        let state = if number < self.watermark { 0 } else { self.state_of(number) };
        let Some(task) = self.state.task(id.slot).filter(|_| state == TaskState::ADDED.get())
        else {
            return Err(self.refuse_task(Fault::BUILD_ALREADY_PUBLISHED, id, state.into(), 1));
        };
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
            self.trace(TraceKind::PUBLISHED, id.slot, 0);
        }
        if self.state.fault.is_raised() {
            return Err(self.raised());
        }
        if release_published::<S>(task, task.edges_in.load(Ordering::Relaxed)) {
            self.trace(TraceKind::READY, id.slot, 0);
            self.state.queue(kind_of(task)).push::<S>(&[id.slot]);
        }
        self.host.published();
        Ok(())
    }
}
