//! The memory of a ready queue: its two ends, each in a line of its own, and its slots.
//!
//! A slot packs a stamp and a task's slot into one word. Policy is in `pto_aicpu_fw::ready_queue`.

use crate::shared_struct::shared_struct;
use crate::sync::{AtomicU64, Ordering};

shared_struct! {
    /// Head and tail of one queue. Positions only grow; they go on from run to run.
    #[derive(Default)]
    pub struct QueueEnds [size = 128, align = 64] {
        /// Next position to pop.
        0 => head: AtomicU64,
        /// Keeps the ends in lines of their own.
        8 => head_line: [AtomicU64; 7],
        /// Next position to push.
        64 => tail: AtomicU64,
        /// Keeps the ends in lines of their own.
        72 => tail_line: [AtomicU64; 7],
    }
}

impl QueueEnds {
    /// Drops what an earlier run left. Only while no other agent uses the queue.
    pub fn discard(&self) {
        self.head.store(self.tail.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Slots of a queue that can hold `tasks` ids: a power of two, and whole lines (the next queue follows).
#[must_use]
pub const fn slots_for(tasks: u32) -> u32 {
    if tasks < SLOTS_A_LINE { SLOTS_A_LINE } else { tasks.next_power_of_two() }
}

const SLOTS_A_LINE: u32 = 8;
