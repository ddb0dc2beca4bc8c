//! The launches that have begun and are not over: free slots, running tasks, and the limit of both.
//!
//! Invariants: a slot is free, or holds a task that some stream's list of launches on their way has in it; a task has few
//! consumers, which are in its own line: the next one of its stream, or the nodes that follow it in a recording; the arguments of
//! slot `n` are at `n * PAYLOAD_WORDS`.

use core::marker::PhantomData;

use pto_abi::kinds::TaskState;
use pto_abi::session::board::LAUNCH_PAYLOAD_WORDS as PAYLOAD_WORDS;
use pto_abi::session::recording::MOST_FOLLOWERS;
use pto_abi::session::{LaunchNote, SessionBoard};
use pto_abi::sync::Ordering;
use pto_abi::task::{TRANSFER, Task};
use pto_abi::{CoreKind, FuncId, GmAddr, TaskId};
use pto_graph::EdgeOutcome;

use crate::blame::Blame;
use crate::builder::consumers::put_consumer;
use crate::builder::kernels::KernelLookup;
use crate::builder::publisher::{Publisher, count_one, release_published};
use crate::builder::task_line::{TaskLine, first_generation};
use crate::builder::{BLOCK_0_OF_1, BuilderInputs};
use crate::config::Config;
use crate::fanout::FanoutPolicy;
use crate::machine::Machine;
use crate::state::SharedState;

/// No slot.
pub(super) const NO_SLOT: u32 = u32::MAX;

/// See the file.
pub(super) struct Launches<'a, C: Config> {
    state: SharedState<'a>,
    kernels: KernelLookup<C::Memory>,
    publisher: Publisher<'a>,
    machine: &'a mut C::Machine,
    notes: &'a [LaunchNote],
    slots: Slots<'a>,
    generation: u32,
    tasks: u64,
    in_flight: u32,
    most_in_flight: u32,
    /// Commands that may still be begun.
    left: u64,
    begun_ns: u64,
    base_ns: u64,
    policy: PhantomData<C>,
}

/// What a task of a launch is to be.
pub(super) struct LaunchTask<'w, W> {
    pub(super) func: FuncId,
    pub(super) kind: CoreKind,
    pub(super) kernel: GmAddr,
    pub(super) args: usize,
    /// The argument of this number.
    pub(super) arg: &'w W,
    /// The context of its block, which follows the arguments, where there are several.
    pub(super) context: Option<u64>,
    /// How long it may take, in microseconds; `NO_CHUNK`: as long as the run says.
    pub(super) budget_us: u32,
}

impl<'a, C: Config> Launches<'a, C> {
    pub(super) fn new(
        inputs: BuilderInputs<'a>,
        memory: C::Memory,
        board: &SessionBoard<'a>,
        machine: &'a mut C::Machine,
    ) -> Self {
        let orders = board.orders;
        let most = orders.most.load(Ordering::Relaxed);
        let in_flight = orders.in_flight.load(Ordering::Relaxed);
        let payloads = inputs.state.payloads.len() / PAYLOAD_WORDS as usize;
        let slots = inputs.state.tasks.len().min(board.notes.len()).min(payloads);
        Self {
            state: inputs.state,
            kernels: KernelLookup::new(memory, inputs.has_kind),
            publisher: Publisher::new(inputs.state.progress, inputs.line),
            notes: board.notes,
            slots: Slots {
                notes: board.notes,
                fresh: 0,
                count: low(slots),
                free: NO_SLOT,
                taken: 0,
            },
            generation: first_generation(inputs.generation),
            tasks: 0,
            in_flight: 0,
            most_in_flight: u32::try_from(in_flight).unwrap_or(u32::MAX).max(1),
            left: if most == 0 { u64::MAX } else { most },
            begun_ns: machine.now_ns(),
            base_ns: orders.base_ns.load(Ordering::Relaxed),
            machine,
            policy: PhantomData,
        }
    }

    /// The machine around.
    pub(super) const fn machine(&mut self) -> &mut C::Machine {
        self.machine
    }

    /// How long this run has lasted.
    pub(super) fn age_ns(&self) -> u64 {
        self.machine.now_ns().saturating_sub(self.begun_ns)
    }

