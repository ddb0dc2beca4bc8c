//! The firmware's streaming builder on memory of our own: it accepts, derives and counts as on a device, and nothing runs.
//!
//! Two hosts stand in for the schedulers. [`Watch`] lets nothing complete and notes every derived edge. [`Lazy`] completes
//! a task only when the builder waits for room, the oldest one that can: rings are as full as they can become.

use std::cell::RefCell;
use std::collections::VecDeque;

use pto_abi::arena::Capacities;
use pto_abi::gm::GmWindow;
use pto_abi::kinds::TaskState;
use pto_abi::limits::MAX_ARGS;
use pto_abi::ready::{QueueEnds, slots_for};
use pto_abi::runtime::{FaultLine, InstanceLine, Progress};
use pto_abi::stream::{
    BlockLine, MAX_HEAP_RINGS, MapEntry, MapGrid, MapRow, SlotNote, StreamHeader, StreamPlan,
};
use pto_abi::sync::{AtomicU32, AtomicU64, Exclusive, Ordering};
use pto_abi::task::{CLOSED, EdgeChunk, Task, chunks_for};
use pto_abi::{BuildMode, CoreKind, Fault, FuncId, GmAddr};
use pto_aicpu_fw::builder::BuilderInputs;
use pto_aicpu_fw::fanout::ConsumerWalk;
use pto_aicpu_fw::ready_queue::ReadyQueue;
use pto_aicpu_fw::shapes::{LANE_SETS, Lanes, ShapeMemory};
use pto_aicpu_fw::stream::map::{MapMemory, TensorMap};
use pto_aicpu_fw::stream::{Schedulers, Stream, StreamMemory};
use pto_aicpu_fw::{BuilderHost, DeviceMemory, LockFree, SharedState};
use pto_graph::EdgeOutcome;

/// How large the rings of a streaming run are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rings {
    /// Task slots: a power of two.
    pub window: u32,
    /// Argument words, with one of block context a task.
    pub arg_words: u64,
    /// Chunks of edges.
    pub edge_chunks: u64,
    /// Entries of the tensor map: a power of two.
    pub map_entries: u32,
    /// Depths of scopes: 1 to 8.
    pub heap_rings: u32,
    /// Bytes of the heap of each.
    pub heap_bytes: u64,
    /// Words of records.
    pub recording_words: usize,
    /// Whether tasks complete while the program submits.
    pub build_mode: BuildMode,
}

impl Rings {
    /// Those that a launch with these capacities has; `None`: they are beyond all limits.
    #[must_use]
    pub fn of(capacities: &Capacities, build_mode: BuildMode) -> Option<Self> {
        let stream = &capacities.stream;
        Some(Self {
            window: stream.window,
            arg_words: capacities.arg_words.checked_add(capacities.tasks.into())?,
            edge_chunks: chunks_for(capacities.edges),
            map_entries: stream.map_entries,
            heap_rings: stream.heap_rings,
            heap_bytes: stream.heap_bytes,
            recording_words: StreamPlan::of(stream)?.tape.1,
            build_mode,
        })
    }

    /// What is wrong with the sizes themselves, as a launch says it, with what was found.
    #[must_use]
    pub fn defect(&self) -> Option<(Fault, u64)> {
        if !self.window.is_power_of_two() {
            Some((Fault::STREAM_WINDOW_SIZE, self.window.into()))
        } else if !self.map_entries.is_power_of_two() || self.map_entries < 256 {
            Some((Fault::STREAM_MAP_SIZE, self.map_entries.into()))
        } else if self.heap_rings == 0 || self.heap_rings as usize > MAX_HEAP_RINGS {
            Some((Fault::STREAM_HEAP_SIZE, self.heap_rings.into()))
        } else if !self.heap_bytes.is_multiple_of(64) {
            Some((Fault::STREAM_HEAP_SIZE, self.heap_bytes))
        } else if self.arg_words == 0 || self.edge_chunks == 0 {
            Some((Fault::STREAM_RING_SIZE, 0))
        } else {
            None
        }
    }
}

/// The cores of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores {
    /// Cube cores.
    pub aic: u32,
    /// Vector cores.
    pub aiv: u32,
}

impl Default for Cores {
    /// A full die.
    fn default() -> Self {
        Self { aic: 24, aiv: 48 }
    }
}

