//! Ranges: tasks of one kernel that are submitted in one call.
//!
//! The kernel is checked, room is found and the tasks are counted once for all of them. Each task is then written, gets its edges and is
//! published before the next one is looked at, as if it were submitted by itself: who looks on sees no difference.

use pto_abi::chain::MAX_CHAIN_ARGS;
use pto_abi::kinds::TaskState;
use pto_abi::limits::MAX_FANIN;
use pto_abi::sync::{AtomicU64, Ordering, Sharing};
use pto_abi::task::{INLINE_CONSUMERS, Task};
use pto_abi::trace::TraceKind;
use pto_abi::{CoreKind, Fault, GmAddr, TaskId};
use pto_graph::{EdgeOutcome, TaskRange};

use super::Builder;
use super::machine::{BuilderHost, DeviceMemory, RangeNote};
use super::publisher::{count_some, release_published};
use super::task_line::{BLOCK_0_OF_1, TaskLine};
use crate::fanout::FanoutPolicy;
use crate::mutant::{self, Mutant};

/// Where the tasks of a range stand.
struct Room<'a> {
    tasks: &'a [Task],
    /// Arguments of all of them, each task's with a word of block context behind.
    words: &'a [AtomicU64],
    /// The number of the first word.
    first_word: u32,
}

/// The arguments of one task after the other.
struct Arguments<'r> {
    range: &'r TaskRange<'r>,
    first: [u64; MAX_CHAIN_ARGS],
    words: [u64; MAX_CHAIN_ARGS],
}

impl<'r> Arguments<'r> {
    fn of(range: &'r TaskRange<'r>) -> Self {
        let mut first = [0; MAX_CHAIN_ARGS];
        first.iter_mut().zip(range.words()).for_each(|(to, word)| *to = word);
        Self { range, first, words: first }
    }

    /// Goes to task `index`.
    #[inline]
    fn vary(&mut self, index: u32) {
        let variations = self.range.variations();
        for variation in variations {
            if let Some(word) = self.words.get_mut(variation.arg()) {
                *word = self.first.get(variation.arg()).copied().unwrap_or(0);
            }
        }
        for variation in variations {
            if let Some(word) = self.words.get_mut(variation.arg()) {
                *word = variation.at(index, *word);
            }
        }
    }

    /// Writes them, and the block context behind them.
    #[inline]
    fn write(&self, words: &[AtomicU64]) {
        let Some((context, words)) = words.split_last() else { return };
        for (word, arg) in words.iter().zip(&self.words) {
            word.store(*arg, Ordering::Relaxed);
        }
        context.store(BLOCK_0_OF_1, Ordering::Relaxed);
    }
}

impl<'a, S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> Builder<'a, S, F, M, H> {
    /// Submits a range.
    #[inline(never)]
    pub(super) fn insert_range(
        &mut self,
        range: &TaskRange<'_>,
        ids: &mut [TaskId],
    ) -> Result<(), Fault> {
        let kernel = self.accept_range(range, ids.len())?;
        let room = self.room(range)?;
        let spec = range.task();
        let (func_id, kind) = (spec.func_id.0, spec.kind);
        let arg_count = range.arg_count();
        // `accept_range` bounded the count by MAX_CHAIN_ARGS, which is 31.
        let args = u8::try_from(arg_count).unwrap_or(u8::MAX);
        let stride = arg_count + 1;
        let generation = self.generation;
        let mut arguments = Arguments::of(range);
        let mut edges = 0;
        self.events.host().in_range(RangeNote::Range);
        let mut words = room.words;
        let places = room.tasks.iter().zip(ids.iter_mut()).zip(0..);
        let (waits, mut slot) = (range.waits(), self.next_task);
        let mut payload = room.first_word;
        // Before the first one is published.
        self.publisher.count_all::<S>(room.tasks.len() as u64);
        self.count_range(range.tasks());
        for ((task, place), index) in places {
            let id = TaskId { slot, generation };
            *place = id;
            let (own, rest) = words.split_at_checked(stride).unwrap_or((words, &[]));
            words = rest;
            arguments.vary(index);
            arguments.write(own);
            TaskLine::added(func_id, kind.get(), (payload, args), kernel.0).write(task, id);
            self.events.added(slot, func_id, kind.get());
            let mut edges_in = 0;
            let appended = waits
                .iter()
                .try_for_each(|wait| self.append_range(wait.of(index), id, &mut edges_in));
            task.edges_in.store(edges_in, Ordering::Relaxed);
            edges += u64::from(edges_in);
            if let Err(fault) = appended {
                count_some(&self.publisher.line().edges, edges);
                self.break_off(slot, range.tasks() - index);
                return Err(fault);
            }
            self.publish_in_range(task, (slot, kind), edges_in);
            payload = payload.wrapping_add(u32::from(args) + 1);
            slot = slot.wrapping_add(1);
        }
        count_some(&self.publisher.line().edges, edges);
        // A builder must not fill the memory of a run that has failed.
        if self.state.fault.is_raised() {
            return Err(self.state.fault.first().unwrap_or(Fault::RUN_CANCELLED));
        }
        Ok(())
    }

