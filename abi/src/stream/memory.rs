//! The memory of the streaming builder: sizes and marks of its rings, its notes on each slot, the tensor map, the heap.
//!
//! ```text
//! region `stream`:  StreamHeader | SlotNote x window | BlockLine x window | words of parts x workers |
//!                 MapRow x tensors | MapRow x cells | MapGrid x tensors | MapEntry x entries |
//!                 index x tensors | index x cells | words of recordings | heap ring x rings
//! ```
//! The host writes the sizes, the builder alone writes the rest but what [`BlockBoard`] says; the host reads the marks
//! when the run is over.

use crate::closed_set;
use crate::limits::MAX_WORKERS;
use crate::shared_struct::shared_struct;
use crate::stream::board::{BLOCK_WORDS, BlockBoard, BlockLine};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Heap rings, one for each depth of scopes, at most.
pub const MAX_HEAP_RINGS: usize = 8;
/// Task slots, argument words, edge chunks, the tensor map, and the heaps.
pub const RING_COUNT: usize = 4 + MAX_HEAP_RINGS;

closed_set! {
    /// A ring of the streaming runtime. The heap of depth `d` is number `HEAP + d`.
    pub struct RingKind(u8) {
        /// Task slots.
        WINDOW = 0, "window";
        /// Argument words.
        ARGS = 1, "arguments";
        /// Chunks of edges.
        EDGES = 2, "edges";
        /// Entries of the tensor map.
        MAP = 3, "tensor map";
        /// Bytes of the heap.
        HEAP = 4, "heap";
    }
}

shared_struct! {
    /// One ring: how large it is, and how much of it a run used.
    #[derive(Default)]
    pub struct RingLine [size = 32, align = 8] {
        /// Units that it holds: slots, words, chunks, entries, bytes.
        0 => capacity: AtomicU64,
        /// The most units that were in use at once.
        8 => high_water: AtomicU64,
        /// How often the builder waited for it.
        16 => waits: AtomicU64,
        /// The least capacity with which what was asked for fits: the largest task, the largest scope.
        24 => needed: AtomicU64,
    }
}

shared_struct! {
    /// The start of the region `stream`.
    #[derive(Default)]
    pub struct StreamHeader [size = 704, align = 64] {
        /// Task slots; a power of two.
        0 => window: AtomicU32,
        /// Entries of the tensor map; a power of two. There is a row of a cell for each, and of a tensor for every four.
        4 => map_entries: AtomicU32,
        /// Depths of scopes that have a heap.
        8 => heap_rings: AtomicU32,
        /// The number of the run's first task; 0 but in tests.
        12 => first_task: AtomicU32,
        /// Bytes of each heap ring; a multiple of 64.
        16 => heap_bytes: AtomicU64,
        /// Argument words, with one word of block context a task.
        24 => arg_words: AtomicU64,
        /// Chunks of edges.
        32 => edge_chunks: AtomicU64,
        /// Scopes that were opened.
        40 => scopes: AtomicU64,
        /// Tensors that were allocated.
        48 => tensors: AtomicU64,
        /// Not used; zero.
        56 => reserved: AtomicU64,
        /// The rings, by `RingKind`, then the heaps by depth.
        64 => rings: [RingLine; RING_COUNT],
        /// Where tasks with a block shape wait for cores.
        448 => board: BlockBoard,
    }
}

shared_struct! {
    /// What the builder notes of a task slot: where its rings stood when the task was added, as low halves of positions.
    #[derive(Default)]
    pub struct SlotNote [size = 16, align = 16] {
        /// Argument words given out before.
        0 => first_word: AtomicU32,
        /// Chunks given out before.
        4 => first_chunk: AtomicU32,
        /// Entries of the tensor map given out before.
        8 => first_entry: AtomicU32,
        /// Not used; zero.
        12 => reserved: AtomicU32,
    }
}

/// Tasks that a [`MapRow`] keeps of those that only read its region.
pub const ROW_READERS: usize = 3;

shared_struct! {
    /// The accesses to one tensor, or to one cell of its grid: those to one region are here, all others in chains.
    /// Tasks are low halves of their numbers.
    #[derive(Default)]
    pub struct MapRow [size = 64, align = 64] {
        /// The tensor that the region is part of.
        0 => base: AtomicU64,
        /// First byte of the region, from the tensor's first one.
        8 => low: AtomicU64,
        /// One byte past the last one.
        16 => high: AtomicU64,
        /// Contiguous bytes, and in the high half the bytes from one run to the next; zero: one run.
        24 => rows: AtomicU64,
        /// The last task that wrote the region.
        32 => writer: AtomicU32,
        /// Tasks that have read it since.
        36 => readers: [AtomicU32; ROW_READERS],
        /// The newest entry of another access that writes, as its position.
        48 => write_chain: AtomicU32,
        /// The newest entry of another access that only reads.
        52 => read_chain: AtomicU32,
        /// Of a tensor: its first cell. Of a cell: the next one.
        56 => next: AtomicU32,
        /// Of a tensor: 1: it has a grid. Of a cell: the one before.
        60 => link: AtomicU32,
    }
}

