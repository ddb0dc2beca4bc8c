//! Calls of kernels, as their cores keep them: what is known of a run that fails. Others have a timeline.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::counters::PipeCycles;

/// A call of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelSpan {
    /// The task's id of ours; `TaskEntry` has the field's.
    pub(crate) own: u64,
    /// The task's id, as the field counts; the same word as ours until the run is over.
    pub(crate) task: u64,
    /// Which of the task's kernels: AIC, AIV 0, AIV 1.
    pub(crate) slot: u8,
    /// Which core of the block's cluster called it, counted as `slot`: a single vector kernel runs on either vector core.
    pub(crate) core: u8,
    /// The number of the block.
    pub(crate) block: u32,
    /// How long its pipes were busy; `None`: the kernel reported no instruction.
    pub(crate) pipes: Option<PipeCycles>,
    /// The kernel's func id; negative: not known.
    pub(crate) func_id: i32,
    /// The OS thread that runs the core.
    pub(crate) thread: u32,
    /// Nanoseconds since the run began.
    pub(crate) begin: u64,
    /// As `begin`.
    pub(crate) end: u64,
}

thread_local! {
    static THREAD: Cell<u32> = const { Cell::new(0) };
}

/// The number of this thread, the same for as long as the thread lives.
pub(crate) fn this_thread() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = THREAD.get();
    if number != 0 {
        return number;
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    THREAD.set(number);
    number
}
