//! Edges of the streaming builder.
//!
//! Chunks of edges are a ring: one is given out while a task is added, for a producer that was added before, and is
//! taken back with that task. Waiting for one ends when the producer has completed, too: no edge is needed then. So it
//! never deadlocks where edges lead forward and no task is held back.

use pto_abi::kinds::TaskState;
use pto_abi::stream::RingKind;
use pto_abi::sync::Ordering;
use pto_abi::task::{INLINE_CONSUMERS, Task};
use pto_abi::trace::TraceKind;
use pto_abi::{Fault, TaskId};
use pto_graph::EdgeOutcome;

use super::Tasks;
use crate::blame::Blame;
use crate::builder::consumers::is_last_consumer;
use crate::builder::publisher::count_one;
use crate::config::Config;
use crate::fanout::{ConsumerSlot, FanoutPolicy, slot_of_consumer};
use crate::machine::Machine;

impl<'a, C: Config> Tasks<'a, C> {
    /// An edge that a caller of the interface wants.
    pub(in crate::stream) fn explicit_edge(
        &mut self,
        from: TaskId,
        to: TaskId,
    ) -> Result<EdgeOutcome, Fault> {
        let (producer, consumer) = (self.number_of(from)?, self.number_of(to)?);
        if producer == consumer {
            return Err(self.refuse_task(Fault::BUILD_SELF_EDGE, to, 0, 0));
        }
        let window = self.storage.window();
        let state = window.state_of(consumer);
        if consumer < window.watermark() || state != TaskState::ADDED.get() {
            return Err(self.refuse_task(Fault::BUILD_CONSUMER_PUBLISHED, to, state.into(), 1));
        }
        if producer > consumer {
            self.storage.waits_for_later(consumer);
        }
        self.edge(producer, consumer)
    }

    /// Makes the newest task wait for one that the program names.
    #[inline]
    pub(in crate::stream) fn edge_after(&mut self, from: TaskId, newest: u64) -> Result<(), Fault> {
        let producer = self.number_of(from)?;
        if producer == newest {
            return Err(self.refuse_task(Fault::BUILD_SELF_EDGE, from, 0, 0));
        }
        self.edge(producer, newest).map(|_| ())
    }

    /// The number of a task that this run gave an id to.
    #[inline]
    pub(super) fn number_of(&mut self, id: TaskId) -> Result<u64, Fault> {
        match self.storage.window().number_of(id) {
            Some(number) => Ok(number),
            None => Err(self.refuse_id(id)),
        }
    }

    /// Makes `consumer`, which is not published, wait for `producer`, unless it need not.
    #[inline]
    fn edge(&mut self, producer: u64, consumer: u64) -> Result<EdgeOutcome, Fault> {
        let window = self.storage.window();
        let slots = (window.slot_of(producer), window.slot_of(consumer));
        let from = window.task(producer).filter(|_| producer >= window.watermark());
        match from.and_then(|from| C::Fanout::count(from).map(|count| (from, count))) {
            // Most tasks have few consumers.
            Some((from, count)) if (count as usize) < INLINE_CONSUMERS => {
                if let Some(entry) = from.consumers.get(count as usize) {
                    entry.store(slots.1, Ordering::Relaxed);
                }
                Ok(self.commit(from, count, slots))
            }
            Some((from, count)) => self.append((from, count), producer, slots),
            // Its slot may be another task's: a timeline could not show it.
            None if producer + window.slots() <= window.next() => {
                count_one(&self.publisher.line().edges_satisfied);
                Ok(EdgeOutcome::AlreadySatisfied)
            }
            None => Ok(self.satisfied(slots)),
        }
    }

    /// Makes the newest task wait for `producer`, unless it does or need not.
    #[inline(always)]
    pub(in crate::stream) fn derived_edge(
        &mut self,
        producer: u64,
        newest: u64,
    ) -> Result<(), Fault> {
        let window = self.storage.window();
        let slots = (window.slot_of(producer), window.slot_of(newest));
        let from = window.task(producer).filter(|_| producer >= window.watermark());
        let Some(from) = from else { return Ok(()) };
        let outcome = match C::Fanout::count(from) {
            // Most tasks have few consumers.
            Some(count) if (count as usize) < INLINE_CONSUMERS => {
                let consumers = &from.consumers;
                let last = consumers.get((count as usize).wrapping_sub(1));
                if last.is_some_and(|last| last.load(Ordering::Relaxed) == slots.1) {
                    return Ok(());
                }
                if let Some(entry) = consumers.get(count as usize) {
                    entry.store(slots.1, Ordering::Relaxed);
                }
                self.commit(from, count, slots)
            }
            None => self.satisfied(slots),
            // An edge from another argument, or for another entry, or one that the program wanted: the newest task is the last
            // consumer, if it is one.
            Some(count) if is_last_consumer(self.state.chunks, from, count, slots.1) => {
                return Ok(());
            }
            Some(count) => self.append((from, count), producer, slots)?,
        };
        self.events.machine().derived(slots.0, slots.1, outcome);
        Ok(())
    }

    /// It takes too long to decide what an argument of task `number` meets.
    #[cold]
    pub(in crate::stream) fn undecided(&mut self, number: u64, argument: u32) -> Fault {
        let blame = Blame::of(Fault::STREAM_VIEW_IRREGULAR);
        let task = self.storage.window().id_of(number);
        self.refuse(blame.task(task).argument(argument))
    }

    /// Appends the consumer to the `count` that the producer has.
    #[inline(never)]
    fn append(
        &mut self,
        (from, mut count): (&'a Task, u32),
        producer: u64,
        slots: (u32, u32),
    ) -> Result<EdgeOutcome, Fault> {
        if slot_of_consumer(count) == ConsumerSlot::NewChunk
            && !self.storage.has_room(RingKind::EDGES, 1)
        {
            self.wait_for_room_or(RingKind::EDGES, 1, Some(producer))?;
            // The producer may have completed meanwhile.
            let is_alive = producer >= self.storage.window().watermark();
            match C::Fanout::count(from).filter(|_| is_alive) {
                Some(now) => count = now,
                None => return Ok(self.satisfied(slots)),
            }
        }
        self.storage.put_consumer(self.state.chunks, from, count, slots.1);
        Ok(self.commit(from, count, slots))
    }

    /// Counts the consumer in slot `count`.
    #[inline]
    fn commit(&mut self, from: &Task, count: u32, slots: (u32, u32)) -> EdgeOutcome {
        if !C::Fanout::commit::<C::Sharing>(from, count) {
            return self.satisfied(slots);
        }
        if let Some(to) = self.storage.window().task_in(slots.1) {
            to.edges_in.store(to.edges_in.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        count_one(&self.publisher.line().edges);
        self.events.trace(TraceKind::EDGE, slots.1, slots.0);
        EdgeOutcome::Added
    }

    #[inline]
    fn satisfied(&mut self, (producer, consumer): (u32, u32)) -> EdgeOutcome {
        count_one(&self.publisher.line().edges_satisfied);
        self.events.trace(TraceKind::EDGE_SATISFIED, consumer, producer);
        EdgeOutcome::AlreadySatisfied
    }
}