impl Cores {
    /// Blocks that it runs at once, by their parts: a cluster is a cube core and two vector cores.
    fn room(self, lanes: usize) -> u32 {
        let lanes = Lanes(u8::try_from(lanes).unwrap_or(0));
        match lanes.single() {
            Some(CoreKind::AIC) => self.aic,
            Some(_) => self.aiv,
            None => {
                let vectors = u32::from(lanes.has(1)) + u32::from(lanes.has(2));
                let with_vectors = if vectors == 2 { self.aiv / 2 } else { self.aiv.div_ceil(2) };
                if lanes.has(0) { self.aic.min(with_vectors) } else { with_vectors }
            }
        }
    }
}

/// What a builder reads of the device.
pub trait Memory {
    /// The element of so many bytes at an address; `None`: it is not there.
    fn read(&self, address: GmAddr, bytes: u64) -> Option<u64>;

    /// Writes one.
    fn write(&self, address: GmAddr, bytes: u64, value: u64) -> Option<()>;
}

/// Memory in which everything is there, and zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zeros;

impl Memory for Zeros {
    fn read(&self, _: GmAddr, _: u64) -> Option<u64> {
        Some(0)
    }

    fn write(&self, _: GmAddr, _: u64, _: u64) -> Option<()> {
        Some(())
    }
}

/// Every kernel is registered.
pub(crate) struct Kernels<'m, M>(pub(crate) &'m M);

impl<M: Memory> DeviceMemory for Kernels<'_, M> {
    fn kernel_addr(&self, _: FuncId) -> GmAddr {
        GmAddr(64)
    }

    fn read_u32(&self, address: GmAddr) -> Option<u32> {
        u32::try_from(self.0.read(address, 4)?).ok()
    }

    fn has_element(&self, address: GmAddr, bytes: u64) -> bool {
        // Nothing runs beside the builder.
        self.0.read(address, bytes).is_some()
    }

    fn read_element(&self, address: GmAddr, bytes: u64) -> Option<u64> {
        self.0.read(address, bytes)
    }

    fn write_element(&self, address: GmAddr, bytes: u64, value: u64) -> Option<()> {
        self.0.write(address, bytes, value)
    }
}

/// The words of a run.
pub(crate) struct Words {
    rings: Rings,
    tasks: Vec<Task>,
    payloads: Vec<AtomicU64>,
    chunks: Vec<EdgeChunk>,
    ends: [QueueEnds; CoreKind::COUNT],
    slots: [Vec<AtomicU64>; CoreKind::COUNT],
    progress: Progress,
    fault: FaultLine,
    instances: Vec<InstanceLine>,
    pub(crate) header: StreamHeader,
    records: Vec<SlotNote>,
    shapes: Vec<BlockLine>,
    tensors: Vec<MapRow>,
    tensor_places: Vec<AtomicU32>,
    cells: Vec<MapRow>,
    cell_places: Vec<AtomicU32>,
    grids: Vec<MapGrid>,
    entries: Vec<MapEntry>,
    tape: Vec<AtomicU64>,
}

fn many<T: Default>(count: usize) -> Vec<T> {
    (0..count).map(|_| T::default()).collect()
}

