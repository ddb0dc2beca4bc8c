//! The memory of tasks with a block shape: a line for each slot of the window, the board on which they wait, and the argument words
//! of their parts.
//!
//! ```text
//! board: waiting | gathering | list of level 0: cube, vector, cluster, sync | .. | level 3 | arrivals | transfers | arrived
//!        list: head -> line.next -> .. -> tail          (under the board's lock)
//! ```
//! The builder writes a line before it publishes the task; then its `next`, `next_block` and the lists belong to who
//! holds the lock, `parts_left` to the schedulers whose cores finish. Policy is in `pto_aicpu_fw::block_shapes`.

use crate::kinds::CoreKind;
use crate::limits::{MAX_ARGS, PRIORITY_LEVELS};
use crate::shared_struct::shared_struct;
use crate::sync::{AtomicU8, AtomicU32, AtomicU64, Ordering, TaskLock};

/// Parts that a block has at most: a cube core and two vector cores.
pub const MAX_LANES: usize = 3;
/// Lists of each priority.
pub const LISTS_A_LEVEL: u32 = 4;
/// Tasks with a predicate that no scheduler has read yet.
pub const ARRIVALS: u32 = LISTS_A_LEVEL * PRIORITY_LEVELS;
/// Transfers that are ready, and that the transfer engine has not taken yet.
pub const TRANSFERS: u32 = ARRIVALS + 1;
/// Transfers that are over, and that no scheduler has completed yet.
pub const ARRIVED: u32 = TRANSFERS + 1;
/// Lists of the board.
pub const LIST_COUNT: u32 = ARRIVED + 1;
/// No list: the task goes to the ready queue of its kind.
pub const NO_LIST: u32 = u32::MAX;
/// No task.
pub const NO_TASK: u32 = u32::MAX;
/// Words of the arguments of a part, one after the other for each worker: with the block context, in whole lines.
pub const BLOCK_WORDS: usize = (MAX_ARGS + 1).next_multiple_of(8);

/// A bit in `BlockLine::flags`: all blocks start at once.
pub const SYNC_START: u32 = 1 << 8;
/// A bit in `BlockLine::flags`: the task has a predicate.
pub const HAS_PREDICATE: u32 = 1 << 9;

shared_struct! {
    /// What a task is beyond one kernel on one core. One for each slot of the window.
    #[derive(Default)]
    pub struct BlockLine [size = 128, align = 64] {
        /// GM addresses of the kernels: of the cube core, of the first and of the second vector core; zero: none.
        0 => kernels: [AtomicU64; MAX_LANES],
        /// Their func ids.
        24 => func_ids: [AtomicU32; MAX_LANES],
        /// Which lanes have a kernel (bits 2..0), [`SYNC_START`], [`HAS_PREDICATE`].
        36 => flags: AtomicU32,
        /// Blocks.
        40 => blocks: AtomicU32,
        /// The first block that no scheduler has taken.
        44 => next_block: AtomicU32,
        /// Parts that have not finished.
        48 => parts_left: AtomicU32,
        /// The next task of the list.
        52 => next: AtomicU32,
        /// The list that it waits on, or [`NO_LIST`].
        56 => list: AtomicU32,
        /// The predicate: a `Comparison`, and an `ElementType` from bit 8 on.
        60 => test: AtomicU32,
        /// The predicate: GM address of the element.
        64 => address: AtomicU64,
        /// The predicate: what the element is compared with.
        72 => value: AtomicU64,
        /// While it waits: how many tasks had been posted before it.
        80 => posted: AtomicU64,
        /// While it waits: how many plain tasks, by kind, had been pushed to the ready queues before it was posted.
        88 => plain_before: [AtomicU64; CoreKind::COUNT],
        /// Not used; zero.
        104 => reserved: [AtomicU64; 3],
    }
}

shared_struct! {
    /// The ends of a list of tasks, as slots.
    #[derive(Default)]
    pub struct ListEnds [size = 8, align = 4] {
        /// The oldest, or [`NO_TASK`].
        0 => head: AtomicU32,
        /// The youngest, or [`NO_TASK`].
        4 => tail: AtomicU32,
    }
}

shared_struct! {
    /// Where tasks with a block shape wait for cores.
    #[derive(Default)]
    pub struct BlockBoard [size = 256, align = 64] {
        /// Which lists have a task, by bits; of a list of `sync` tasks also while one of its level gathers cores; the next bit: that one has some.
        0 => waiting: AtomicU32,
        /// Guards everything else.
        4 => lock: TaskLock,
        /// Not used; zero.
        5 => reserved: [AtomicU8; 3],
        /// The task that gathers cores, or [`NO_TASK`].
        8 => gathering: AtomicU32,
        /// Tasks that wait.
        12 => count: AtomicU32,
        /// How many tasks have been posted in this run.
        16 => posted: AtomicU64,
        /// Keeps the lists in lines of their own.
        24 => rest_of_line: [AtomicU64; 5],
        /// The lists: by priority, in each `cube`, `vector`, `cluster`, `sync`; and [`ARRIVALS`], [`TRANSFERS`], [`ARRIVED`].
        64 => lists: [ListEnds; LIST_COUNT as usize],
        /// Not used; zero.
        216 => reserved_words: [AtomicU64; 5],
    }
}

impl BlockLine {
    /// Makes it the line of a transfer. Only while no other agent uses it.
    pub fn set_transfer(&self) {
        self.flags.store(0, Ordering::Relaxed);
        self.list.store(TRANSFERS, Ordering::Relaxed);
    }
}

impl BlockBoard {
    /// Empties it. Only while no other agent uses it.
    pub fn reset(&self) {
        self.waiting.store(0, Ordering::Relaxed);
        self.count.store(0, Ordering::Relaxed);
        self.gathering.store(NO_TASK, Ordering::Relaxed);
        self.posted.store(0, Ordering::Relaxed);
        for list in &self.lists {
            list.head.store(NO_TASK, Ordering::Relaxed);
            list.tail.store(NO_TASK, Ordering::Relaxed);
        }
    }
}