shared_struct! {
    /// The grid that the accesses to some tensors are sorted by.
    #[derive(Default)]
    pub struct MapGrid [size = 64, align = 64] {
        /// Bytes from one row of the tensors to the next.
        0 => pitch: AtomicU64,
        /// Bytes of a row in a cell.
        8 => width: AtomicU64,
        /// Rows of a cell.
        16 => rows: AtomicU64,
        /// 2^64 divided by `pitch`, rounded up; zero: division is not done by it.
        24 => pitch_magic: AtomicU64,
        /// The same of `width`.
        32 => width_magic: AtomicU64,
        /// The same of `rows`.
        40 => rows_magic: AtomicU64,
        /// Of the first grid: 1: the cells have been emptied.
        48 => has_cells: AtomicU64,
        /// Not used; zero.
        56 => reserved: AtomicU64,
    }
}

shared_struct! {
    /// An access that is in no row. One with more than one stride is followed by an entry that holds the others.
    #[derive(Default)]
    pub struct MapEntry [size = 64, align = 64] {
        /// The tensor's address.
        0 => base: AtomicU64,
        /// First byte of the region, from the tensor's first one.
        8 => low: AtomicU64,
        /// One byte past the last one.
        16 => high: AtomicU64,
        /// Contiguous bytes.
        24 => run: AtomicU64,
        /// Bytes from one run to the next, in the innermost dimension.
        32 => stride: AtomicU64,
        /// How many runs that dimension has.
        40 => count: AtomicU32,
        /// Dimensions, this one included; zero: the region is one run.
        44 => rank: AtomicU32,
        /// The task, as the low half of its number.
        48 => task: AtomicU32,
        /// The next older entry, as its position.
        52 => next: AtomicU32,
        /// Not used; zero.
        56 => reserved: AtomicU64,
    }
}

/// How much of each resource a streaming run provides for, in addition to the argument words and the edges of
/// [`Capacities`](crate::arena::Capacities).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamCapacities {
    /// Task slots: a power of two; 0: the run does not stream.
    pub window: u32,
    /// Accesses to tensors that are not retired and are in no row: a power of two. A strided access takes up to two.
    pub map_entries: u32,
    /// Depths of scopes that have a heap: 1 to 8. The program itself is the first.
    pub heap_rings: u32,
    /// Bytes of each of them: a multiple of 64. Memory is used as it is touched.
    pub heap_bytes: u64,
}

impl StreamHeader {
    /// The capacities that the host has stated.
    #[must_use]
    pub fn capacities(&self) -> StreamCapacities {
        StreamCapacities {
            window: self.window.load(Ordering::Relaxed),
            map_entries: self.map_entries.load(Ordering::Relaxed),
            heap_rings: self.heap_rings.load(Ordering::Relaxed),
            heap_bytes: self.heap_bytes.load(Ordering::Relaxed),
        }
    }
}

impl StreamCapacities {
    /// No streaming.
    pub const OFF: Self = Self { window: 0, map_entries: 0, heap_rings: 0, heap_bytes: 0 };
    /// What a run gets that asks for nothing else. 4,096 slots: the smallest window of 1,024, 4,096, 16,384 and
    /// 65,536 with which no example waits for long.
    pub const STANDARD: Self =
        Self { window: 4096, map_entries: 16_384, heap_rings: 4, heap_bytes: 64 << 20 };

    /// What a run needs that does not stream, and some of whose tasks are transfers: a line for each slot.
    #[must_use]
    pub const fn for_transfers(slots: u32) -> Self {
        Self { window: slots, ..Self::OFF }
    }

    /// Bytes of the region; `None`: they do not fit 64 bits.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        if *self == Self::OFF { Some(0) } else { Some(StreamPlan::of(self)?.bytes) }
    }
}

/// Words that there are for recordings, for each slot of the window; a task with four tensors that are not the recording's own takes
/// about 32.
const RECORDING_WORDS_PER_SLOT: u64 = 32;
/// Slots for which there are words of recordings at least.
const MIN_RECORDING_SLOTS: u32 = 256;

