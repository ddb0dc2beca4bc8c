//! The streaming builder: its state, the watermark, and the slots that tasks are put into.

use core::marker::PhantomData;

use heapless::Vec;
use pto_abi::kinds::TaskState;
use pto_abi::limits::{MAX_ARGS, MAX_FUNC_ID};
use pto_abi::runtime::InstanceLine;
use pto_abi::stream::{MAX_HEAP_RINGS, RingKind, SlotNote, StreamHeader};
use pto_abi::sync::{AtomicU64, Ordering, Sharing};
use pto_abi::task::{NO_CHUNK, Task, UNPUBLISHED};
use pto_abi::trace::{TraceKind, TracePoint};
use pto_abi::{CoreKind, Fault, GmAddr, TaskId};
use pto_graph::{DependencyMode, ScopeId, TaskSpec};

use super::kept::Kept;
use super::map::{TensorMap, low_half};
use super::record::Draft;
use super::rings::{HeapRing, RunOnRing, before};
use super::tape::Tape;
use crate::blame::{Blame, BlameSlot};
use crate::builder::{BLOCK_0_OF_1, BuilderHost, BuilderInputs, DeviceMemory};
use crate::fanout::FanoutPolicy;
use crate::state::SharedState;

mod hashed;

/// Submissions after which the watermark is looked for anew. 16 of 1, 4, 16 and 64: the first with which a look costs
/// nothing that shows.
const LOOK_EVERY: u64 = 16;

/// Tasks after which the tensor map forgets what has completed.
const SWEEP_EVERY: u64 = 1 << 30;

/// The memory of a streaming run, checked. See `super::memory`.
pub struct StreamMemory<'a> {
    /// Sizes and marks.
    pub header: &'a StreamHeader,
    /// Notes on the slots: as many as the window has; a power of two.
    pub records: &'a [SlotNote],
    /// The tensor map, empty.
    pub map: TensorMap<'a>,
    /// Words of records.
    pub tape: &'a [AtomicU64],
    /// Argument words. Memory holds [`MAX_ARGS`] more, behind the end of the ring.
    pub arg_words: u64,
    /// Chunks of edges.
    pub edge_chunks: u64,
    /// Heap rings, and bytes of each.
    pub heap_rings: usize,
    /// See `heap_rings`.
    pub heap_bytes: u64,
    /// Where the first heap ring is.
    pub heap: GmAddr,
    /// Number of the run's first task.
    pub first_task: u64,
}

/// Whether schedulers run while the builder does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedulers {
    /// They do.
    Run,
    /// They wait for it: nothing completes before it has returned.
    Wait,
}

/// A scope that is open.
#[derive(Clone, Copy)]
pub(super) struct OpenScope {
    pub(super) id: ScopeId,
    pub(super) mode: DependencyMode,
}

/// What the line of a task is to say.
pub(super) struct TaskLine {
    pub(super) func_id: u16,
    pub(super) kind: u8,
    pub(super) args: u8,
    pub(super) kernel: u64,
    /// Where its arguments stand.
    pub(super) payload: u32,
    pub(super) producers: u32,
    /// How many there are already.
    pub(super) consumers: u32,
    /// Whether its producers release it, without a publish.
    pub(super) is_published: bool,
}

impl TaskLine {
    #[inline]
    pub(super) fn write(self, task: &Task, id: TaskId) {
        let (fanin, state) = match self.is_published {
            true => (self.producers, TaskState::PUBLISHED),
            false => (UNPUBLISHED, TaskState::ADDED),
        };
        task.fanin.store(fanin, Ordering::Relaxed);
        task.fanout.store(self.consumers, Ordering::Relaxed);
        task.state.store(state.get(), Ordering::Relaxed);
        task.func_id.store(self.func_id, Ordering::Relaxed);
        task.edges_in.store(self.producers, Ordering::Relaxed);
        task.kernel.store(self.kernel, Ordering::Relaxed);
        task.payload.store(self.payload, Ordering::Relaxed);
        task.arg_count.store(self.args, Ordering::Relaxed);
        task.kind.store(self.kind, Ordering::Relaxed);
        task.generation.store(id.generation, Ordering::Relaxed);
        task.last_chunk.store(NO_CHUNK, Ordering::Relaxed);
    }
}

