//! Tasks, edges and publishes over memory that is given out in order and taken back at the watermark: the part of the
//! streaming builder that knows nothing of tensors but where they lie.
//!
//! ```text
//! accept -> make_room -> open_slot -> edges (edges.rs) -> publish_added
//!              |                        |
//!              `-- waits for the watermark (waits.rs) --'         a recording's tasks, all at once (replay.rs)
//! ```
//! Invariants: a task is invisible to schedulers until it is published; a slot, argument words, a chunk or a part of a heap is
//! taken only where there is room; no faulted run gets another task.

mod edges;
mod hashed;
mod replay;
mod waits;

use core::marker::PhantomData;

use pto_abi::kinds::TaskState;
use pto_abi::stream::{MAX_LANES, RingKind};
use pto_abi::sync::Ordering;
use pto_abi::task::{SHAPED, Task};
use pto_abi::trace::TraceKind;
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_graph::{DependencyMode, ScopeId, TaskSpec, TensorTask};

use super::block_spec::{BlockSpec, LaneKernels};
use super::proof::Schedulers;
use super::scopes::Scopes;
use super::storage::{Storage, StreamMemory};
use crate::blame::{Blame, BlameSlot};
use crate::builder::BuilderInputs;
use crate::builder::events::Events;
use crate::builder::kernels::RunKernels;
use crate::builder::publisher::{Publisher, count_some, release_published};
use crate::builder::task_line::TaskLine;
use crate::config::Config;
use crate::machine::{Machine, RangeNote};
use crate::state::{SharedState, kind_in};

/// Submissions after which the watermark is looked for anew. 16 of 1, 4, 16 and 64: the first with which a look costs
/// nothing that shows.
const LOOK_EVERY: u64 = 16;

/// Tasks after which the tensor map forgets what has completed.
const SWEEP_EVERY: u64 = 1 << 30;

/// What the words of a task are.
#[derive(Clone, Copy)]
pub(super) enum TaskWords {
    /// The number of arguments of its kernel.
    Arguments(usize),
    /// A chain of so many kernels, said in so many words.
    Chain { count: usize, kernels: u32 },
}

/// See the file.
pub(super) struct Tasks<'a, C: Config> {
    state: SharedState<'a>,
    storage: Storage<'a>,
    scopes: Scopes,
    kernels: RunKernels<C::Memory>,
    publisher: Publisher<'a>,
    events: Events<'a, C::Machine>,
    schedulers: Schedulers,
    blame: BlameSlot,
    policy: PhantomData<C>,
}

impl<'a, C: Config> Tasks<'a, C> {
    /// Nothing is added.
    pub(super) fn new(
        inputs: &BuilderInputs<'a>,
        stream: &'a StreamMemory<'a>,
        schedulers: Schedulers,
        memory: C::Memory,
        machine: &'a mut C::Machine,
    ) -> Self {
        let storage = Storage::new(&inputs.state, inputs.generation, stream);
        let scopes = Scopes::new(storage.heap_count());
        Self {
            state: inputs.state,
            storage,
            scopes,
            kernels: RunKernels::new(memory, inputs.has_kind),
            publisher: Publisher::new(inputs.state.progress, inputs.line),
            events: Events::new(machine),
            schedulers,
            blame: BlameSlot::default(),
            policy: PhantomData,
        }
    }

