//! Ranges: tasks of one kernel that are submitted in one call.
//!
//! The kernel is checked, room is found and the tasks are counted once for all of them. Then, [`BATCH`] tasks at a time, the lines and the words
//! of all of them are written, and each gets its edges and is published before the next one is looked at, as if it were submitted by itself: who
//! looks on sees no difference. Two short loops need fewer instructions than a long one, whose values do not fit into registers.

use heapless::Vec;
use pto_abi::chain::MAX_CHAIN_ARGS;
use pto_abi::kinds::TaskState;
use pto_abi::limits::MAX_FANIN;
use pto_abi::sync::{AtomicU64, Ordering, Sharing};
use pto_abi::task::{Task, TaskHead};
use pto_abi::trace::TraceKind;
use pto_abi::{CoreKind, Fault, GmAddr, TaskId};
use pto_graph::{EdgeOutcome, ListWalk, TaskRange, Variation, Wait, WaitWalk, WindowWalk};

use super::Builder;
use super::publisher::{count_some, release_published};
use super::task_line::BLOCK_0_OF_1;
use crate::config::Config;
use crate::fanout::{FanoutPolicy, RoomInLine};
use crate::machine::{Machine, RangeNote};
use crate::mutant::{self, Mutant};

/// Tasks whose lines are written before the first of them gets its edges: 4 KiB of lines, which are still in the nearest cache then.
const BATCH: u32 = 64;

/// The slots and argument words of a range.
struct Room<'a> {
    tasks: &'a [Task],
    /// Arguments of all of them, each task's followed by a word of block context.
    words: &'a [AtomicU64],
    /// The number of the first word.
    first_word: u32,
}

/// What the tasks of a range have in common.
struct Common<'r> {
    /// The arguments of the first one, before anything varies.
    words: &'r [u64],
    variations: &'r [Variation<'r>],
    kernel: u64,
    generation: u32,
    func_id: u16,
    kind: CoreKind,
    args: u8,
}

impl Common<'_> {
    /// Words of a task, its block context included.
    #[inline]
    fn stride(&self) -> usize {
        // Never zero, as the compiler sees.
        usize::from(self.args) + 1
    }

    /// Writes the lines and the words of tasks that no scheduler looks at yet, and their ids. The first of them is task `first` of the range, is in
    /// `slot`, and has its words at `payload`.
    #[inline(never)]
    fn write(
        &self,
        (tasks, ids): (&[Task], &mut [TaskId]),
        words: &[AtomicU64],
        (mut slot, payload, first): (u32, u32, u32),
    ) {
        let generation = self.generation;
        let code = (self.func_id, self.kind.get(), self.kernel);
        // No scheduler looks before a task is published; one that is not says so itself ([`break_off`](Builder::break_off)).
        let mut head = TaskHead::new(TaskState::PUBLISHED, code, (payload, self.args), generation);
        let slots = tasks.iter().zip(ids).zip(words.chunks_exact(self.stride()));
        for ((task, id), own) in slots {
            *id = TaskId { slot, generation };
            head.write(task);
            self.write_words(own);
            slot = slot.wrapping_add(1);
            head.advance(u32::from(self.args) + 1);
        }
        // In a loop of its own: most of a range's tasks have few arguments, and many none that varies.
        if !self.variations.is_empty() {
            for (index, own) in (first..).zip(words.chunks_exact(self.stride())) {
                self.vary(own, index);
            }
        }
    }

    /// Writes the arguments of a task, and then the block context.
    #[inline(always)]
    fn write_words(&self, own: &[AtomicU64]) {
        for (word, arg) in own.iter().zip(self.words) {
            word.store(*arg, Ordering::Relaxed);
        }
        // The last one, as the compiler sees.
        if let Some(context) = own.get(usize::from(self.args)) {
            context.store(BLOCK_0_OF_1, Ordering::Relaxed);
        }
    }

    /// Turns the arguments of the first task, which these words hold, into those of task `index`.
    #[inline(always)]
    fn vary(&self, own: &[AtomicU64], index: u32) {
        for variation in self.variations {
            if let Some(word) = own.get(variation.arg()) {
                let varied = variation.at(index, word.load(Ordering::Relaxed));
                word.store(varied, Ordering::Relaxed);
            }
        }
    }
}

