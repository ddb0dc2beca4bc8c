//! The builder: adds tasks and edges, publishes tasks, while schedulers may run.
//!
//! One builder a run (`host_build_graph`: the loader of the image; `aicpu_build_graph`: a builder program).
//! Invariants:
//! - A task is invisible to schedulers until `publish`; the [`UNPUBLISHED`] bit keeps its fanin above zero.
//! - `outstanding` is raised before a task is published (in reserves of [`RESERVE`], one
//!   read-modify-write for each); what is left of the reserve is given back before `build_done` is set.

mod machine;

use core::cell::Cell;
use core::marker::PhantomData;

use pto_abi::kinds::TaskState;
use pto_abi::limits::{MAX_ARGS, MAX_FANIN, MAX_FUNC_ID};
use pto_abi::runtime::InstanceLine;
use pto_abi::sync::{Ordering, Sharing};
use pto_abi::task::{EdgeChunk, NO_CHUNK, Task, UNPUBLISHED};
use pto_abi::trace::{TraceKind, TracePoint};
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_graph::{EdgeOutcome, GraphBuilder, TaskSpec};

pub use self::machine::{BuilderHost, DeviceMemory};
use crate::blame::{Blame, BlameSlot};
use crate::fanout::{FanoutPolicy, Place, place_of};
use crate::mutant::{self, Mutant};
use crate::state::{SharedState, kind_of};

/// Tasks by which `outstanding` is raised at once. 64: of 1, 16, 64 and 256, the first at which the raise
/// no longer shows in `pto bench`.
pub const RESERVE: u64 = 64;

/// The builder of one run. See [`GraphBuilder`] for what it does.
pub struct Builder<'a, S, F, M, H> {
    state: SharedState<'a>,
    line: &'a InstanceLine,
    memory: M,
    host: H,
    orch_args: &'a [u64],
    generation: u32,
    has_kind: [bool; CoreKind::COUNT],
    next_task: u32,
    next_word: u32,
    next_chunk: u32,
    reserve: u64,
    traced_ns: u64,
    blame: BlameSlot,
    /// The last address that could not be read.
    unread: Cell<GmAddr>,
    policy: PhantomData<(S, F)>,
}

/// What a builder is given at its start.
pub struct BuilderInputs<'a> {
    /// What the instances share.
    pub state: SharedState<'a>,
    /// The builder's own line.
    pub line: &'a InstanceLine,
    /// The words that the host marshalled.
    pub orch_args: &'a [u64],
    /// The generation of this run's ids.
    pub generation: u32,
    /// Which core kinds the device has.
    pub has_kind: [bool; CoreKind::COUNT],
}

impl<'a, S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> Builder<'a, S, F, M, H> {
    /// A builder with nothing added.
    pub fn new(inputs: BuilderInputs<'a>, memory: M, host: H) -> Self {
        Self {
            state: inputs.state,
            line: inputs.line,
            memory,
            host,
            orch_args: inputs.orch_args,
            generation: inputs.generation,
            has_kind: inputs.has_kind,
            next_task: 0,
            next_word: 0,
            next_chunk: 0,
            reserve: 0,
            traced_ns: 0,
            blame: BlameSlot::default(),
            unread: Cell::new(GmAddr::NULL),
            policy: PhantomData,
        }
    }

    /// How many tasks were added.
    #[must_use]
    pub const fn added(&self) -> u32 {
        self.next_task
    }

    /// The circumstances of a fault that a call returned.
    #[must_use]
    pub fn blame(&self, fault: Fault) -> Blame {
        let blame = self.blame.of(fault);
        let next = TaskId { slot: self.next_task, generation: self.generation };
        match fault {
            // Who reads the kind out of a record or a call gives up before it adds the task.
            Fault::BUILD_UNKNOWN_KIND => blame.task(next),
            // The program reads for the task that it is about to add; from where, says the detail.
            Fault::BUILD_GM_RANGE => blame.task(next).detail(self.unread.get().0, 0),
            _ => blame,
        }
    }