/// Slots that a window has whose recordings take so many words together.
#[must_use]
pub const fn slots_for_recordings(words: u64) -> u64 {
    if words <= MIN_RECORDING_SLOTS as u64 * RECORDING_WORDS_PER_SLOT {
        1
    } else {
        words.div_ceil(RECORDING_WORDS_PER_SLOT)
    }
}

/// Words that there are for recordings in a run with this window.
#[must_use]
pub const fn recording_words(window: u32) -> u64 {
    let slots = if window > MIN_RECORDING_SLOTS { window } else { MIN_RECORDING_SLOTS };
    slots as u64 * RECORDING_WORDS_PER_SLOT
}

/// The parts of the region `stream`, in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPlan {
    /// [`SlotNote`]s.
    pub slots: u64,
    /// [`BlockLine`]s.
    pub blocks: u64,
    /// [`BLOCK_WORDS`] for each worker.
    pub parts: u64,
    /// [`MapRow`]s of tensors.
    pub tensors: u64,
    /// [`MapRow`]s of cells, as many as there are entries.
    pub cells: u64,
    /// [`MapGrid`]s, as many as there are rows of tensors.
    pub grids: u64,
    /// How many rows of tensors there are.
    pub rows: usize,
    /// [`MapEntry`]s.
    pub entries: u64,
    /// 32 bits for each row of a tensor, by which it is found.
    pub tensor_index: u64,
    /// 32 bits for each cell, by which it is found.
    pub cell_index: u64,
    /// Words of recordings, and how many.
    pub recordings: (u64, usize),
    /// The heap rings.
    pub heap: u64,
    /// The size of it all.
    pub bytes: u64,
}

impl StreamPlan {
    /// The plan for these capacities; `None`: their sum does not fit 64 bits.
    #[must_use]
    pub fn of(capacities: &StreamCapacities) -> Option<Self> {
        let slots = size_of::<StreamHeader>() as u64;
        let notes = u64::from(capacities.window) * size_of::<SlotNote>() as u64;
        let blocks = slots + notes.next_multiple_of(64);
        let parts = blocks + u64::from(capacities.window) * size_of::<BlockLine>() as u64;
        let tensors = parts + 8 * (BLOCK_WORDS * MAX_WORKERS) as u64;
        let rows = (capacities.map_entries / 4).max(4);
        let cells = tensors + u64::from(rows) * size_of::<MapRow>() as u64;
        let grids = cells + u64::from(capacities.map_entries) * size_of::<MapRow>() as u64;
        let entries = grids + u64::from(rows) * size_of::<MapGrid>() as u64;
        let entries = entries.next_multiple_of(64);
        let tensor_index =
            entries + u64::from(capacities.map_entries) * size_of::<MapEntry>() as u64;
        let index_bytes = |count: u32| (4 * u64::from(count)).next_multiple_of(64);
        let cell_index = tensor_index + index_bytes(rows);
        let recordings = cell_index + index_bytes(capacities.map_entries);
        let words = recording_words(capacities.window);
        let heap = recordings + words * size_of::<u64>() as u64;
        let recordings = (recordings, usize::try_from(words).ok()?);
        let heaps = u64::from(capacities.heap_rings).checked_mul(capacities.heap_bytes)?;
        let bytes = heap.checked_add(heaps)?;
        let rows = usize::try_from(rows).ok()?;
        Some(Self {
            slots,
            blocks,
            parts,
            tensors,
            cells,
            grids,
            rows,
            entries,
            tensor_index,
            cell_index,
            recordings,
            heap,
            bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{StreamCapacities, StreamPlan};

    #[test]
    fn a_plan_is_in_order_and_aligned() {
        let plan = StreamPlan::of(&StreamCapacities::STANDARD).unwrap();
        let starts = [
            plan.slots,
            plan.blocks,
            plan.parts,
            plan.tensors,
            plan.cells,
            plan.grids,
            plan.entries,
            plan.tensor_index,
            plan.cell_index,
            plan.recordings.0,
            plan.heap,
            plan.bytes,
        ];
        assert!(starts.windows(2).all(|pair| pair[0] < pair[1] && pair[0].is_multiple_of(64)));
        assert_eq!(plan.bytes - plan.heap, 256 << 20);
        assert_eq!(StreamCapacities::OFF.bytes(), Some(0));
        let huge = StreamCapacities { heap_bytes: u64::MAX, ..StreamCapacities::STANDARD };
        assert_eq!(huge.bytes(), None);
    }
}