    /// The memory of the run.
    #[inline]
    pub(super) const fn storage(&self) -> &Storage<'a> {
        &self.storage
    }

    /// See [`storage`](Self::storage).
    #[inline]
    pub(super) const fn storage_mut(&mut self) -> &mut Storage<'a> {
        &mut self.storage
    }

    /// The memory of the device.
    pub(super) const fn memory(&self) -> &C::Memory {
        self.kernels.memory()
    }

    /// The circumstances of a fault that a call returned.
    pub(super) fn blame(&self, fault: Fault) -> Blame {
        self.blame.of(fault)
    }

    /// Stores the circumstances of a fault.
    #[cold]
    pub(super) fn refuse(&mut self, blame: Blame) -> Fault {
        self.blame.leave(blame)
    }

    /// Refuses the next task.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse_next(&mut self, task: &TensorTask<'_>, blame: Blame) -> Fault {
        let next = self.storage.window().next_id();
        self.blame.leave(blame.func(task.func_id.0.into()).task(next))
    }

    /// The last publish has been made: lets the run end.
    pub(super) fn finish(&mut self) -> Result<(), Fault> {
        let closed = self.scopes.check_closed();
        closed.map_err(|blame| self.refuse(blame))?;
        let window = self.storage.window();
        if self.publisher.published() != window.added() {
            let oldest = window.oldest_unpublished().unwrap_or(window.watermark());
            let task = window.id_of(oldest);
            return Err(self.refuse_task(Fault::BUILD_NOT_PUBLISHED, task, 0, 0));
        }
        self.storage.advance();
        self.storage.end_marks(self.schedulers == Schedulers::Wait);
        self.publisher.end::<C::Sharing>();
        Ok(())
    }

    pub(super) fn open_scope(&mut self, mode: DependencyMode) -> Result<ScopeId, Fault> {
        let id = self.scopes.open(mode).map_err(|blame| self.blame.leave(blame))?;
        self.storage.marks().scopes(self.scopes.opened());
        Ok(id)
    }

    pub(super) fn close_scope(&mut self, scope: ScopeId) -> Result<(), Fault> {
        self.scopes.close(scope).map_err(|blame| self.blame.leave(blame))?;
        self.storage.close_heap(scope.depth as usize);
        Ok(())
    }

    /// The scopes that are open.
    #[inline]
    pub(super) const fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// The kernel's code, or why the task cannot run.
    #[inline]
    pub(super) fn accept(&mut self, spec: &TaskSpec<'_>, args: usize) -> Result<GmAddr, Fault> {
        let kernel = (spec.func_id, spec.kind);
        match self.kernels.accept(kernel, spec.kernel, args) {
            Some(code) => Ok(code),
            None => Err(self.refuse_kernel(kernel, args)),
        }
    }

    #[cold]
    #[inline(never)]
    fn refuse_kernel(&mut self, kernel: (FuncId, CoreKind), args: usize) -> Fault {
        let next = self.storage.window().next_id();
        self.blame.leave(self.kernels.refusal(kernel, args, next))
    }

    /// The block shape of a task: its kernels are registered, and the device has cores for its blocks.
    pub(super) fn block_shape_of(&mut self, task: &TensorTask<'_>) -> Result<BlockSpec, Fault> {
        let Some(shapes) = self.state.shapes else {
            return Err(self.refuse(Blame::of(Fault::RUNTIME_REGION_STREAM)));
        };
        let mut kernels = LaneKernels::NONE;
        let vectors = task.block_shape.vectors().iter().map(|func_id| (*func_id, CoreKind::AIV));
        for (func_id, kind) in [(task.func_id, task.kind)].into_iter().chain(vectors) {
            let code = self.accept(&TaskSpec::new(func_id, kind, &[]), task.args.len())?;
            if !kernels.add(kind, func_id, code) {
                let found = 1 + task.block_shape.vectors().len() as u64;
                let blame = Blame::of(Fault::STREAM_MIX).detail(found, MAX_LANES as u64);
                return Err(self.refuse_next(task, blame));
            }
        }
        let room = shapes.room.get(usize::from(kernels.lanes.0)).copied().unwrap_or(0);
        let checked = BlockSpec::check(&task.block_shape, kernels.lanes, room);
        checked.map_err(|blame| self.refuse_next(task, blame))?;
        Ok(BlockSpec::of(&task.block_shape, &kernels))
    }

    /// Room for a task with `args` words: waits for it where it must.
    #[inline(always)]
    pub(super) fn make_room(&mut self, args: usize) -> Result<(), Fault> {
        let words = args as u64 + 1;
        self.storage.takes(RingKind::ARGS, words);
        let next = self.storage.window().next();
        if next.is_multiple_of(LOOK_EVERY) {
            self.storage.advance();
            if next % SWEEP_EVERY == SWEEP_EVERY / 2 {
                self.storage.map().sweep(next);
            }
        }
        self.make_room_in(RingKind::WINDOW, 1)?;
        self.make_room_in(RingKind::ARGS, words)
    }

    /// Room for `count` more in a ring.
    #[inline]
    pub(super) fn make_room_in(&mut self, ring: RingKind, count: u64) -> Result<(), Fault> {
        if self.storage.has_room(ring, count) {
            Ok(())
        } else {
            self.wait_for_room_or(ring, count, None)
        }
    }

    /// Takes the next slot for a task, for which there is room; its words have been written.
    #[inline(always)]
    pub(super) fn open_slot(
        &mut self,
        spec: &TaskSpec<'_>,
        kernel: GmAddr,
        words: TaskWords,
    ) -> Result<TaskId, Fault> {
        let Some((note, task, id)) = self.storage.window().open() else {
            return Err(self.refuse_slot());
        };
        let (count, args, chained) = match words {
            TaskWords::Arguments(count) => (count, u8::try_from(count).unwrap_or(u8::MAX), 0),
            TaskWords::Chain { count, kernels } => (count, 0, kernels.saturating_sub(1)),
        };
        let args = (self.storage.take_args(note, count), args);
        TaskLine::added(spec.func_id.0, spec.kind.get(), args, kernel.0).write(task, id);
        self.storage.add_task();
        let line = self.publisher.line();
        line.added.store(self.storage.window().added(), Ordering::Relaxed);
        if chained > 0 {
            count_some(&line.chained, chained.into());
        }
        self.events.machine().added(id.slot);
        self.events.added(id.slot, spec.func_id.0, spec.kind.get());
        Ok(id)
    }

    /// The newest task, in `slot`, has a block shape.
    pub(super) fn give_block_shape(&mut self, slot: u32, kind: CoreKind, shape: &BlockSpec) {
        if let Some(task) = self.storage.window().task_in(slot) {
            task.kind.store(kind.get() | SHAPED, Ordering::Relaxed);
        }
        write_block_shape(&self.state, slot, shape);
        self.events.lanes(slot, shape.lanes());
    }

    /// Makes an added task visible to the schedulers.
    pub(super) fn publish(&mut self, id: TaskId) -> Result<(), Fault> {
        let number = self.number_of(id)?;
        let window = self.storage.window();
        let state = if number < window.watermark() { 0 } else { window.state_of(number) };
        if state != TaskState::ADDED.get() {
            return Err(self.refuse_task(Fault::BUILD_ALREADY_PUBLISHED, id, state.into(), 1));
        }
        self.publish_after((number, id.slot), &[])
    }

    /// Makes task `number`, which is not published and is in `slot`, wait for `producers`, and publishes it. Only the newest task may be given producers.
    #[inline(always)]
    pub(super) fn publish_after(
        &mut self,
        (number, slot): (u64, u32),
        producers: &[TaskId],
    ) -> Result<(), Fault> {
        for &producer in producers {
            self.edge_after(producer, number)?;
        }
        let publisher = &self.publisher;
        self.storage.note_kept(number, || publisher.published());
        self.publish_added(slot)
    }

    /// Makes the task in this slot, which is added, visible to the schedulers.
    #[inline]
    pub(super) fn publish_added(&mut self, slot: u32) -> Result<(), Fault> {
        let Some(task) = self.storage.window().task_in(slot) else { return Ok(()) };
        task.state.store(TaskState::PUBLISHED.get(), Ordering::Relaxed);
        self.publisher.count::<C::Sharing>();
        self.events.published(slot);
        if self.state.fault.is_raised() {
            return Err(raised(&self.state));
        }
        self.release(slot, task);
        self.report_state(slot.into());
        self.events.machine().published();
        Ok(())
    }

    /// A published task waits for its producers only; if none is left, it goes where the schedulers look.
    #[inline]
    fn release(&mut self, slot: u32, task: &Task) {
        if !release_published::<C::Sharing>(task, task.edges_in.load(Ordering::Relaxed)) {
            return;
        }
        self.events.trace(TraceKind::READY, slot, 0);
        let kind = task.kind.load(Ordering::Relaxed);
        if kind & SHAPED == 0 {
            self.state.queue(kind_in(kind)).push::<C::Sharing>(&[slot]);
        } else {
            self.state.post_ready(slot);
        }
    }
}