/// The builder of `tensormap_and_ringbuffer`. See the module.
pub struct Stream<'a, S, F, M, H> {
    pub(super) state: SharedState<'a>,
    pub(super) line: &'a InstanceLine,
    pub(super) memory: M,
    pub(super) host: H,
    pub(super) orch_args: &'a [u64],
    has_kind: [bool; CoreKind::COUNT],
    pub(super) header: &'a StreamHeader,
    records: &'a [SlotNote],
    pub(super) map: &'a TensorMap<'a>,
    pub(super) words: RunOnRing,
    pub(super) chunks: RunOnRing,
    pub(super) heaps: Vec<HeapRing, MAX_HEAP_RINGS>,
    pub(super) heap: GmAddr,
    pub(super) heap_bytes: u64,
    pub(super) scopes: Vec<OpenScope, MAX_HEAP_RINGS>,
    pub(super) next_scope: u64,
    pub(super) tape: Tape<'a>,
    /// Words of the tape that hold records, and how many records were begun.
    pub(super) taped: usize,
    pub(super) record_count: u32,
    /// The record that is being made.
    pub(super) draft: Option<Draft>,
    /// The number of the next task, and of the oldest one that has not completed.
    pub(super) next: u64,
    pub(super) watermark: u64,
    first: u64,
    shift: u32,
    pub(super) mask: u64,
    generation: u32,
    pub(super) schedulers: Schedulers,
    pub(super) reserve: u64,
    /// The most that one task took of a ring, or what is added at once, or is kept back, by `RingKind`.
    pub(super) largest: [u64; 4],
    /// Of tasks that are kept back.
    pub(super) kept: Kept,
    pub(super) traced_ns: u64,
    pub(super) blame: BlameSlot,
    policy: PhantomData<(S, F)>,
}

impl<'a, S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> Stream<'a, S, F, M, H> {
    /// A builder with nothing added.
    pub fn new(
        inputs: BuilderInputs<'a>,
        stream: &'a StreamMemory<'a>,
        schedulers: Schedulers,
        memory: M,
        host: H,
    ) -> Self {
        let window = stream.records.len() as u64;
        let first = stream.first_task;
        let root = ScopeId { depth: 0, serial: 0 };
        let mut scopes = Vec::new();
        // There is room for eight.
        scopes.push(OpenScope { id: root, mode: DependencyMode::DERIVED }).unwrap_or_default();
        let mut heaps = Vec::new();
        for _ in 0..stream.heap_rings {
            // More than there is room for are not used.
            heaps.push(HeapRing::new(stream.heap_bytes)).unwrap_or_default();
        }
        // The words of one task run on behind the end of the ring.
        let held = (inputs.state.payloads.len() as u64).saturating_sub(MAX_ARGS as u64);
        let arg_words = stream.arg_words.min(held);
        let this = Self {
            state: inputs.state,
            line: inputs.line,
            memory,
            host,
            orch_args: inputs.orch_args,
            has_kind: inputs.has_kind,
            header: stream.header,
            records: stream.records,
            map: &stream.map,
            words: RunOnRing::new(arg_words, first),
            chunks: RunOnRing::new(stream.edge_chunks, first),
            heaps,
            heap: stream.heap,
            heap_bytes: stream.heap_bytes,
            scopes,
            next_scope: 1,
            tape: Tape::new(stream.tape),
            taped: 0,
            record_count: 0,
            draft: None,
            next: first,
            watermark: first,
            first,
            shift: window.checked_ilog2().unwrap_or(0),
            mask: window.saturating_sub(1),
            // Odd: different runs have different generations.
            generation: inputs.generation.wrapping_mul(0x9E37_79B1),
            schedulers,
            reserve: 0,
            largest: [0; 4],
            kept: Kept::new(),
            traced_ns: 0,
            blame: BlameSlot::default(),
            policy: PhantomData,
        };
        this.begin_marks();
        this
    }

    /// How many tasks were added.
    #[must_use]
    pub const fn added(&self) -> u64 {
        self.next - self.first
    }

    /// The circumstances of a fault that a call returned.
    #[must_use]
    pub fn blame(&self, fault: Fault) -> Blame {
        self.blame.of(fault)
    }

    /// The last publish has been made: lets the run end.
    ///
    /// # Errors
    /// `BUILD_NOT_PUBLISHED`, `STREAM_SCOPE_LEFT_OPEN`.
    pub fn finish(&mut self) -> Result<(), Fault> {
        if let [_, .., left] = self.scopes.as_slice() {
            let scope = left.id.serial;
            return Err(self
                .blame
                .leave(Blame::of(Fault::STREAM_SCOPE_LEFT_OPEN).detail(scope, 0)));
        }
        if self.line.published.load(Ordering::Relaxed) != self.added() {
            let task = self.id_of(self.oldest_unpublished().unwrap_or(self.watermark));
            return Err(self.blame.leave(Blame::of(Fault::BUILD_NOT_PUBLISHED).task(task)));
        }
        self.advance();
        self.end_marks();
        S::fetch_sub(&self.state.progress.outstanding, self.reserve, Ordering::Relaxed);
        self.reserve = 0;
        // Release: pairs with the Acquire load in `SharedState::build_is_done`; who sees it sees every raise.
        self.state.progress.build_done.store(1, Ordering::Release);
        Ok(())
    }

