//! The firmware's streaming builder on memory of our own: it accepts, derives and counts as on a device, and nothing runs.
//!
//! Two hosts stand in for the schedulers. [`Watch`] lets nothing complete and notes every derived edge. [`Lazy`] completes
//! a task only when the builder waits for room, the oldest one that can: rings are as full as they can become.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;

use crate::run_memory::{StreamRun, StreamSizes, StreamWords};
use pto_abi::arena::Capacities;
use pto_abi::stream::{MAX_HEAP_RINGS, StreamHeader, StreamPlan};
use pto_abi::sync::Exclusive;
use pto_abi::task::chunks_for;
use pto_abi::{BuildMode, CoreKind, Fault, FuncId, GmAddr};
use pto_aicpu_fw::block_shapes::{LANE_SETS, Lanes};
use pto_aicpu_fw::stream::{Schedulers, Stream};
use pto_aicpu_fw::{DeviceMemory, LockFree, Machine};
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
            recording_words: StreamPlan::of(stream)?.recordings.1,
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

/// Every kernel is registered, and the tensors of the heap are nowhere.
pub(crate) struct Kernels<'m, M> {
    memory: &'m M,
    /// The addresses of the heap.
    heap: Range<u64>,
}

impl<M: Memory> DeviceMemory for Kernels<'_, M> {
    fn kernel_addr(&self, _: FuncId) -> GmAddr {
        GmAddr(64)
    }

    fn read_u32(&self, address: GmAddr) -> Option<u32> {
        u32::try_from(self.memory.read(address, 4)?).ok()
    }

    fn has_element(&self, address: GmAddr, bytes: u64) -> bool {
        // Nothing runs in parallel with the builder.
        self.heap.contains(&address.0) || self.memory.read(address, bytes).is_some()
    }

    fn read_element(&self, address: GmAddr, bytes: u64) -> Option<u64> {
        self.memory.read(address, bytes)
    }

    fn write_element(&self, address: GmAddr, bytes: u64, value: u64) -> Option<()> {
        self.memory.write(address, bytes, value)
    }
}

/// A size as an index: usize has 64 bits on every host.
fn index(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

/// Rows of the tensor map, at least: more than a run has. Tensors whose addresses share a row can get edges that others imply, and where memory lies differs from process
/// to process. With so many rows hardly any share one, so that each check of a program counts the same edges.
const MAP_ROWS: usize = 1 << 16;

/// The words of a run on rings of one size.
pub(crate) struct Words {
    build_mode: BuildMode,
    /// Of all heaps.
    heap_bytes: u64,
    of: StreamWords,
}

impl Words {
    /// Rings of these sizes, which have no defect.
    pub(crate) fn new(rings: &Rings) -> Self {
        let entries = rings.map_entries as usize;
        let of = StreamWords::new(StreamSizes {
            window: rings.window,
            arg_words: index(rings.arg_words),
            chunks: index(rings.edge_chunks),
            map_rows: (entries / 4).max(MAP_ROWS),
            map_cells: entries,
            map_entries: entries,
            heap_rings: rings.heap_rings as usize,
            heap_bytes: rings.heap_bytes,
            recording_words: rings.recording_words,
        });
        let heap_bytes = rings.heap_bytes.saturating_mul(rings.heap_rings.into());
        Self { build_mode: rings.build_mode, heap_bytes, of }
    }

    /// The marks that a builder has left.
    pub(crate) const fn header(&self) -> &StreamHeader {
        &self.of.header
    }

    /// Runs `body` with a builder on these words; the heap begins at `heap`.
    pub(crate) fn with_stream<M: Memory, H: Machine, R>(
        &self,
        (cores, heap): (Cores, GmAddr),
        orch_args: &[u64],
        memory: &M,
        host: H,
        body: impl FnOnce(&mut Stream<'_, (Exclusive, LockFree, Kernels<'_, M>, H)>) -> R,
    ) -> Result<R, Fault> {
        let schedulers = match self.build_mode {
            BuildMode::SEQUENTIAL => Schedulers::Wait,
            _ => Schedulers::Run,
        };
        let room = Some(std::array::from_fn::<_, LANE_SETS, _>(|lanes| cores.room(lanes)));
        let has_kind = [cores.aic > 0, cores.aiv > 0];
        let run = StreamRun { room, has_kind, heap, orch_args, schedulers };
        let kernels = Kernels { memory, heap: heap.0..heap.0.saturating_add(self.heap_bytes) };
        self.of.with_stream(&run, kernels, host, body)
    }
}

/// Lets nothing complete; notes which edges are derived, by slots.
pub(crate) struct Watch<'e>(pub(crate) &'e RefCell<Vec<(u32, u32)>>);

impl Machine for Watch<'_> {
    const NOTES_EDGES: bool = true;

    fn now_ns(&self) -> u64 {
        0
    }

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

impl Machine for Lazy<'_> {
    fn now_ns(&self) -> u64 {
        0
    }

    fn added(&mut self, slot: u32) {
        self.alive.push_back(slot);
    }

    fn relax(&mut self) {
        let oldest = self.alive.iter().position(|slot| self.words.of.is_ready(*slot));
        if let Some(slot) = oldest.and_then(|at| self.alive.remove(at)) {
            self.words.of.complete(slot);
        }
    }
}
