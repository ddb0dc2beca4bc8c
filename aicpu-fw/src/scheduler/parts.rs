//! The parts of a block on their cores: staged with argument words of their own.
//!
//! Invariant: all parts of a block are staged in one step, and thus started by one commit.

use pto_abi::block::BlockContext;
use pto_abi::stream::MAX_LANES;
use pto_abi::sync::Ordering;
use pto_abi::task::Task;
use pto_abi::trace::{TraceKind, TracePoint};
use pto_abi::{Fault, GmAddr};

use super::clusters::ClusterCores;
use super::dispatcher::Dispatcher;
use crate::block_shapes::{BlockShapeMemory, Lanes};
use crate::machine::Machine;
use crate::platform::{Platform, Staged};

/// A block of a task, on its way to cores.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) slot: u32,
    pub(super) number: u32,
    pub(super) lanes: Lanes,
}

/// Stages all parts of a block on cores that are set apart for it.
pub(super) fn stage_block<P: Platform>(
    dispatcher: &mut Dispatcher<'_>,
    platform: &mut P,
    shapes: &BlockShapeMemory<'_>,
    lane_cores: ClusterCores,
    block: Block,
) -> Result<(), Fault> {
    dispatcher.look_at_clock(platform);
    for lane in (0..MAX_LANES).filter(|lane| block.lanes.has(*lane)) {
        stage_part(dispatcher, platform, shapes, lane_cores[lane].into(), lane, block)?;
    }
    Ok(())
}

/// Stages one part on a core that is set apart for it.
fn stage_part<P: Platform>(
    dispatcher: &mut Dispatcher<'_>,
    platform: &mut P,
    shapes: &BlockShapeMemory<'_>,
    core: usize,
    lane: usize,
    block: Block,
) -> Result<(), Fault> {
    let Block { slot, number, lanes } = block;
    let found = dispatcher.state().task(slot).zip(shapes.line(slot));
    let Some((task, line)) = found else {
        return dispatcher.expect_published(slot).map(drop);
    };
    let blocks = line.blocks.load(Ordering::Relaxed);
    if blocks == 1 && lanes.count() == 1 {
        // It is handled like a plain task from here on.
        return dispatcher.stage_on_set_apart(platform, core, slot);
    }
    if number == 0 && lane == first_lane(lanes) {
        dispatcher.mark_dispatched(slot)?;
    }
    let context = BlockContext { block: number, blocks, lane: u32::from(lane == 2) };
    let args = write_part(dispatcher, shapes, core, task, context);
    let kernel = GmAddr(line.kernels[lane % MAX_LANES].load(Ordering::Relaxed));
    let func_id = line.func_ids[lane % MAX_LANES].load(Ordering::Relaxed);
    if platform.machine().traces() {
        let (time_ns, kind) = (dispatcher.traced_ns(), TraceKind::PART);
        platform.machine().trace(TracePoint { time_ns, kind, task: slot, extra: context.part() });
    }
    dispatcher.stage_part(platform, core, Staged { task: slot, kernel, args }, func_id)
}

/// Writes the arguments of a part for the worker that runs it, which has no other part; where they are.
fn write_part(
    dispatcher: &Dispatcher<'_>,
    shapes: &BlockShapeMemory<'_>,
    core: usize,
    task: &Task,
    context: BlockContext,
) -> GmAddr {
    let first = task.payload.load(Ordering::Relaxed) as usize;
    let count = usize::from(task.arg_count.load(Ordering::Relaxed));
    let args = dispatcher.state().payloads.get(first..).unwrap_or(&[]);
    let (words, address) = shapes.part_words(dispatcher.cores().worker(core));
    for (to, from) in words.iter().zip(args).take(count) {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    if let Some(word) = words.get(count) {
        word.store(context.word(), Ordering::Relaxed);
    }
    address
}

fn first_lane(lanes: Lanes) -> usize {
    (0..MAX_LANES).find(|lane| lanes.has(*lane)).unwrap_or(0)
}