    /// The last publish has been made: lets the run end.
    ///
    /// # Errors
    /// `BUILD_NOT_PUBLISHED`, with the first task that is not.
    pub fn finish(&mut self) -> Result<(), Fault> {
        if self.line.published.load(Ordering::Relaxed) != u64::from(self.next_task) {
            return Err(self.not_published());
        }
        S::fetch_sub(&self.state.progress.outstanding, self.reserve, Ordering::Relaxed);
        self.reserve = 0;
        // Release: pairs with the Acquire load in `SharedState::build_is_done`; who sees it sees every raise.
        self.state.progress.build_done.store(1, Ordering::Release);
        Ok(())
    }

    #[cold]
    fn not_published(&mut self) -> Fault {
        let added = self.state.tasks.iter().take(self.next_task as usize);
        let is_added = |task: &Task| task.state.load(Ordering::Relaxed) == TaskState::ADDED.get();
        let slot =
            (0_u32..).zip(added).find(|(_, task)| is_added(task)).map_or(0, |(slot, _)| slot);
        let task = TaskId { slot, generation: self.generation };
        self.blame.leave(Blame::of(Fault::BUILD_NOT_PUBLISHED).task(task))
    }

    /// Looks at the clock, if events are wanted: where a task is added, and where it is published.
    #[inline]
    fn look_at_clock(&mut self) {
        if H::TRACES {
            self.traced_ns = self.host.now_ns();
        }
    }

    /// One event, if they are wanted, at the time of the last look.
    #[inline]
    fn trace(&mut self, kind: TraceKind, task: u32, extra: u32) {
        if H::TRACES {
            let time_ns = self.traced_ns;
            self.host.trace(TracePoint { time_ns, kind, task, extra });
        }
    }

    /// The kernel's code, or why the task cannot run.
    #[inline]
    fn accept(&mut self, spec: &TaskSpec<'_>) -> Result<GmAddr, Fault> {
        let func = spec.func_id;
        if func.index() >= MAX_FUNC_ID {
            return Err(self.refuse(
                Fault::BUILD_UNKNOWN_FUNC,
                func,
                func.index(),
                MAX_FUNC_ID - 1,
            ));
        }
        if spec.args.len() > MAX_ARGS {
            let found = spec.args.len();
            return Err(self.refuse(Fault::BUILD_TOO_MANY_ARGS, func, found, MAX_ARGS));
        }
        if !self.has_kind[spec.kind.index()] {
            let kind = spec.kind.index();
            return Err(self.refuse(Fault::BUILD_NO_CORE_OF_KIND, func, kind, 0));
        }
        if !spec.kernel.is_null() {
            return Ok(spec.kernel);
        }
        let kernel = self.memory.kernel_addr(func);
        if kernel.is_null() {
            return Err(self.refuse(Fault::BUILD_KERNEL_MISSING, func, func.index(), 0));
        }
        Ok(kernel)
    }

    #[cold]
    fn refuse(&mut self, fault: Fault, func: FuncId, found: usize, bound: usize) -> Fault {
        let task = TaskId { slot: self.next_task, generation: self.generation };
        let blame = Blame::of(fault).func(func.0.into()).task(task);
        self.blame.leave(blame.detail(found as u64, bound as u64))
    }

    #[cold]
    fn refuse_task(&mut self, fault: Fault, task: TaskId, found: u64, expected: u64) -> Fault {
        self.blame.leave(Blame::of(fault).task(task).detail(found, expected))
    }

    /// Writes the arguments and one word of block context (block 0 of 1); returns the first word.
    #[inline]
    fn write_payload(&mut self, args: &[u64]) -> Option<u32> {
        let first = self.next_word;
        let end = first as usize + args.len() + 1;
        let words = self.state.payloads.get(first as usize..end)?;
        let (context, words) = words.split_last()?;
        for (word, arg) in words.iter().zip(args) {
            word.store(*arg, Ordering::Relaxed);
        }
        context.store(BLOCK_0_OF_1, Ordering::Relaxed);
        self.next_word = u32::try_from(end).ok()?;
        Some(first)
    }