impl<'a, C: Config> Builder<'a, C> {
    /// Submits a range.
    #[inline(never)]
    pub(super) fn insert_range(
        &mut self,
        range: &TaskRange<'_>,
        ids: &mut [TaskId],
    ) -> Result<(), Fault> {
        let GmAddr(kernel) = self.accept_range(range, ids.len())?;
        let Room { tasks, words, first_word } = self.room(range)?;
        let mut copied = Vec::new();
        let common = Common {
            words: words_of(range, &mut copied),
            variations: range.variations(),
            kernel,
            generation: self.generation,
            func_id: range.task().func_id.0,
            kind: range.task().kind,
            // `accept_range` bounded the count by MAX_CHAIN_ARGS, which is 31.
            args: u8::try_from(range.arg_count()).unwrap_or(u8::MAX),
        };
        self.events.machine().in_range(RangeNote::Range);
        let (first, count, mut index) = (self.next_task, range.tasks(), 0);
        // Before the first one is published.
        self.publisher.count_all::<C::Sharing>(count.into());
        self.count_range(count);
        while index < count {
            let next = count.min(index.saturating_add(BATCH));
            let batch = index as usize..next as usize;
            let of_words = batch.start * common.stride()..batch.end * common.stride();
            let payload = first_word.wrapping_add(index.wrapping_mul(u32::from(common.args) + 1));
            let parts = (tasks.get(batch.clone()), ids.get_mut(batch), words.get(of_words));
            // `accept_range` and `room` have seen to it.
            let (Some(tasks), Some(ids), Some(words)) = parts else { break };
            common.write((tasks, ids), words, (first.wrapping_add(index), payload, index));
            let at = (first, index);
            match range.waits() {
                [] => self.link::<WindowWalk<'_>, false>((&NOTHING, &[]), range, tasks, at)?,
                [wait] if wait.is_listed() => {
                    self.link::<ListWalk<'_>, false>((wait, &[]), range, tasks, at)?;
                }
                [wait] => self.link::<WindowWalk<'_>, false>((wait, &[]), range, tasks, at)?,
                [wait, more @ ..] => {
                    self.link::<WindowWalk<'_>, true>((wait, more), range, tasks, at)?;
                }
            }
            index = next;
        }
        // A builder must not fill the memory of a run that has failed.
        if self.state.fault.is_raised() {
            return Err(self.state.fault.first().unwrap_or(Fault::RUN_CANCELLED));
        }
        Ok(())
    }