    /// Moves the watermark to the first task that has not completed, and takes back what is behind it.
    #[inline]
    pub(super) fn advance(&mut self) {
        let before = self.watermark;
        while self.watermark < self.next {
            let Some(task) = self.state.task(self.slot_of(self.watermark)) else { break };
            // Acquire: pairs with the Release store in `Scheduler::go_on`, after which no scheduler touches the task, its
            // arguments or its edges.
            if task.state.load(Ordering::Acquire) != TaskState::COMPLETED.get() {
                break;
            }
            self.watermark += 1;
        }
        if self.watermark > before {
            self.retire();
        }
    }

    #[inline]
    fn retire(&mut self) {
        self.mark_use();
        match self.record(self.watermark) {
            Some(record) if self.watermark < self.next => {
                self.words.retire_low(record.first_word.load(Ordering::Relaxed));
                self.chunks.retire_low(record.first_chunk.load(Ordering::Relaxed));
                let entry = before(self.map.head(), record.first_entry.load(Ordering::Relaxed));
                self.map.retire(self.watermark, entry);
            }
            _ => {
                self.words.retire(self.words.head());
                self.chunks.retire(self.chunks.head());
                self.map.retire(self.watermark, self.map.head());
            }
        }
    }

    /// What is in use of the rings of window, words, chunks and entries.
    pub(super) const fn in_use(&self) -> [u64; 4] {
        let window = self.next - self.watermark;
        [window, self.words.in_use(), self.chunks.in_use(), self.map.in_use()]
    }

    pub(super) const fn capacities(&self) -> [u64; 4] {
        let (words, chunks) = (self.words.capacity(), self.chunks.capacity());
        [self.mask + 1, words, chunks, self.map.capacity()]
    }

    /// Whether a ring takes `count` more.
    pub(super) const fn has_room(&self, ring: RingKind, count: u64) -> bool {
        match ring {
            RingKind::WINDOW => self.next - self.watermark + count <= self.mask + 1,
            RingKind::ARGS => self.words.has_room(count),
            RingKind::EDGES => self.chunks.has_room(count),
            _ => self.map.has_room(count),
        }
    }

    /// Slots of the window.
    pub(super) const fn slots(&self) -> u32 {
        low_half(self.mask + 1)
    }

    /// What tells this run from others.
    pub(super) const fn run(&self) -> u32 {
        self.generation
    }

    #[inline]
    pub(super) const fn slot_of(&self, number: u64) -> u32 {
        // The mask is below 2^25.
        low_half(number & self.mask)
    }