    /// The task of an id that this run gave out.
    #[inline]
    fn known(&mut self, id: TaskId) -> Result<&'a Task, Fault> {
        if id.generation != self.generation {
            let (found, expected) = (id.generation.into(), self.generation.into());
            return Err(self.refuse_task(Fault::BUILD_STALE_TASK, id, found, expected));
        }
        match self.state.task(id.slot).filter(|_| id.slot < self.next_task) {
            Some(task) => Ok(task),
            None => {
                let (found, bound) = (id.slot.into(), self.next_task.into());
                Err(self.refuse_task(Fault::BUILD_UNKNOWN_TASK, id, found, bound))
            }
        }
    }

    /// Puts `consumer` into place `count` of the producer's fanout, to be committed.
    #[inline]
    fn put(&mut self, producer: &Task, count: u32, consumer: u32) -> Option<()> {
        match place_of(count) {
            Place::Inline(at) => producer.consumers.get(at)?.store(consumer, Ordering::Relaxed),
            Place::Chunk(at) => {
                let last = producer.last_chunk.load(Ordering::Relaxed);
                let chunk = self.state.chunks.get(last as usize)?;
                chunk.consumers.get(at)?.store(consumer, Ordering::Relaxed);
            }
            Place::NewChunk => self.link_chunk(producer, consumer)?,
        }
        Some(())
    }

    fn link_chunk(&mut self, producer: &Task, consumer: u32) -> Option<()> {
        let index = self.next_chunk;
        let chunks: &'a [EdgeChunk] = self.state.chunks;
        let chunk = chunks.get(index as usize)?;
        chunk.consumers.first()?.store(consumer, Ordering::Relaxed);
        let last = producer.last_chunk.load(Ordering::Relaxed);
        match chunks.get(last as usize).filter(|_| last != NO_CHUNK) {
            None => producer.first_chunk.store(index, Ordering::Relaxed),
            Some(previous) => previous.next.store(index, Ordering::Relaxed),
        }
        producer.last_chunk.store(index, Ordering::Relaxed);
        self.next_chunk = index + 1;
        Some(())
    }

    /// Puts an edge behind the producer, unless it has completed. `edges_in`: the edges that the consumer has.
    #[inline]
    fn append(
        &mut self,
        producer_task: &Task,
        producer: TaskId,
        consumer: TaskId,
        edges_in: u32,
    ) -> Result<EdgeOutcome, Fault> {
        let Some(count) = F::count(producer_task) else {
            return Ok(self.satisfied(producer, consumer));
        };
        if self.put(producer_task, count, consumer.slot).is_none() {
            let (found, bound) = (self.next_chunk.into(), self.state.chunks.len() as u64);
            return Err(self.refuse_task(Fault::BUILD_EDGES_FULL, producer, found, bound));
        }
        if edges_in >= MAX_FANIN {
            let bound = MAX_FANIN.into();
            return Err(self.refuse_task(Fault::BUILD_FANIN_LIMIT, consumer, bound, bound));
        }
        // Until it is published the consumer cannot become ready, so counting it first is not needed.
        if !F::commit::<S>(producer_task, count) {
            return Ok(self.satisfied(producer, consumer));
        }
        self.trace(TraceKind::EDGE, consumer.slot, producer.slot);
        Ok(EdgeOutcome::Added)
    }

    /// Puts edges behind all of them; counts those that the consumer, the task that was added last, has to wait for.
    #[inline]
    fn append_all(
        &mut self,
        producers: &[TaskId],
        consumer: TaskId,
        edges_in: &mut u32,
    ) -> Result<(), Fault> {
        for &producer in producers {
            let is_before =
                producer.generation == consumer.generation && producer.slot < consumer.slot;
            let Some(producer_task) = self.state.task(producer.slot).filter(|_| is_before) else {
                return Err(self.not_before(producer, consumer));
            };
            let outcome = self.append(producer_task, producer, consumer, *edges_in)?;
            *edges_in += u32::from(outcome == EdgeOutcome::Added);
        }
        Ok(())
    }

    /// Why a task cannot be a producer of the one that was added last.
    #[cold]
    fn not_before(&mut self, producer: TaskId, consumer: TaskId) -> Fault {
        match self.known(producer) {
            Err(fault) => fault,
            Ok(_) => self.refuse_task(Fault::BUILD_SELF_EDGE, consumer, 0, 0),
        }
    }

    /// Makes an added task visible to the schedulers.
    #[inline]
    fn publish_task(&mut self, task: &Task, slot: u32, edges_in: u32) -> Result<(), Fault> {
        self.announce(task, slot)?;
        let is_ready = release_published::<S>(task, edges_in);
        self.published(task, slot, is_ready);
        Ok(())
    }

    /// The first half of a publish: the task counts from now on.
    #[inline]
    fn announce(&mut self, task: &Task, slot: u32) -> Result<(), Fault> {
        task.state.store(TaskState::PUBLISHED.get(), Ordering::Relaxed);
        self.raise_outstanding();
        count_one(&self.line.published);
        self.look_at_clock();
        self.trace(TraceKind::PUBLISHED, slot, 0);
        // A builder must not fill the memory of a run that has failed.
        if self.state.fault.is_raised() {
            return Err(self.state.fault.first().unwrap_or(Fault::RUN_CANCELLED));
        }
        Ok(())
    }

    /// The second half: its producers count, and if none is left, it is ready.
    #[inline]
    fn published(&mut self, task: &Task, slot: u32, is_ready: bool) {
        if is_ready || mutant::is(Mutant::PublishesAsReady) {
            self.trace(TraceKind::READY, slot, 0);
            self.state.queue(kind_of(task)).push::<S>(&[slot]);
        }
        self.host.published();
    }

    #[inline]
    fn satisfied(&mut self, producer: TaskId, consumer: TaskId) -> EdgeOutcome {
        count_one(&self.line.edges_satisfied);
        self.trace(TraceKind::EDGE_SATISFIED, consumer.slot, producer.slot);
        EdgeOutcome::AlreadySatisfied
    }

    /// Adds a task: writes its line and its arguments.
    #[inline]
    fn insert(&mut self, spec: &TaskSpec<'_>) -> Result<(&'a Task, u32), Fault> {
        let kernel = self.accept(spec)?;
        let slot = self.next_task;
        let Some(task) = self.state.task(slot) else {
            let (found, bound) = (slot as usize, self.state.tasks.len());
            return Err(self.refuse(Fault::BUILD_TASKS_FULL, spec.func_id, found, bound));
        };
        let Some(payload) = self.write_payload(spec.args) else {
            let (found, bound) = (self.next_word as usize, self.state.payloads.len());
            return Err(self.refuse(Fault::BUILD_PAYLOADS_FULL, spec.func_id, found, bound));
        };
        task.fanin.store(UNPUBLISHED, Ordering::Relaxed);
        task.fanout.store(0, Ordering::Relaxed);
        task.state.store(TaskState::ADDED.get(), Ordering::Relaxed);
        task.func_id.store(spec.func_id.0, Ordering::Relaxed);
        task.edges_in.store(0, Ordering::Relaxed);
        task.kernel.store(kernel.0, Ordering::Relaxed);
        task.payload.store(payload, Ordering::Relaxed);
        // `accept` bounded the count by MAX_ARGS, which is 128.
        task.arg_count.store(u8::try_from(spec.args.len()).unwrap_or(u8::MAX), Ordering::Relaxed);
        task.kind.store(spec.kind.get(), Ordering::Relaxed);
        task.generation.store(self.generation, Ordering::Relaxed);
        task.last_chunk.store(NO_CHUNK, Ordering::Relaxed);
        self.next_task = slot + 1;
        self.line.added.store(u64::from(slot) + 1, Ordering::Relaxed);
        let func_and_kind = u32::from(spec.func_id.0) | u32::from(spec.kind.get()) << 16;
        self.look_at_clock();
        self.trace(TraceKind::ADDED, slot, func_and_kind);
        Ok((task, slot))
    }

    #[inline]
    fn raise_outstanding(&mut self) {
        if self.reserve == 0 {
            // Relaxed: ordered before every decrement of these tasks by the publish itself.
            let raise = if mutant::is(Mutant::NeverRaises) { 0 } else { RESERVE };
            S::fetch_add(&self.state.progress.outstanding, raise, Ordering::Relaxed);
            self.reserve = RESERVE;
        }
        self.reserve -= 1;
    }
}