    /// Adds the edges of tasks whose lines are written, and publishes them. The range begins with task `first` of the run, and they with
    /// task `index` of the range. `MORE`: it has several waits, where most have one: their loop over tasks has no loop over waits.
    #[inline(never)]
    fn link<'r, W: WaitWalk<'r>, const MORE: bool>(
        &mut self,
        (wait, more): (&'r Wait<'r>, &[Wait<'r>]),
        range: &TaskRange<'r>,
        tasks: &[Task],
        (first, index): (u32, u32),
    ) -> Result<(), Fault> {
        let (func_id, kind) = (range.task().func_id.0, range.task().kind);
        let tasks_of_run = self.state.tasks;
        let before = &tasks_of_run[..tasks_of_run.len().min(first as usize)];
        let generation = self.generation;
        let mut walk = W::along(wait, index);
        let (mut slot, mut edges) = (first.wrapping_add(index), 0);
        for task in tasks {
            let id = TaskId { slot, generation };
            self.events.added(slot, func_id, kind.get());
            let mut producers = match walk.next(slot.wrapping_sub(first)) {
                Some(producers) => producers,
                None => outside(wait, first, slot),
            };
            let (mut edges_in, mut rest) = (0, more.iter());
            let appended = loop {
                match self.append_range(before, producers, id, edges_in) {
                    Ok(so_far) => edges_in = so_far,
                    Err(fault) => break Err(fault),
                }
                match rest.next().filter(|_| MORE) {
                    Some(wait) => producers = outside(wait, first, slot),
                    None => break Ok(edges_in),
                }
            };
            let edges_in = match appended {
                Ok(edges_in) => edges_in,
                Err((fault, edges_in)) => {
                    count_some(&self.publisher.line().edges, (edges + edges_in) as u64);
                    self.break_off(range, (task, slot, first), low_half(edges_in));
                    return Err(fault);
                }
            };
            edges += edges_in;
            self.publish_in_range(task, (slot, kind), low_half(edges_in));
            slot = slot.wrapping_add(1);
        }
        count_some(&self.publisher.line().edges, edges as u64);
        Ok(())
    }

    /// The code of the kernel, if the range can be submitted.
    fn accept_range(&mut self, range: &TaskRange<'_>, ids: usize) -> Result<GmAddr, Fault> {
        let next = TaskId { slot: self.next_task, generation: self.generation };
        if let Err(fault) = range.check(ids) {
            return Err(self.refuse_task(fault, next, ids as u64, range.tasks().into()));
        }
        // The lists of one task are parts of these.
        let producers: u64 = range.waits().iter().map(|wait| wait.producers() as u64).sum();
        if producers > MAX_FANIN.into() {
            let bound = MAX_FANIN.into();
            return Err(self.refuse_task(Fault::BUILD_FANIN_LIMIT, next, producers, bound));
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

    /// The task in `slot` is the last one of its range that is added, with this many edges. The range begins with task `first`.
    #[cold]
    #[inline(never)]
    fn break_off(
        &mut self,
        range: &TaskRange<'_>,
        (task, slot, first): (&Task, u32, u32),
        edges_in: u32,
    ) {
        task.edges_in.store(edges_in, Ordering::Relaxed);
        task.state.store(TaskState::ADDED.get(), Ordering::Relaxed);
        let published = slot.wrapping_sub(first);
        self.publisher.count_off::<C::Sharing>((range.tasks() - published).into());
        self.next_task = slot + 1;
        self.publisher.line().added.store(self.next_task.into(), Ordering::Relaxed);
    }

    /// Adds edges from all of them to a task that is not published; returns those that it has to wait for, with the `edges_in` that there
    /// were. `before`: the tasks before the range.
    #[inline(always)]
    fn append_range(
        &mut self,
        before: &[Task],
        producers: &[TaskId],
        consumer: TaskId,
        mut edges_in: usize,
    ) -> Result<usize, (Fault, usize)> {
        let producers = match producers {
            [others @ .., _] if mutant::is(Mutant::RangeForgetsAnEdge) => others,
            producers => producers,
        };
        // All of them, less those that have completed.
        edges_in += producers.len();
        let mut rest = producers.iter();
        while let Some(producer) = rest.next() {
            let at = index_in_run(*producer, consumer.generation);
            let task = usize::try_from(at).ok().and_then(|at| before.get(at));
            let outcome = match task.map(|task| (task, C::Fanout::room_in_line(task))) {
                // Most tasks have few consumers.
                Some((task, RoomInLine::Slot(count))) => {
                    if let Some(entry) = task.consumers.get(count as usize) {
                        entry.store(consumer.slot, Ordering::Relaxed);
                    }
                    if C::Fanout::commit::<C::Sharing>(task, count) {
                        self.events.trace(TraceKind::EDGE, consumer.slot, producer.slot);
                        EdgeOutcome::Added
                    } else {
                        edges_in -= 1;
                        self.satisfied(*producer, consumer)
                    }
                }
                Some((_, RoomInLine::Closed)) => {
                    edges_in -= 1;
                    self.satisfied(*producer, consumer)
                }
                _ => match self.append_far(at, consumer.slot) {
                    Ok(EdgeOutcome::Added) => EdgeOutcome::Added,
                    Ok(outcome) => {
                        edges_in -= 1;
                        outcome
                    }
                    Err(fault) => return Err((fault, edges_in - 1 - rest.len())),
                },
            };
            let (producer, consumer) = (producer.slot, consumer.slot);
            self.events.machine().in_range(RangeNote::Edge { producer, consumer, outcome });
        }
        Ok(edges_in)
    }

    /// An edge that does not fit into the line of its producer, or whose producer has completed, or is not before the range. How many edges the
    /// consumer has need not be looked at: [`accept_range`](Self::accept_range) has.
    #[cold]
    #[inline(never)]
    fn append_far(&mut self, producer: u64, consumer: u32) -> Result<EdgeOutcome, Fault> {
        let consumer = TaskId { slot: consumer, generation: self.generation };
        let producer = task_at(producer, consumer.generation);
        let is_before = producer.slot < consumer.slot && producer.generation == consumer.generation;
        let Some(task) = self.state.task(producer.slot).filter(|_| is_before) else {
            return Err(self.not_before(producer, consumer));
        };
        self.append(task, producer, consumer, 0)
    }

    /// Makes a task of a range visible to the schedulers; it is counted already.
    #[inline]
    fn publish_in_range(&mut self, task: &Task, (slot, kind): (u32, CoreKind), edges_in: u32) {
        self.events.published(slot);
        if edges_in > 0 {
            // The line says zero already.
            task.edges_in.store(edges_in, Ordering::Relaxed);
        }
        self.events.machine().in_range(RangeNote::Task(slot));
        let early = u32::from(mutant::is(Mutant::RangePublishesEarly) && edges_in > 0);
        let edges_in = edges_in - early;
        let is_ready = if C::Sharing::IS_EXCLUSIVE {
            // No producer can have completed since its edge was appended.
            task.fanin.store(edges_in, Ordering::Relaxed);
            edges_in == 0
        } else {
            release_published::<C::Sharing>(task, edges_in)
        };
        if is_ready || mutant::is(Mutant::PublishesAsReady) {
            self.ready_in_range(slot, kind);
        }
        self.events.machine().published();
    }

    /// Out of line, so that the loop over the tasks of a range needs no registers for the queue.
    #[inline(never)]
    fn ready_in_range(&mut self, slot: u32, kind: CoreKind) {
        self.events.trace(TraceKind::READY, slot, 0);
        self.state.queue(kind).push::<C::Sharing>(&[slot]);
    }
}

/// What ranges without a wait wait for.
const NOTHING: Wait<'static> = Wait::all(&[]);

/// What a task of a range waits for. Out of line, so that the loop over the tasks of a range needs no registers for it.
#[cold]
#[inline(never)]
fn outside<'r>(wait: &Wait<'r>, first: u32, slot: u32) -> &'r [TaskId] {
    wait.of(slot.wrapping_sub(first))
}

/// The slot of a task of this generation. One of another generation has a number of 2^32 and more, which no table of tasks has.
#[inline(always)]
fn index_in_run(task: TaskId, generation: u32) -> u64 {
    (u64::from(task.generation) << 32 | u64::from(task.slot)) ^ u64::from(generation) << 32
}

/// The task that has this number.
#[expect(clippy::cast_possible_truncation, reason = "the halves of a word")]
const fn task_at(index: u64, generation: u32) -> TaskId {
    TaskId { slot: index as u32, generation: (index >> 32) as u32 ^ generation }
}

/// How many producers a task has: [`accept_range`](Builder::accept_range) bounded their number.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "MAX_FANIN at most")]
const fn low_half(count: usize) -> u32 {
    count as u32
}

/// The arguments of the first task of a range, before anything varies; `room` is for those that are in no slice.
fn words_of<'r>(range: &TaskRange<'r>, room: &'r mut Vec<u64, MAX_CHAIN_ARGS>) -> &'r [u64] {
    match range.plain_words() {
        Some(words) => words,
        None => {
            // `accept_range` bounded their number.
            range.words().for_each(|word| room.push(word).unwrap_or_default());
            room
        }
    }
}
