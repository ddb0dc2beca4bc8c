//! The builder: adds tasks and edges, publishes tasks, while schedulers may run.
//!
//! One builder a run (`host_build_graph`: the loader of the image; `aicpu_build_graph`: a builder program).
//! Invariants:
//! - A task is invisible to schedulers until `publish`; the `UNPUBLISHED` bit keeps its fanin above zero.
//! - Tasks, argument words and chunks are given out in order, and never taken back.
//!
//! What this builder shares with the streaming one is in files of its own: the line of a task (`task_line.rs`), which
//! kernels are accepted (`kernels.rs`), where consumers are written (`consumers.rs`), what a publish counts (`publisher.rs`) and
//! what is reported to the host (`events.rs`).

pub(crate) mod consumers;
pub(crate) mod events;
pub(crate) mod kernels;
mod memory;
pub(crate) mod publisher;
mod range;
pub(crate) mod task_line;

use core::cell::Cell;
use core::marker::PhantomData;

use pto_abi::chain::CHAIN_KERNEL;
use pto_abi::kinds::TaskState;
use pto_abi::launch_args::LaunchArgs;
use pto_abi::limits::{MAX_ARGS, MAX_FANIN};
use pto_abi::runtime::InstanceLine;
use pto_abi::sync::{AtomicU64, Ordering, Sharing};
use pto_abi::task::Task;
use pto_abi::trace::TraceKind;
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_graph::{
    Chain, ChainPlan, ChainTemplate, EdgeOutcome, GraphBuilder, NotFilled, Origin, Publish,
    Submission, TaskDesc, TaskSpec, link_and_publish,
};

use self::consumers::put_consumer;
use self::events::Events;
use self::kernels::RunKernels;
pub use self::memory::DeviceMemory;
pub use self::publisher::RESERVE;
use self::publisher::{Publisher, count_one, count_some, release_published};
pub(crate) use self::task_line::BLOCK_0_OF_1;
use self::task_line::TaskLine;
use crate::blame::{Blame, BlameSlot};
use crate::config::Config;
use crate::fanout::FanoutPolicy;
use crate::machine::Machine;
use crate::mutant::{self, Mutant};
use crate::state::{SharedState, kind_of};

/// The builder of one run. See [`GraphBuilder`] for what it does.
pub struct Builder<'a, C: Config> {
    state: SharedState<'a>,
    kernels: RunKernels<C::Memory>,
    publisher: Publisher<'a>,
    events: Events<'a, C::Machine>,
    args: LaunchArgs<'a>,
    generation: u32,
    next_task: u32,
    next_word: u32,
    next_chunk: u32,
    blame: BlameSlot,
    /// The last address that could not be read.
    unread: Cell<GmAddr>,
    policy: PhantomData<C>,
}

/// The inputs of a builder at its start.
pub struct BuilderInputs<'a> {
    /// What the instances share.
    pub state: SharedState<'a>,
    /// The builder's own line.
    pub line: &'a InstanceLine,
    /// What the launch passes to the builder.
    pub args: LaunchArgs<'a>,
    /// The generation of this run's ids.
    pub generation: u32,
    /// Which core kinds the device has.
    pub has_kind: [bool; CoreKind::COUNT],
}