    #[inline]
    pub(super) fn record(&self, number: u64) -> Option<&'a SlotNote> {
        self.records.get(self.slot_of(number) as usize)
    }

    #[inline]
    pub(super) const fn id_of(&self, number: u64) -> TaskId {
        let lap = ((number >> self.shift) & 0xFFFF_FFFF) as u32;
        TaskId { slot: self.slot_of(number), generation: self.generation.wrapping_add(lap) }
    }

    /// The state of a task that is not retired.
    pub(super) fn state_of(&self, number: u64) -> u8 {
        // Acquire: as in `advance`.
        self.state.task(self.slot_of(number)).map_or(0, |task| task.state.load(Ordering::Acquire))
    }

    /// The number of a task that this run gave an id to.
    #[inline]
    pub(super) fn number_of(&mut self, id: TaskId) -> Result<u64, Fault> {
        let lap = self.next >> self.shift;
        let newest = self.id_of(lap << self.shift).generation;
        let age = u64::from(newest.wrapping_sub(id.generation));
        if age > lap - (self.first >> self.shift) {
            let (found, expected) = (id.generation.into(), newest.into());
            return Err(self.refuse_task(Fault::BUILD_STALE_TASK, id, found, expected));
        }
        let number = (lap - age) << self.shift | u64::from(id.slot);
        if number >= self.next || number < self.first || u64::from(id.slot) > self.mask {
            let bound = self.next;
            return Err(self.refuse_task(Fault::BUILD_UNKNOWN_TASK, id, number, bound));
        }
        Ok(number)
    }

    #[cold]
    pub(super) fn refuse_task(
        &mut self,
        fault: Fault,
        task: TaskId,
        found: u64,
        bound: u64,
    ) -> Fault {
        self.blame.leave(Blame::of(fault).task(task).detail(found, bound))
    }

    /// The kernel's code, or why the task cannot run.
    #[inline]
    pub(super) fn accept(&mut self, spec: &TaskSpec<'_>, args: usize) -> Result<GmAddr, Fault> {
        let func = spec.func_id;
        let fault = if func.index() >= MAX_FUNC_ID {
            (Fault::BUILD_UNKNOWN_FUNC, func.index(), MAX_FUNC_ID - 1)
        } else if args > MAX_ARGS {
            (Fault::BUILD_TOO_MANY_ARGS, args, MAX_ARGS)
        } else if !self.has_kind[spec.kind.index()] {
            (Fault::BUILD_NO_CORE_OF_KIND, spec.kind.index(), 0)
        } else {
            if !spec.kernel.is_null() {
                return Ok(spec.kernel);
            }
            let kernel = self.memory.kernel_addr(func);
            if !kernel.is_null() {
                return Ok(kernel);
            }
            (Fault::BUILD_KERNEL_MISSING, func.index(), 0)
        };
        let (fault, found, bound) = fault;
        let blame = Blame::of(fault).func(func.0.into()).task(self.id_of(self.next));
        Err(self.blame.leave(blame.detail(found as u64, bound as u64)))
    }

    /// Notes that one task, or what is added at once, takes so much of a ring.
    #[inline]
    pub(super) fn takes(&mut self, ring: RingKind, count: u64) {
        if let Some(largest) = self.largest.get_mut(usize::from(ring.get()))
            && count > *largest
        {
            *largest = count;
        }
    }

    /// Room for a task with `args` words: waits for it where it must.
    #[inline]
    pub(super) fn make_room(&mut self, args: usize) -> Result<(), Fault> {
        self.takes(RingKind::ARGS, args as u64 + 1);
        if self.next.is_multiple_of(LOOK_EVERY) {
            self.advance();
            if self.next % SWEEP_EVERY == SWEEP_EVERY / 2 {
                self.map.sweep(self.next);
            }
        }
        if !self.has_room(RingKind::WINDOW, 1) {
            self.wait_for_room(RingKind::WINDOW, 1)?;
        }
        if !self.has_room(RingKind::ARGS, args as u64 + 1) {
            self.wait_for_room(RingKind::ARGS, args as u64 + 1)?;
        }
        Ok(())
    }

    /// Where the next `count` argument words are.
    #[inline]
    pub(super) fn next_words(&self, count: usize) -> &'a [AtomicU64] {
        let start = usize::try_from(self.words.place()).unwrap_or(usize::MAX);
        let words = self.state.payloads.get(start..).unwrap_or(&[]);
        words.get(..count).unwrap_or(&[])
    }

    /// Takes the next slot for a task, for which there is room; its argument words have been written.
    #[inline]
    pub(super) fn open_slot(
        &mut self,
        spec: &TaskSpec<'_>,
        kernel: GmAddr,
        count: usize,
    ) -> Result<TaskId, Fault> {
        let (number, id) = (self.next, self.id_of(self.next));
        let Some((record, task)) = self.record(number).zip(self.state.task(id.slot)) else {
            return Err(self.refuse_task(Fault::STREAM_WINDOW_SIZE, id, number, self.mask + 1));
        };
        self.note_rings(record, self.words.head());
        let payload = self.words.take(count as u64 + 1);
        let start = usize::try_from(payload).unwrap_or(usize::MAX);
        if let Some(context) = self.state.payloads.get(start + count) {
            context.store(BLOCK_0_OF_1, Ordering::Relaxed);
        }
        TaskLine {
            func_id: spec.func_id.0,
            kind: spec.kind.get(),
            args: u8::try_from(count).unwrap_or(u8::MAX),
            kernel: kernel.0,
            payload: u32::try_from(payload).unwrap_or(u32::MAX),
            producers: 0,
            consumers: 0,
            is_published: false,
        }
        .write(task, id);
        self.next = number + 1;
        self.line.added.store(self.added(), Ordering::Relaxed);
        self.host.added(id.slot);
        if H::TRACES {
            self.traced_ns = self.host.now_ns();
            let func_and_kind = u32::from(spec.func_id.0) | u32::from(spec.kind.get()) << 16;
            self.trace(TraceKind::ADDED, id.slot, func_and_kind);
        }
        Ok(id)
    }

    /// Notes where the rings stand before a task takes its part of them; `first_word`: that of the arguments.
    #[inline]
    pub(super) fn note_rings(&self, record: &SlotNote, first_word: u64) {
        record.first_word.store(low_half(first_word), Ordering::Relaxed);
        record.first_chunk.store(low_half(self.chunks.head()), Ordering::Relaxed);
        record.first_entry.store(low_half(self.map.head()), Ordering::Relaxed);
    }

    pub(super) fn raised(&self) -> Fault {
        self.state.fault.first().unwrap_or(Fault::RUN_CANCELLED)
    }

    /// One event, if they are wanted, at the time of the last look.
    #[inline]
    pub(super) fn trace(&mut self, kind: TraceKind, task: u32, extra: u32) {
        if H::TRACES {
            self.host.trace(TracePoint { time_ns: self.traced_ns, kind, task, extra });
        }
    }
}