/// The block context behind a task's arguments: block number in the low half, how many in the high one.
pub(crate) const BLOCK_0_OF_1: u64 = 1 << 32;

/// Adds one to a counter that only this instance writes.
#[inline]
pub(crate) fn count_one(counter: &pto_abi::sync::AtomicU64) {
    count_some(counter, 1);
}

/// Adds to a counter that only this instance writes.
#[inline]
pub(crate) fn count_some(counter: &pto_abi::sync::AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

impl<S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> GraphBuilder
    for Builder<'_, S, F, M, H>
{
    fn orch_args(&self) -> &[u64] {
        self.orch_args
    }

    #[inline]
    fn add_task(&mut self, spec: TaskSpec<'_>) -> Result<TaskId, Fault> {
        let (_, slot) = self.insert(&spec)?;
        Ok(TaskId { slot, generation: self.generation })
    }

    #[inline]
    fn add_edge(&mut self, producer: TaskId, consumer: TaskId) -> Result<EdgeOutcome, Fault> {
        let producer_task = self.known(producer)?;
        let consumer_task = self.known(consumer)?;
        if producer == consumer {
            return Err(self.refuse_task(Fault::BUILD_SELF_EDGE, consumer, 0, 0));
        }
        if consumer_task.state.load(Ordering::Relaxed) != TaskState::ADDED.get() {
            let found = consumer_task.state.load(Ordering::Relaxed).into();
            return Err(self.refuse_task(Fault::BUILD_CONSUMER_PUBLISHED, consumer, found, 1));
        }
        let edges_in = consumer_task.edges_in.load(Ordering::Relaxed);
        let outcome = self.append(producer_task, producer, consumer, edges_in)?;
        if outcome == EdgeOutcome::Added {
            consumer_task.edges_in.store(edges_in + 1, Ordering::Relaxed);
            count_one(&self.line.edges);
        }
        Ok(outcome)
    }

    #[inline]
    fn publish(&mut self, id: TaskId) -> Result<(), Fault> {
        let task = self.known(id)?;
        if task.state.load(Ordering::Relaxed) != TaskState::ADDED.get() {
            let found = task.state.load(Ordering::Relaxed).into();
            return Err(self.refuse_task(Fault::BUILD_ALREADY_PUBLISHED, id, found, 1));
        }
        self.publish_task(task, id.slot, task.edges_in.load(Ordering::Relaxed))
    }

    /// The same calls in one, with the task's own words at hand.
    #[inline]
    fn submit(&mut self, spec: TaskSpec<'_>, producers: &[TaskId]) -> Result<TaskId, Fault> {
        let (task, slot) = self.insert(&spec)?;
        let id = TaskId { slot, generation: self.generation };
        let mut edges_in = 0;
        let appended = self.append_all(producers, id, &mut edges_in);
        task.edges_in.store(edges_in, Ordering::Relaxed);
        count_some(&self.line.edges, edges_in.into());
        appended?;
        if S::IS_EXCLUSIVE {
            // No producer can have completed since its edge was appended.
            self.announce(task, slot)?;
            task.fanin.store(edges_in, Ordering::Relaxed);
            self.published(task, slot, edges_in == 0);
        } else {
            self.publish_task(task, slot, edges_in)?;
        }
        Ok(id)
    }

    fn read_u32(&self, address: GmAddr) -> Result<u32, Fault> {
        let word = self.memory.read_u32(address);
        if word.is_none() {
            self.unread.set(address);
        }
        word.ok_or(Fault::BUILD_GM_RANGE)
    }
}

/// Turns [`UNPUBLISHED`] into `edges_in`, the producers counted; whether none of them is left.
#[inline]
pub(crate) fn release_published<S: Sharing>(task: &Task, edges_in: u32) -> bool {
    if edges_in == 0 {
        // No edge leads here, so nobody else touches the fanin.
        task.fanin.store(0, Ordering::Relaxed);
        return true;
    }
    let bias = UNPUBLISHED - edges_in;
    // AcqRel: Release pairs with the Acquire half of the last decrement in `Scheduler::release`, whose
    // scheduler then reads the task; Acquire pairs with the Release half of the decrements made so far.
    S::fetch_sub_u32(&task.fanin, bias, Ordering::AcqRel) == bias
}