    /// The time on the clock of the session.
    pub(super) fn session_ns(&self) -> u64 {
        self.base_ns.wrapping_add(self.age_ns())
    }

    /// From now on, no further launch begins.
    pub(super) const fn begin_no_more(&mut self) {
        self.left = 0;
    }

    /// Whether nothing more is begun.
    pub(super) const fn has_ended(&self) -> bool {
        self.left == 0
    }

    /// A command is begun.
    pub(super) const fn count_command(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Whether a task is on its way.
    pub(super) const fn has_any(&self) -> bool {
        self.in_flight > 0
    }

    /// Whether another task of a stream that has `own` of them on their way may begin. What is left is for streams that have none.
    #[inline]
    pub(super) const fn has_room(&self, own: u32) -> bool {
        let free = self.slots.free_count();
        let reserve = if own == 0 { 0 } else { self.slots.count / 2 };
        free > reserve && self.in_flight < self.most_in_flight
    }

    /// The code of a kernel, for a launch with this many arguments.
    #[inline]
    pub(super) fn kernel(&self, func: FuncId, kind: CoreKind, args: usize) -> Option<GmAddr> {
        self.kernels.accept((func, kind), GmAddr::NULL, args)
    }

    /// Why a launch is refused.
    #[cold]
    pub(super) fn refusal(&self, func: FuncId, kind: CoreKind, args: usize) -> Blame {
        self.kernels.refusal((func, kind), args, TaskId::NONE)
    }

    /// Begins a task that follows others that are on their way; its slot, `None`: there is none free.
    #[inline]
    pub(super) fn begin<W: Fn(usize) -> u64>(
        &mut self,
        part: &LaunchTask<'_, W>,
        after: impl Iterator<Item = u32>,
    ) -> Option<u32> {
        let (task, slot, edges_in) = self.add(part, part.kind.get(), after)?;
        if self.publish(task, slot, edges_in) {
            self.state.queue(part.kind).push::<C::Sharing>(&[slot]);
        }
        self.machine.published();
        Some(slot)
    }

    /// Begins a transfer that follows others that are on their way; its slot, `None`: there is none free.
    #[cold]
    pub(super) fn begin_transfer<W: Fn(usize) -> u64>(
        &mut self,
        part: &LaunchTask<'_, W>,
        after: impl Iterator<Item = u32>,
    ) -> Option<u32> {
        if !C::Machine::TRANSFERS {
            // Refused before: this is for images, which then hold nothing of it.
            return None;
        }
        let (task, slot, edges_in) = self.add(part, TRANSFER, after)?;
        // No scheduler looks at its line before it is published.
        self.state.set_transfer(slot);
        if self.publish(task, slot, edges_in) {
            self.state.post_ready(slot);
        }
        self.machine.published();
        Some(slot)
    }

    /// Whether this run has memory for transfers.
    pub(super) const fn takes_transfers(&self) -> bool {
        C::Machine::TRANSFERS && self.state.shapes.is_some()
    }

    /// Adds a task of this kind: it, its slot, and how many it waits for.
    #[inline]
    fn add<W: Fn(usize) -> u64>(
        &mut self,
        part: &LaunchTask<'_, W>,
        kind: u8,
        after: impl Iterator<Item = u32>,
    ) -> Option<(&'a Task, u32, u32)> {
        let slot = self.slots.take()?;
        let task = self.state.task(slot)?;
        let (payload, args) = self.write_payload(slot, part)?;
        self.generation = self.generation.wrapping_add(1);
        let id = TaskId { slot, generation: self.generation };
        let line = TaskLine::added(part.func.0, kind, (payload, args), part.kernel.0);
        line.write(task, id);
        // Launches have no chunks.
        task.last_chunk.store(part.budget_us, Ordering::Relaxed);
        self.machine.added(slot);
        let edges_in = after.map(|after| u32::from(self.follow(after, slot))).sum();
        task.edges_in.store(edges_in, Ordering::Relaxed);
        Some((task, slot, edges_in))
    }

    #[inline]
    fn write_payload<W: Fn(usize) -> u64>(
        &self,
        slot: u32,
        part: &LaunchTask<'_, W>,
    ) -> Option<(u32, u8)> {
        let first = slot.wrapping_mul(PAYLOAD_WORDS);
        let words = self.state.payloads.get(first as usize..)?.get(..PAYLOAD_WORDS as usize)?;
        let (args, rest) = words.split_at_checked(part.args)?;
        for (index, word) in args.iter().enumerate() {
            word.store((part.arg)(index), Ordering::Relaxed);
        }
        let contexts = part.context.into_iter().chain([BLOCK_0_OF_1]);
        rest.iter()
            .zip(contexts)
            .for_each(|(word, context)| word.store(context, Ordering::Relaxed));
        let args = part.args + usize::from(part.context.is_some());
        Some((first, u8::try_from(args).ok()?))
    }

    /// Whether one more task can wait for the one in this slot, or need not.
    pub(super) fn takes_consumer(&self, slot: u32) -> bool {
        let count = self.state.task(slot).and_then(C::Fanout::count);
        count.is_none_or(|count| (count as usize) < MOST_FOLLOWERS)
    }

    /// Makes the task in `slot` wait for the one in `producer`; whether it has to.
    #[inline]
    fn follow(&mut self, producer: u32, slot: u32) -> bool {
        let Some(task) = self.state.task(producer) else { return false };
        let put =
            |count| put_consumer(self.state.chunks, task, count, slot, || None).map(|()| count);
        let waits = C::Fanout::count(task)
            .and_then(put)
            .is_some_and(|count| C::Fanout::commit::<C::Sharing>(task, count));
        let outcome = if waits { EdgeOutcome::Added } else { EdgeOutcome::AlreadySatisfied };
        let line = self.publisher.line();
        count_one(if waits { &line.edges } else { &line.edges_satisfied });
        self.machine.derived(producer, slot, outcome);
        waits
    }

    /// Lets a task begin; whether it waits for none.
    #[inline]
    fn publish(&mut self, task: &Task, slot: u32, edges_in: u32) -> bool {
        task.state.store(TaskState::PUBLISHED.get(), Ordering::Relaxed);
        self.publisher.count::<C::Sharing>();
        (self.tasks, self.in_flight) = (self.tasks + 1, self.in_flight + 1);
        self.publisher.line().added.store(self.tasks, Ordering::Relaxed);
        self.machine.replayed(slot);
        release_published::<C::Sharing>(task, edges_in)
    }

    /// Takes the task out of `slot` if it is over: then the slot is free again.
    #[inline]
    pub(super) fn take_over(&mut self, slot: u32) -> bool {
        let Some(task) = self.state.task(slot) else { return false };
        // Acquire: pairs with the Release store in `Flow::note_completed`: no scheduler touches the task any more, and what it wrote is
        // seen.
        if task.state.load(Ordering::Acquire) != TaskState::COMPLETED.get() {
            return false;
        }
        self.in_flight -= 1;
        self.slots.give(slot);
        true
    }

    /// What is noted of a slot.
    #[inline]
    pub(super) fn note(&self, slot: u32) -> Option<&'a LaunchNote> {
        self.notes.get(slot as usize)
    }

    /// The last task has been begun: lets the run end. How many there were.
    pub(super) fn finish(mut self) -> u64 {
        self.publisher.end::<C::Sharing>();
        self.tasks
    }
}

/// Free slots: those that were never taken in this run, and a list through the notes of those that were given back.
struct Slots<'a> {
    notes: &'a [LaunchNote],
    fresh: u32,
    count: u32,
    free: u32,
    taken: u32,
}

impl Slots<'_> {
    const fn free_count(&self) -> u32 {
        self.count - self.taken
    }

    #[inline]
    fn take(&mut self) -> Option<u32> {
        let slot = match self.notes.get(self.free as usize) {
            Some(note) => core::mem::replace(&mut self.free, note.next.load(Ordering::Relaxed)),
            None if self.fresh < self.count => {
                self.fresh += 1;
                self.fresh - 1
            }
            None => return None,
        };
        self.taken += 1;
        Some(slot)
    }

    #[inline]
    fn give(&mut self, slot: u32) {
        if let Some(note) = self.notes.get(slot as usize) {
            note.next.store(self.free, Ordering::Relaxed);
            self.free = slot;
            self.taken -= 1;
        }
    }
}

fn low(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
