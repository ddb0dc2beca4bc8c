//! What the streaming builder has of its own, and a run of a program on it.

use std::fmt;

use pto_abi::gm::GmWindow;
use pto_abi::kinds::TaskState;
use pto_abi::launch_args::LaunchArgs;
use pto_abi::limits::MAX_ARGS;
use pto_abi::ready::QueueEnds;
use pto_abi::stream::{BlockLine, MapEntry, MapGrid, MapRow, SlotNote, StreamHeader};
use pto_abi::sync::{AtomicU32, AtomicU64, Ordering};
use pto_abi::task::CLOSED;
use pto_abi::{CoreKind, Fault, GmAddr};
use pto_aicpu_fw::Config;
use pto_aicpu_fw::block_shapes::{BlockShapeMemory, LANE_SETS};
use pto_aicpu_fw::fanout::ConsumerWalk;
use pto_aicpu_fw::stream::map::{MapMemory, TensorMap};
use pto_aicpu_fw::stream::{Schedulers, Stream, StreamMemory};

use super::many;
use super::run::{RunSizes, RunWords};

/// How large the rings of a streaming run are.
#[derive(Clone, Copy, Debug)]
pub struct StreamSizes {
    /// Task slots: a power of two.
    pub window: u32,
    /// Argument words, with one of block context a task. The words of one task run on after the end of the ring.
    pub arg_words: usize,
    /// Chunks of edges.
    pub chunks: usize,
    /// Rows for tensors in the map, and grids of tiles: a power of two.
    pub map_rows: usize,
    /// Cells of the map: a power of two.
    pub map_cells: usize,
    /// Entries of the map: a power of two.
    pub map_entries: usize,
    /// Depths of scopes: 1 to 8.
    pub heap_rings: usize,
    /// Bytes of the heap of each. There is no heap: only its addresses are given out.
    pub heap_bytes: u64,
    /// Words for recordings.
    pub recording_words: usize,
}

/// What a run knows of its device.
#[derive(Clone, Copy, Debug)]
pub struct StreamRun<'r> {
    /// How many blocks of each set of lanes run at once; `None`: tasks that need several cores are unknown.
    pub room: Option<[u32; LANE_SETS]>,
    /// Which kinds of cores there are.
    pub has_kind: [bool; CoreKind::COUNT],
    /// Where the heap begins.
    pub heap: GmAddr,
    /// The program's arguments.
    pub orch_args: &'r [u64],
    /// Whether tasks complete while the program submits.
    pub schedulers: Schedulers,
}

/// The memory of a streaming run.
pub struct StreamWords {
    sizes: StreamSizes,
    /// What it shares with every run.
    pub run: RunWords,
    /// The stream's own lines.
    pub header: StreamHeader,
    /// Lines of tasks that need several cores.
    pub blocks: Vec<BlockLine>,
    notes: Vec<SlotNote>,
    rows: Vec<MapRow>,
    row_places: Vec<AtomicU32>,
    cells: Vec<MapRow>,
    cell_index: Vec<AtomicU32>,
    grids: Vec<MapGrid>,
    entries: Vec<MapEntry>,
    recordings: Vec<AtomicU64>,
}

impl StreamWords {
    /// Words of these sizes, for one instance.
    #[must_use]
    pub fn new(sizes: StreamSizes) -> Self {
        let window = sizes.window as usize;
        let payloads = sizes.arg_words.saturating_add(MAX_ARGS);
        let run = RunSizes { tasks: sizes.window, payloads, chunks: sizes.chunks, instances: 1 };
        let header = StreamHeader::default();
        header.board.reset();
        Self {
            sizes,
            run: RunWords::new(run),
            header,
            blocks: many(window),
            notes: many(window),
            rows: many(sizes.map_rows),
            row_places: many(sizes.map_rows),
            cells: many(sizes.map_cells),
            cell_index: many(sizes.map_cells),
            grids: many(sizes.map_rows),
            entries: many(sizes.map_entries),
            recordings: many(sizes.recording_words),
        }
    }