/// Writes the block shape of the task in `slot`, which is not published.
fn write_block_shape(state: &SharedState<'_>, slot: u32, shape: &BlockSpec) {
    let shapes = state.shapes;
    if let Some(line) = shapes.and_then(|shapes| shapes.line(slot)) {
        shape.write(line);
    }
}

/// The fault of a run that has one.
fn raised(state: &SharedState<'_>) -> Fault {
    state.fault.first().unwrap_or(Fault::RUN_CANCELLED)
}

impl<C: Config> Tasks<'_, C> {
    /// A range is submitted, for a host that charges for it.
    #[inline]
    pub(super) fn note_range(&mut self, what: RangeNote) {
        self.events.machine().in_range(what);
    }

    /// Refuses what concerns this task. A function of its own, as all refusals on the path of every task, so that the path needs no room for a blame.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse_task(
        &mut self,
        fault: Fault,
        task: TaskId,
        found: u64,
        expected: u64,
    ) -> Fault {
        self.blame.leave(Blame::of(fault).task(task).detail(found, expected))
    }

    /// Refuses an id that this run gave no task.
    #[cold]
    #[inline(never)]
    fn refuse_id(&mut self, id: TaskId) -> Fault {
        self.blame.leave(self.storage.window().refusal(id))
    }

    /// Refuses a task that there is no slot for.
    #[cold]
    #[inline(never)]
    fn refuse_slot(&mut self) -> Fault {
        self.blame.leave(self.storage.window().no_slot())
    }
}