impl<'a, C: Config> Builder<'a, C> {
    /// A builder with nothing added.
    pub fn new(inputs: BuilderInputs<'a>, memory: C::Memory, machine: &'a mut C::Machine) -> Self {
        Self {
            state: inputs.state,
            kernels: RunKernels::new(memory, inputs.has_kind),
            publisher: Publisher::new(inputs.state.progress, inputs.line),
            events: Events::new(machine),
            args: inputs.args,
            generation: inputs.generation,
            next_task: 0,
            next_word: 0,
            next_chunk: 0,
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
            // A caller that reads the kind out of an image or a call gives up before it adds the task.
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
        if self.publisher.published() != u64::from(self.next_task) {
            return Err(self.not_published());
        }
        self.publisher.end::<C::Sharing>();
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

    /// The kernel's code, or why the task cannot run.
    #[inline]
    fn accept(&mut self, spec: &TaskSpec<'_>) -> Result<GmAddr, Fault> {
        let (kernel, args) = ((spec.func_id, spec.kind), spec.args.len());
        match self.kernels.accept(kernel, spec.kernel, args) {
            Some(code) => Ok(code),
            None => Err(self.refuse_kernel(kernel, args)),
        }
    }

    /// Out of line, so that the path of every task needs no room for a blame.
    #[cold]
    #[inline(never)]
    fn refuse_kernel(&mut self, kernel: (FuncId, CoreKind), args: usize) -> Fault {
        let next = TaskId { slot: self.next_task, generation: self.generation };
        self.blame.leave(self.kernels.refusal(kernel, args, next))
    }

    #[cold]
    fn refuse(&mut self, fault: Fault, func: FuncId, found: usize, bound: usize) -> Fault {
        let task = TaskId { slot: self.next_task, generation: self.generation };
        let blame = Blame::of(fault).func(func.0.into()).task(task);
        self.blame.leave(blame.detail(found as u64, bound as u64))
    }

    /// Out of line, as `refuse_kernel`.
    #[cold]
    #[inline(never)]
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

    /// Writes `consumer` as number `count` of the producer's fanout, to be committed; `None`: there is no chunk for it.
    #[inline]
    fn put(&mut self, producer: &Task, count: u32, consumer: u32) -> Option<()> {
        let (chunks, next) = (self.state.chunks, &mut self.next_chunk);
        put_consumer(chunks, producer, count, consumer, || {
            let index = *next;
            chunks.get(index as usize)?;
            *next += 1;
            Some(index)
        })
    }

    /// Adds an edge from the producer, unless it has completed. `edges_in`: the edges that the consumer has.
    // Ranges call it for edges that are far, and would keep it out of the loop of single submissions. An image that is built for size has no room for a second copy.
    #[cfg_attr(not(target_arch = "aarch64"), inline(always))]
    #[cfg_attr(target_arch = "aarch64", inline)]
    fn append(
        &mut self,
        producer_task: &Task,
        producer: TaskId,
        consumer: TaskId,
        edges_in: u32,
    ) -> Result<EdgeOutcome, Fault> {
        let Some(count) = C::Fanout::count(producer_task) else {
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
        if !C::Fanout::commit::<C::Sharing>(producer_task, count) {
            return Ok(self.satisfied(producer, consumer));
        }
        self.events.trace(TraceKind::EDGE, consumer.slot, producer.slot);
        Ok(EdgeOutcome::Added)
    }

    /// Adds edges from all of them; counts those that the consumer, the task that was added last, has to wait for.
    // As `append`.
    #[cfg_attr(not(target_arch = "aarch64"), inline(always))]
    #[cfg_attr(target_arch = "aarch64", inline)]
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

    /// Adds edges from `producers` to the task that was added last, which has `before` edges, and publishes it.
    #[inline]
    fn publish_after(
        &mut self,
        (task, id): (&Task, TaskId),
        producers: &[TaskId],
        before: u32,
    ) -> Result<(), Fault> {
        let mut edges_in = before;
        let appended = self.append_all(producers, id, &mut edges_in);
        task.edges_in.store(edges_in, Ordering::Relaxed);
        count_some(&self.publisher.line().edges, (edges_in - before).into());
        appended?;
        self.publish_task(task, id.slot, edges_in)
    }

    /// Makes an added task visible to the schedulers.
    #[inline]
    fn publish_task(&mut self, task: &Task, slot: u32, edges_in: u32) -> Result<(), Fault> {
        self.announce(task, slot)?;
        let is_ready = release_published::<C::Sharing>(task, edges_in);
        self.published(kind_of(task), slot, is_ready);
        Ok(())
    }

    /// The first half of a publish: the task counts from now on.
    #[inline]
    fn announce(&mut self, task: &Task, slot: u32) -> Result<(), Fault> {
        task.state.store(TaskState::PUBLISHED.get(), Ordering::Relaxed);
        self.count_published(slot)
    }

    #[inline]
    fn count_published(&mut self, slot: u32) -> Result<(), Fault> {
        self.publisher.count::<C::Sharing>();
        self.events.published(slot);
        // A builder must not fill the memory of a run that has failed.
        if self.state.fault.is_raised() {
            return Err(self.state.fault.first().unwrap_or(Fault::RUN_CANCELLED));
        }
        Ok(())
    }

    /// The second half: its producers count, and if none is left, it is ready.
    #[inline]
    fn published(&mut self, kind: CoreKind, slot: u32, is_ready: bool) {
        if is_ready || mutant::is(Mutant::PublishesAsReady) {
            self.events.trace(TraceKind::READY, slot, 0);
            self.state.queue(kind).push::<C::Sharing>(&[slot]);
        }
        self.events.machine().published();
    }

    #[inline]
    fn satisfied(&mut self, producer: TaskId, consumer: TaskId) -> EdgeOutcome {
        count_one(&self.publisher.line().edges_satisfied);
        self.events.trace(TraceKind::EDGE_SATISFIED, consumer.slot, producer.slot);
        EdgeOutcome::AlreadySatisfied
    }

    /// Adds and publishes a task, with the task's own words at hand.
    // Where the caller's own words are known, half of the checks fall away. An image that is built for size has no room for it.
    #[cfg_attr(not(target_arch = "aarch64"), inline(always))]
    #[cfg_attr(target_arch = "aarch64", inline)]
    fn submit_kernel(&mut self, spec: &TaskSpec<'_>, after: &[TaskId]) -> Result<TaskId, Fault> {
        if C::Sharing::IS_EXCLUSIVE {
            return self.submit_alone(spec, after);
        }
        let (task, slot) = self.insert(spec)?;
        let id = TaskId { slot, generation: self.generation };
        self.publish_after((task, id), after, 0)?;
        Ok(id)
    }

    /// Adds a task that the program publishes.
    #[inline]
    fn add_kernel(&mut self, spec: &TaskSpec<'_>, after: &[TaskId]) -> Result<TaskId, Fault> {
        let (_, slot) = self.insert(spec)?;
        let id = TaskId { slot, generation: self.generation };
        link_and_publish(self, id, (after, Publish::Later))?;
        Ok(id)
    }

    /// Adds a chain of several kernels.
    #[inline(always)]
    fn submit_links(
        &mut self,
        chain: &Chain<'_>,
        rest: (&[TaskId], Publish),
    ) -> Result<TaskId, Fault> {
        let (task, id) = self.insert_chain(chain)?;
        self.end_submission((task, id), rest)
    }

    /// Adds the chain of a filled template.
    #[inline(always)]
    fn submit_filled(
        &mut self,
        template: &ChainTemplate,
        rest: (&[TaskId], Publish),
    ) -> Result<TaskId, Fault> {
        let (task, id) = self.insert_template(template)?;
        self.end_submission((task, id), rest)
    }

    /// The edges of the newest task that the program names, and its publish.
    #[inline(always)]
    fn end_submission(
        &mut self,
        (task, id): (&Task, TaskId),
        (after, publish): (&[TaskId], Publish),
    ) -> Result<TaskId, Fault> {
        match publish {
            Publish::Now => self.publish_after((task, id), after, 0)?,
            Publish::Later => link_and_publish(self, id, (after, publish))?,
        }
        Ok(id)
    }

    /// Adds and publishes a task where one agent does everything: no producer can complete meanwhile, so that the line is written once, with
    /// all that it is to say.
    #[cfg_attr(not(target_arch = "aarch64"), inline(always))]
    #[cfg_attr(target_arch = "aarch64", inline)]
    fn submit_alone(&mut self, spec: &TaskSpec<'_>, producers: &[TaskId]) -> Result<TaskId, Fault> {
        let (task, slot, line) = self.begin_task(spec)?;
        let id = TaskId { slot, generation: self.generation };
        self.count_added(slot, spec);
        let mut edges_in = 0;
        if let Err(fault) = self.append_all(producers, id, &mut edges_in) {
            self.leave_added((task, id), line, edges_in);
            return Err(fault);
        }
        TaskLine { producers: edges_in, is_published: true, ..line }.write(task, id);
        if edges_in > 0 {
            count_some(&self.publisher.line().edges, edges_in.into());
        }
        self.count_published(slot)?;
        self.published(spec.kind, slot, edges_in == 0);
        Ok(id)
    }

    /// A task with an invalid producer remains added and is not published.
    #[cold]
    fn leave_added(&self, (task, id): (&Task, TaskId), line: TaskLine, edges_in: u32) {
        TaskLine { producers: edges_in, ..line }.write(task, id);
        count_some(&self.publisher.line().edges, edges_in.into());
    }

    /// Adds a task: writes its line and its arguments.
    #[inline]
    fn insert(&mut self, spec: &TaskSpec<'_>) -> Result<(&'a Task, u32), Fault> {
        let (task, slot, line) = self.begin_task(spec)?;
        line.write(task, TaskId { slot, generation: self.generation });
        self.count_added(slot, spec);
        Ok((task, slot))
    }

    /// The line of the next task, its slot, and what the line is to say; writes its arguments.
    #[inline(always)]
    fn begin_task(&mut self, spec: &TaskSpec<'_>) -> Result<(&'a Task, u32, TaskLine), Fault> {
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
        // `accept` bounded the count by MAX_ARGS, which is 128.
        let args = (payload, u8::try_from(spec.args.len()).unwrap_or(u8::MAX));
        Ok((task, slot, TaskLine::added(spec.func_id.0, spec.kind.get(), args, kernel.0)))
    }

    #[inline]
    fn count_added(&mut self, slot: u32, spec: &TaskSpec<'_>) {
        self.next_task = slot + 1;
        self.publisher.line().added.store(u64::from(slot) + 1, Ordering::Relaxed);
        self.events.added(slot, spec.func_id.0, spec.kind.get());
    }

    /// Adds a chain of several kernels: writes its line and its words.
    #[inline(never)]
    fn insert_chain(&mut self, chain: &Chain<'_>) -> Result<(&'a Task, TaskId), Fault> {
        let ChainPlan { first, words, kernels, .. } = match chain.plan() {
            Ok(plan) => plan,
            Err(fault) => {
                let next = TaskId { slot: self.next_task, generation: self.generation };
                return Err(self.refuse_task(fault, next, chain.kernels(), 0));
            }
        };
        let room = self.room_for_chain(first.task(), words)?;
        chain.write(room.words, |task, _| self.accept(task))?;
        Ok(self.open_chain(room, kernels))
    }

    /// Adds the chain of a template: writes its line and its words.
    #[inline]
    fn insert_template(&mut self, template: &ChainTemplate) -> Result<(&'a Task, TaskId), Fault> {
        if let Err(fault) = template.check(Origin::of(self.state.tasks, self.generation)) {
            let next = TaskId { slot: self.next_task, generation: self.generation };
            return Err(self.refuse_task(fault, next, 0, 0));
        }
        let room = self.room_for_chain(template.task(), template.word_count())?;
        template.copy_to(room.words);
        Ok(self.open_chain(room, template.kernels()))
    }

    /// Room for a chain of this many words that begins with this kernel.
    #[inline(always)]
    fn room_for_chain(
        &mut self,
        first: TaskSpec<'static>,
        words: usize,
    ) -> Result<RoomForChain<'a>, Fault> {
        let (slot, payload) = (self.next_task, self.next_word);
        let Some(task) = self.state.task(slot) else {
            let (found, bound) = (slot as usize, self.state.tasks.len());
            return Err(self.refuse(Fault::BUILD_TASKS_FULL, first.func_id, found, bound));
        };
        let (payloads, end) = (self.state.payloads, payload as usize + words);
        let Some((words, end)) = payloads.get(payload as usize..end).zip(u32::try_from(end).ok())
        else {
            let bound = payloads.len();
            return Err(self.refuse(Fault::BUILD_PAYLOADS_FULL, first.func_id, end, bound));
        };
        Ok(RoomForChain { first, task, words, payload, end })
    }

    /// Takes the room of a chain of this many kernels, for its words.
    #[inline(always)]
    fn open_chain(&mut self, room: RoomForChain<'a>, kernels: u32) -> (&'a Task, TaskId) {
        let RoomForChain { first, task, payload, end, .. } = room;
        let id = TaskId { slot: self.next_task, generation: self.generation };
        self.next_word = end;
        let line = TaskLine::added(first.func_id.0, first.kind.get(), (payload, 0), CHAIN_KERNEL.0);
        line.write(task, id);
        count_some(&self.publisher.line().chained, u64::from(kernels) - 1);
        self.count_added(id.slot, &first);
        (task, id)
    }
}

/// Whether a chain is one kernel, which is submitted as a task.
#[inline]
fn is_kernel(chain: &Chain<'_>) -> bool {
    matches!(chain.links(), [only] if only.count() == 1)
}

/// The memory of a chain.
struct RoomForChain<'a> {
    /// Its first kernel, whose task it is said to be.
    first: TaskSpec<'static>,
    task: &'a Task,
    words: &'a [AtomicU64],
    /// The number of its first word, and one past its last.
    payload: u32,
    end: u32,
}

impl<C: Config> GraphBuilder for Builder<'_, C> {
    fn launch_args(&self) -> LaunchArgs<'_> {
        self.args
    }

    #[inline(always)]
    fn submit_desc(&mut self, submission: Submission<'_>) -> Result<Option<TaskId>, Fault> {
        let Submission { desc, after, when, publish } = submission;
        let id = match desc {
            TaskDesc::Kernel(spec) if publish == Publish::Now => {
                self.submit_kernel(&spec, after)?
            }
            TaskDesc::Kernel(spec) => self.add_kernel(&spec, after)?,
            TaskDesc::Chain(_) | TaskDesc::Template(_) if when.is_some() => return Ok(None),
            TaskDesc::Chain(chain) if is_kernel(chain) => return Ok(None),
            TaskDesc::Chain(chain) => self.submit_links(chain, (after, publish))?,
            TaskDesc::Template(template) => self.submit_filled(template, (after, publish))?,
            TaskDesc::Range(range, ids) => {
                self.insert_range(range, ids)?;
                ids.last().copied().unwrap_or(TaskId::NONE)
            }
            // The others need a run that streams.
            _ => return Ok(None),
        };
        Ok(Some(id))
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
            count_one(&self.publisher.line().edges);
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

    #[inline(never)]
    fn fill_template(
        &mut self,
        template: &mut ChainTemplate,
        chain: &Chain<'_>,
    ) -> Result<(), Fault> {
        let origin = Origin::of(self.state.tasks, self.generation);
        let filled = template.fill(chain, origin, &mut |task, _| self.accept(task));
        filled.map_err(|why| match why {
            NotFilled::Kernel(fault) => fault,
            NotFilled::Chain(fault) => {
                let next = TaskId { slot: self.next_task, generation: self.generation };
                self.refuse_task(fault, next, chain.words() as u64, MAX_ARGS as u64)
            }
        })
    }

    fn read_u32(&self, address: GmAddr) -> Result<u32, Fault> {
        let word = self.kernels.memory().read_u32(address);
        if word.is_none() {
            self.unread.set(address);
        }
        word.ok_or(Fault::BUILD_GM_RANGE)
    }

    fn has_word(&self, address: GmAddr) -> bool {
        self.kernels.memory().has_element(address, size_of::<u32>() as u64)
    }
}
