//! The memory of the streaming runtime (`tensormap_and_ringbuffer`): what its builder keeps of slots, tensors and
//! rings, and the board on which tasks wait that need several cores.

mod board;
mod memory;

pub use board::{
    ARRIVALS, ARRIVED, BLOCK_WORDS, BlockBoard, BlockLine, HAS_PREDICATE, LIST_COUNT,
    LISTS_A_LEVEL, ListEnds, MAX_LANES, NO_LIST, NO_TASK, SYNC_START, TRANSFERS,
};
pub use memory::{
    MAX_HEAP_RINGS, MapEntry, MapGrid, MapRow, RING_COUNT, ROW_READERS, RingKind, RingLine,
    SlotNote, StreamCapacities, StreamHeader, StreamPlan, recording_words, slots_for_recordings,
};
