//! The memory of the streaming builder: sizes and marks of its rings, its notes on each slot, the tensor map, the heap.
//!
//! ```text
//! region `stream`:  StreamHeader | SlotRecord x window | ShapeRecord x window | words of parts x workers |
//!                 MapBucket x buckets | MapCell x entries | MapEntry x entries | heap ring x rings
//! ```
//! The host writes the sizes, the builder alone writes the rest but what [`ShapeBoard`] says; the host reads the marks
//! when the run is over.

use crate::closed_set;
use crate::limits::MAX_WORKERS;
use crate::shared_struct;
use crate::stream::{BLOCK_WORDS, ShapeBoard, ShapeRecord};
use crate::sync::{AtomicU32, AtomicU64};

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
        /// Entries of the tensor map; a power of two. There is a bucket for every four.
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
        /// Where shaped tasks wait for cores.
        448 => board: ShapeBoard,
    }
}

shared_struct! {
    /// What the builder notes of a task slot: where its rings stood when the task was added.
    #[derive(Default)]
    pub struct SlotRecord [size = 32, align = 32] {
        /// Argument words given out before.
        0 => first_word: AtomicU64,
        /// Chunks given out before.
        8 => first_chunk: AtomicU64,
        /// Entries of the tensor map given out before.
        16 => first_entry: AtomicU64,
        /// The consumer that an edge from this task was added for last, as its number plus 1.
        24 => edge_stamp: AtomicU64,
    }
}

shared_struct! {
    /// Where the accesses of some tensors begin: positions of entries, newest first; and the grid that they are sorted by.
    #[derive(Default)]
    pub struct MapBucket [size = 64, align = 64] {
        /// The newest access that writes.
        0 => writers: AtomicU32,
        /// The newest access that only reads.
        4 => readers: AtomicU32,
        /// The newest write that is not within one cell of the grid.
        8 => wide_writers: AtomicU32,
        /// The newest read that is not within one cell of the grid.
        12 => wide_readers: AtomicU32,
        /// The newest write from before the grid was chosen.
        16 => old_writers: AtomicU32,
        /// The newest read from before the grid was chosen.
        20 => old_readers: AtomicU32,
        /// Bytes from one row of the tensors to the next; zero: there is no grid.
        24 => pitch: AtomicU64,
        /// Bytes of a row in a cell.
        32 => width: AtomicU64,
        /// Rows of a cell.
        40 => rows: AtomicU64,
        /// Entries given out when the grid was chosen.
        48 => chosen: AtomicU64,
        /// Not used; zero.
        56 => reserved: AtomicU64,
    }
}

shared_struct! {
    /// Where the accesses in some cells of grids begin.
    #[derive(Default)]
    pub struct MapCell [size = 8, align = 8] {
        /// The newest access that writes.
        0 => writers: AtomicU32,
        /// The newest access that only reads.
        4 => readers: AtomicU32,
    }
}

shared_struct! {
    /// An access. One with more than one stride is followed by an entry that holds the others.
    #[derive(Default)]
    pub struct MapEntry [size = 64, align = 64] {
        /// The tensor's address.
        0 => base: AtomicU64,
        /// First byte of the region, from the tensor's first one.
        8 => low: AtomicU64,
        /// The byte behind the last one; zero: the access is hidden.
        16 => high: AtomicU64,
        /// Number of the task.
        24 => task: AtomicU64,
        /// The next older entry of the bucket, as its position.
        32 => next: AtomicU32,
        /// The next older entry of the cell, or of those that are in none.
        36 => next_in_cell: AtomicU32,
        /// Bytes that stand together.
        40 => run: AtomicU64,
        /// Bytes from one run to the next, in the innermost dimension.
        48 => stride: AtomicU64,
        /// How many runs that dimension has.
        56 => count: AtomicU32,
        /// Dimensions, this one included; zero: the region is one run.
        60 => rank: AtomicU32,
    }
}

/// How much of each resource a streaming run provides for, beside the argument words and the edges of
/// [`Capacities`](crate::arena::Capacities).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamCapacities {
    /// Task slots: a power of two; 0: the run does not stream.
    pub window: u32,
    /// Accesses to tensors that are not retired: a power of two. A strided access takes up to two.
    pub map_entries: u32,
    /// Depths of scopes that have a heap: 1 to 8. The program itself is the first.
    pub heap_rings: u32,
    /// Bytes of each of them: a multiple of 64. Memory is used as it is touched.
    pub heap_bytes: u64,
}

impl StreamCapacities {
    /// No streaming.
    pub const OFF: Self = Self { window: 0, map_entries: 0, heap_rings: 0, heap_bytes: 0 };
    /// What a run gets that asks for nothing else. 4,096 slots: the smallest window of 1,024, 4,096, 16,384 and
    /// 65,536 with which no example waits for long.
    pub const STANDARD: Self =
        Self { window: 4096, map_entries: 16_384, heap_rings: 4, heap_bytes: 64 << 20 };

    /// Bytes of the region; `None`: they do not fit 64 bits.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        if *self == Self::OFF { Some(0) } else { Some(StreamPlan::of(self)?.bytes) }
    }
}

/// Where everything stands in the region `stream`, in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPlan {
    /// [`SlotRecord`]s.
    pub slots: u64,
    /// [`ShapeRecord`]s.
    pub shapes: u64,
    /// [`BLOCK_WORDS`] for each worker.
    pub parts: u64,
    /// [`MapBucket`]s, and how many.
    pub buckets: (u64, usize),
    /// [`MapCell`]s, as many as there are entries.
    pub cells: u64,
    /// [`MapEntry`]s.
    pub entries: u64,
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
        let records = u64::from(capacities.window) * size_of::<SlotRecord>() as u64;
        let shapes = slots + records.next_multiple_of(64);
        let parts = shapes + u64::from(capacities.window) * size_of::<ShapeRecord>() as u64;
        let buckets = parts + 8 * (BLOCK_WORDS * MAX_WORKERS) as u64;
        let bucket_count = (capacities.map_entries / 4).max(4);
        let cells = buckets + u64::from(bucket_count) * size_of::<MapBucket>() as u64;
        let entries = cells + u64::from(capacities.map_entries) * size_of::<MapCell>() as u64;
        let entries = entries.next_multiple_of(64);
        let heap = entries + u64::from(capacities.map_entries) * size_of::<MapEntry>() as u64;
        let heaps = u64::from(capacities.heap_rings).checked_mul(capacities.heap_bytes)?;
        let bytes = heap.checked_add(heaps)?;
        let buckets = (buckets, usize::try_from(bucket_count).ok()?);
        Some(Self { slots, shapes, parts, buckets, cells, entries, heap, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::{StreamCapacities, StreamPlan};

    #[test]
    fn a_plan_is_in_order_and_aligned() {
        let plan = StreamPlan::of(&StreamCapacities::STANDARD).unwrap();
        let starts =
            [plan.slots, plan.shapes, plan.parts, plan.buckets.0, plan.cells, plan.entries];
        let starts = [&starts[..], &[plan.heap, plan.bytes]].concat();
        assert!(starts.windows(2).all(|pair| pair[0] < pair[1] && pair[0].is_multiple_of(64)));
        assert_eq!(plan.bytes - plan.heap, 256 << 20);
        assert_eq!(StreamCapacities::OFF.bytes(), Some(0));
        let huge = StreamCapacities { heap_bytes: u64::MAX, ..StreamCapacities::STANDARD };
        assert_eq!(huge.bytes(), None);
    }
}
