//! The memory of the streaming runtime (`tensormap_and_ringbuffer`): what its builder keeps of slots, tensors and
//! rings, and the board on which tasks wait that need several cores.

mod board;
mod memory;

pub use board::{
    ARRIVALS, BLOCK_WORDS, HAS_PREDICATE, LIST_COUNT, LISTS_A_LEVEL, ListEnds, MAX_LANES, NO_LIST,
    NO_TASK, SYNC_START, ShapeBoard, ShapeRecord,
};
pub use memory::{
    MAX_HEAP_RINGS, MapEntry, MapGrid, MapRecord, RECORD_READERS, RING_COUNT, RingKind, RingLine,
    SlotRecord, StreamCapacities, StreamHeader, StreamPlan, record_words, slots_for_records,
};