    /// Runs `body` with a builder on these words.
    ///
    /// # Errors
    /// The fault of a window or a map that cannot have its size.
    pub fn with_stream<C: Config, R>(
        &self,
        run: &StreamRun<'_>,
        memory: C::Memory,
        mut machine: C::Machine,
        body: impl FnOnce(&mut Stream<'_, C>) -> R,
    ) -> Result<R, Fault> {
        let args = LaunchArgs::of(run.orch_args);
        let mut inputs = self.run.inputs(args).ok_or(Fault::STREAM_WINDOW_SIZE)?;
        inputs.state.shapes = run.room.map(|room| self.shapes(room));
        inputs.has_kind = run.has_kind;
        let of = self.memory(run.heap)?;
        Ok(body(&mut Stream::new(inputs, &of, run.schedulers, memory, &mut machine)))
    }

    fn shapes(&self, room: [u32; LANE_SETS]) -> BlockShapeMemory<'_> {
        BlockShapeMemory {
            board: &self.header.board,
            lines: &self.blocks,
            parts: &[],
            parts_address: GmAddr::NULL,
            gm: GmWindow::empty(),
            room,
        }
    }

    fn memory(&self, heap: GmAddr) -> Result<StreamMemory<'_>, Fault> {
        let map = MapMemory {
            tensors: &self.rows,
            tensor_index: &self.row_places,
            cells: &self.cells,
            cell_index: &self.cell_index,
            grids: &self.grids,
            entries: &self.entries,
        };
        Ok(StreamMemory {
            header: &self.header,
            notes: &self.notes,
            map: TensorMap::new(map, 0).ok_or(Fault::STREAM_MAP_SIZE)?,
            recordings: &self.recordings,
            arg_words: self.sizes.arg_words as u64,
            edge_chunks: self.sizes.chunks as u64,
            heap_rings: self.sizes.heap_rings,
            heap_bytes: self.sizes.heap_bytes,
            heap,
            first_task: 0,
        })
    }

    /// Whether nothing keeps the task in a slot from running.
    #[must_use]
    pub fn is_ready(&self, slot: u32) -> bool {
        self.run.tasks.get(slot as usize).is_some_and(|task| {
            task.state.load(Ordering::Relaxed) == TaskState::PUBLISHED.get()
                && task.fanin.load(Ordering::Relaxed) == 0
        })
    }

    /// Completes the task in a slot, and takes it from its consumers' counts. Nobody takes tasks out of the queues and
    /// lists, which are emptied.
    pub fn complete(&self, slot: u32) {
        let Some(task) = self.run.tasks.get(slot as usize) else { return };
        let mut walk = ConsumerWalk::new(task.fanout.fetch_or(CLOSED, Ordering::Relaxed));
        while let Some(consumer) = walk.next(task, &self.run.chunks) {
            if let Some(consumer) = self.run.tasks.get(consumer as usize) {
                consumer.fanin.fetch_sub(1, Ordering::Relaxed);
            }
        }
        // Release: pairs with the Acquire load in `SlotWindow::advance`.
        task.state.store(TaskState::COMPLETED.get(), Ordering::Release);
        self.run.ends.iter().for_each(QueueEnds::discard);
        self.header.board.reset();
    }

    /// Completes whatever is in the window.
    pub fn complete_all(&self) {
        for task in &self.run.tasks {
            task.fanout.fetch_or(CLOSED, Ordering::Relaxed);
            // Release: pairs with the Acquire load in `SlotWindow::advance`.
            task.state.store(TaskState::COMPLETED.get(), Ordering::Release);
        }
        self.run.ends.iter().for_each(QueueEnds::discard);
    }
}

impl fmt::Debug for StreamWords {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("StreamWords").field(&self.sizes).finish()
    }
}