/// A size as an index: usize has 64 bits on every host.
fn index(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

impl Words {
    /// Rings of these sizes, which have no defect.
    pub(crate) fn new(rings: &Rings) -> Self {
        let (window, entries) = (rings.window as usize, rings.map_entries as usize);
        let tensors = (entries / 4).max(4);
        let queue = || many(slots_for(rings.window) as usize);
        let header = StreamHeader::default();
        header.board.reset();
        Self {
            rings: *rings,
            tasks: many(window),
            // The words of one task run on behind the end of the ring.
            payloads: many(index(rings.arg_words.saturating_add(MAX_ARGS as u64))),
            chunks: many(index(rings.edge_chunks)),
            ends: Default::default(),
            slots: [queue(), queue()],
            progress: Progress::default(),
            fault: FaultLine::default(),
            instances: many(1),
            header,
            records: many(window),
            shapes: many(window),
            tensors: many(tensors),
            tensor_places: many(tensors),
            cells: many(entries),
            cell_places: many(entries),
            grids: many(tensors),
            entries: many(entries),
            tape: many(rings.recording_words),
        }
    }

    fn state(&self, cores: Cores) -> Option<SharedState<'_>> {
        let queue = |kind: usize| ReadyQueue::new(&self.ends[kind], &self.slots[kind]);
        Some(SharedState {
            tasks: &self.tasks,
            payloads: &self.payloads,
            payloads_address: GmAddr(64),
            chunks: &self.chunks,
            ready: [queue(0)?, queue(1)?],
            progress: &self.progress,
            fault: &self.fault,
            instances: &self.instances,
            shapes: Some(ShapeMemory {
                board: &self.header.board,
                records: &self.shapes,
                parts: &[],
                parts_address: GmAddr::NULL,
                gm: GmWindow::empty(),
                room: std::array::from_fn::<_, LANE_SETS, _>(|lanes| cores.room(lanes)),
            }),
        })
    }

    /// Runs `body` with a builder on these words; the heap begins at `heap`.
    pub(crate) fn with_stream<M: Memory, H: BuilderHost, R>(
        &self,
        (cores, heap): (Cores, GmAddr),
        orch_args: &[u64],
        memory: &M,
        host: H,
        body: impl FnOnce(&mut Stream<'_, Exclusive, LockFree, Kernels<'_, M>, H>) -> R,
    ) -> Result<R, Fault> {
        let map = MapMemory {
            tensors: &self.tensors,
            tensor_places: &self.tensor_places,
            cells: &self.cells,
            cell_places: &self.cell_places,
            grids: &self.grids,
            entries: &self.entries,
        };
        let stream = StreamMemory {
            header: &self.header,
            records: &self.records,
            map: TensorMap::new(map, 0).ok_or(Fault::STREAM_MAP_SIZE)?,
            tape: &self.tape,
            arg_words: self.rings.arg_words,
            edge_chunks: self.rings.edge_chunks,
            heap_rings: self.rings.heap_rings as usize,
            heap_bytes: self.rings.heap_bytes,
            heap,
            first_task: 0,
        };
        let inputs = BuilderInputs {
            state: self.state(cores).ok_or(Fault::STREAM_WINDOW_SIZE)?,
            line: &self.instances[0],
            orch_args,
            generation: 1,
            has_kind: [cores.aic > 0, cores.aiv > 0],
        };
        let schedulers = match self.rings.build_mode {
            BuildMode::SEQUENTIAL => Schedulers::Wait,
            _ => Schedulers::Run,
        };
        let kernels = Kernels(memory);
        Ok(body(&mut Stream::new(inputs, &stream, schedulers, kernels, host)))
    }

    /// Whether nothing keeps the task in a slot from running.
    fn is_ready(&self, slot: u32) -> bool {
        self.tasks.get(slot as usize).is_some_and(|task| {
            task.state.load(Ordering::Relaxed) == TaskState::PUBLISHED.get()
                && task.fanin.load(Ordering::Relaxed) == 0
        })
    }

    fn complete(&self, slot: u32) {
        let Some(task) = self.tasks.get(slot as usize) else { return };
        let mut walk = ConsumerWalk::new(task.fanout.fetch_or(CLOSED, Ordering::Relaxed));
        while let Some(consumer) = walk.next(task, &self.chunks) {
            if let Some(consumer) = self.tasks.get(consumer as usize) {
                consumer.fanin.fetch_sub(1, Ordering::Relaxed);
            }
        }
        // Release: pairs with the Acquire load in `Stream::advance`.
        task.state.store(TaskState::COMPLETED.get(), Ordering::Release);
        // Nobody takes tasks out of the queues and lists.
        self.ends.iter().for_each(QueueEnds::discard);
        self.header.board.reset();
    }
}

/// Lets nothing complete; notes which edges are derived, by slots.
pub(crate) struct Watch<'e>(pub(crate) &'e RefCell<Vec<(u32, u32)>>);

impl BuilderHost for Watch<'_> {
    const NOTES_EDGES: bool = true;

    fn published(&mut self) {}

    fn derived(&mut self, producer: u32, consumer: u32, _: EdgeOutcome) {
        self.0.borrow_mut().push((producer, consumer));
    }
}

/// Completes a task only when the builder waits; none, if none can complete: then the builder proves that itself.
pub(crate) struct Lazy<'w> {
    pub(crate) words: &'w Words,
    /// Slots of tasks that have not completed, in the order in which they were added.
    pub(crate) alive: VecDeque<u32>,
}

impl BuilderHost for Lazy<'_> {
    fn published(&mut self) {}

    fn added(&mut self, slot: u32) {
        self.alive.push_back(slot);
    }

    fn relax(&mut self) {
        let oldest = self.alive.iter().position(|slot| self.words.is_ready(*slot));
        if let Some(slot) = oldest.and_then(|at| self.alive.remove(at)) {
            self.words.complete(slot);
        }
    }
}
