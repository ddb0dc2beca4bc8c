//! Calls a kernel as it expects to be called: the words of a task become a frame, and the frame becomes 50 words of arguments.

use core::ptr::with_exposed_provenance;
use core::sync::atomic::Ordering;

use pto_abi::block::BlockContext;
use pto_native::foreign::field::{
    Conditions, GLOBAL, GlobalContext, LOCAL, LocalContext, RunState, TaskFrame,
};

use crate::cells;
use crate::core_registers::{TICK_NS, TIMEOUT, relax, ticks};
use crate::running::{RunningBlock, word_address};

/// A kernel.
type Entry = unsafe extern "C" fn(*mut i64);

/// Runs a kernel of a task.
///
/// # Safety
/// The engine calls it with the words of a task of the field, and `first` is the index of the kind's kernels in a frame.
pub(crate) unsafe fn run(args: *const u64, first: u8, kernel: Entry) {
    // SAFETY: a task of the field has its frame as the first word.
    let address = unsafe { args.read() };
    let frame: *const TaskFrame = with_exposed_provenance(word_address(address));
    // SAFETY: a frame lives until its run is over.
    let task: &'static TaskFrame = unsafe { &*frame };
    // SAFETY: the engine writes the block's word after the arguments.
    let word = unsafe { args.wrapping_add(usize::from(task.block_word)).read() };
    let block = BlockContext::of(word);
    let lane = if first == 0 { 0 } else { u8::try_from(block.lane).unwrap_or(0) };
    let is_there = |slot: u8| task.entries.get(usize::from(slot)).is_some_and(|entry| *entry != 0);
    // A single vector kernel runs on either core of a cluster.
    let slot = if is_there(first + lane) { first + lane } else { first };
    // SAFETY: what all tasks of a run share lives until the run is over.
    let state: &'static RunState = unsafe { &*task.shared.cast() };
    let mut conditions = Conditions::new();
    let local = LocalContext {
        block_idx: i32::try_from(block.block).unwrap_or(i32::MAX),
        block_num: i32::try_from(block.blocks).unwrap_or(i32::MAX),
        asynchronous: conditions.context(task.task),
    };
    let global = GlobalContext { sub_block_id: lane.into(), reserved: 0, dma_workspace: [0; 2] };
    // SAFETY: `frame` points to a frame, followed by its words.
    let mut words = unsafe { TaskFrame::words(frame) };
    words[LOCAL] = ((&raw const local).expose_provenance() as u64).cast_signed();
    words[GLOBAL] = ((&raw const global).expose_provenance() as u64).cast_signed();
    let own = RunningBlock { state, frame: task, block, slot };
    let before = RunningBlock::enter(&own);
    let begin = if task.timing_slot >= 0 { ticks() } else { 0 };
    // SAFETY: the program says that it is a kernel; the words are as kernels expect them.
    unsafe { kernel(words.as_mut_ptr()) };
    complete(&conditions, state);
    RunningBlock::leave(before);
    let times = usize::try_from(task.timing_slot).ok().and_then(|at| state.timing.get(at));
    if let Some([least, most]) = times {
        // The least of the beginnings: 0 is none, and wraps to the largest number.
        let begin = begin * TICK_NS + 1;
        let earlier = |held: u64| (held == 0 || begin < held).then_some(begin);
        let _none = least.fetch_update(Ordering::Relaxed, Ordering::Relaxed, earlier);
        most.fetch_max(ticks() * TICK_NS, Ordering::Relaxed);
    }
    cells::leave(&own);
}

/// Waits for what the kernel has registered for its completion.
fn complete(conditions: &Conditions, state: &RunState) {
    let mut since = None;
    // SAFETY: the kernel has returned; the program says that it keeps the rules of kernels.
    let completed = unsafe {
        conditions.wait(|_, look| {
            let since = *since.get_or_insert_with(ticks);
            if ticks().wrapping_sub(since) > TIMEOUT {
                return Err(Conditions::TIMEOUT);
            }
            relax(look);
            Ok(())
        })
    };
    if let Err(code) = completed {
        let _first = state.failed.compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
    }
}