    /// The code of the kernel, if the range can be submitted.
    fn accept_range(&mut self, range: &TaskRange<'_>, ids: usize) -> Result<GmAddr, Fault> {
        let next = TaskId { slot: self.next_task, generation: self.generation };
        if let Err(fault) = range.check(ids) {
            return Err(self.refuse_task(fault, next, ids as u64, range.tasks().into()));
        }
        let (spec, args) = (range.task(), range.arg_count());
        let kernel = (spec.func_id, spec.kind);
        match self.kernels.accept(kernel, spec.kernel, args) {
            Some(code) => Ok(code),
            None => Err(self.refuse_kernel(kernel, args)),
        }
    }

    /// Room for the tasks of a range.
    fn room(&mut self, range: &TaskRange<'_>) -> Result<Room<'a>, Fault> {
        let (count, func) = (range.tasks() as usize, range.task().func_id);
        let (slot, state) = (self.next_task as usize, self.state);
        let Some(tasks) = state.tasks.get(slot..).and_then(|free| free.get(..count)) else {
            let (found, bound) = (slot + count - 1, state.tasks.len());
            return Err(self.refuse(Fault::BUILD_TASKS_FULL, func, found, bound));
        };
        let first_word = self.next_word;
        let end = first_word as usize + count * (range.arg_count() + 1);
        let words = state.payloads.get(first_word as usize..end).zip(u32::try_from(end).ok());
        let Some((words, end)) = words else {
            return Err(self.refuse(Fault::BUILD_PAYLOADS_FULL, func, end, state.payloads.len()));
        };
        self.next_word = end;
        Ok(Room { tasks, words, first_word })
    }

    /// The tasks of a range are added.
    fn count_range(&mut self, tasks: u32) {
        self.next_task += tasks;
        self.publisher.line().added.store(self.next_task.into(), Ordering::Relaxed);
    }

    /// The task in `slot` is the last one of its range that is added, and this many are not published.
    #[cold]
    fn break_off(&mut self, slot: u32, unpublished: u32) {
        self.publisher.count_off::<S>(unpublished.into());
        self.next_task = slot + 1;
        self.publisher.line().added.store(self.next_task.into(), Ordering::Relaxed);
    }

    /// Puts edges behind all of them, for a task that is not published; counts those that it has to wait for.
    #[inline]
    fn append_range(
        &mut self,
        producers: &[TaskId],
        consumer: TaskId,
        edges_in: &mut u32,
    ) -> Result<(), Fault> {
        let tasks = self.state.tasks;
        if producers.len() > (MAX_FANIN - *edges_in) as usize {
            let (found, bound) = (producers.len() as u64, MAX_FANIN.into());
            return Err(self.refuse_task(Fault::BUILD_FANIN_LIMIT, consumer, found, bound));
        }
        for &producer in producers {
            let is_before =
                producer.slot < consumer.slot && producer.generation == consumer.generation;
            let Some(task) = tasks.get(producer.slot as usize).filter(|_| is_before) else {
                return Err(self.not_before(producer, consumer));
            };
            let outcome = match F::count(task) {
                // Most tasks have few consumers.
                Some(count) if (count as usize) < INLINE_CONSUMERS => {
                    if let Some(place) = task.consumers.get(count as usize) {
                        place.store(consumer.slot, Ordering::Relaxed);
                    }
                    if F::commit::<S>(task, count) {
                        self.events.trace(TraceKind::EDGE, consumer.slot, producer.slot);
                        EdgeOutcome::Added
                    } else {
                        self.satisfied(producer, consumer)
                    }
                }
                Some(_) => self.append_far(task, producer, consumer, *edges_in)?,
                None => self.satisfied(producer, consumer),
            };
            *edges_in += u32::from(outcome == EdgeOutcome::Added);
            let (producer, consumer) = (producer.slot, consumer.slot);
            self.events.host().in_range(RangeNote::Edge { producer, consumer, outcome });
        }
        Ok(())
    }

    /// An edge that does not stand in the line of its producer.
    #[inline(never)]
    fn append_far(
        &mut self,
        task: &Task,
        producer: TaskId,
        consumer: TaskId,
        edges_in: u32,
    ) -> Result<EdgeOutcome, Fault> {
        self.append(task, producer, consumer, edges_in)
    }

    /// Makes a task of a range visible to the schedulers; it is counted already.
    #[inline]
    fn publish_in_range(&mut self, task: &Task, (slot, kind): (u32, CoreKind), edges_in: u32) {
        task.state.store(TaskState::PUBLISHED.get(), Ordering::Relaxed);
        self.events.published(slot);
        self.events.host().in_range(RangeNote::Task(slot));
        let is_ready = if S::IS_EXCLUSIVE {
            // No producer can have completed since its edge was appended.
            task.fanin.store(edges_in, Ordering::Relaxed);
            edges_in == 0
        } else {
            release_published::<S>(task, edges_in)
        };
        if is_ready || mutant::is(Mutant::PublishesAsReady) {
            self.events.trace(TraceKind::READY, slot, 0);
            self.state.queue(kind).push::<S>(&[slot]);
        }
        self.events.host().published();
    }
}
