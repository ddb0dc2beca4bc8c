//! The parts of shaped tasks on their cores: staged with words of their own, counted when they finish.

use pto_abi::kinds::TaskState;
use pto_abi::sync::{Ordering, Sharing};
use pto_abi::task::{SHAPED, Task};
use pto_abi::trace::{TraceKind, TracePoint};
use pto_abi::{CoreKind, Fault, GmAddr};
use pto_abi::{block::BlockContext, stream::MAX_LANES};

use super::Scheduler;
use super::shapes::ClusterCores;
use crate::blame::Blame;
use crate::cores::apart::PART;
use crate::fanout::{ConsumerWalk, FanoutPolicy};
use crate::mutant::{self, Mutant};
use crate::platform::{Platform, Staged};
use crate::shapes::{Lanes, ShapeMemory, lanes_of};

/// One part of one block.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) slot: u32,
    pub(super) lane: usize,
    pub(super) block: u32,
}

impl<P: Platform, F: FanoutPolicy> Scheduler<'_, P, F> {
    /// Stages all parts of a block on cores that are set apart for it.
    pub(super) fn stage_block(
        &mut self,
        platform: &mut P,
        shapes: &ShapeMemory<'_>,
        place: ClusterCores,
        (slot, block, lanes): (u32, u32, Lanes),
    ) -> Result<(), Fault> {
        for lane in (0..MAX_LANES).filter(|lane| lanes.has(*lane)) {
            let part = Part { slot, lane, block };
            self.stage_part(platform, shapes, place[lane].into(), part)?;
        }
        Ok(())
    }

    /// Stages one part on a core that is set apart for it.
    pub(super) fn stage_part(
        &mut self,
        platform: &mut P,
        shapes: &ShapeMemory<'_>,
        core: usize,
        part: Part,
    ) -> Result<(), Fault> {
        let Part { slot, lane, block } = part;
        let found = self.state.task(slot).zip(shapes.record(slot));
        let Some((task, record)) = found else { return Err(self.wrong_task(slot, 0)) };
        let (lanes, blocks) = (lanes_of(record), record.blocks.load(Ordering::Relaxed));
        if blocks == 1 && lanes.count() == 1 {
            // Nothing tells it from a plain task any more.
            self.cores.assign(core, slot);
            return self.stage_first(platform, core, slot);
        }
        if block == 0 && lane == first_lane(lanes) {
            self.expect_published(slot, task)?;
            task.state.store(TaskState::DISPATCHED.get(), Ordering::Relaxed);
        }
        let context = BlockContext { block, blocks, lane: u32::from(lane == 2) };
        let args = self.write_part(shapes, core, task, context);
        let func_id = record.func_ids[lane % MAX_LANES].load(Ordering::Relaxed);
        self.cores.assign(core, PART | slot);
        if P::POLLS_COST {
            let func_id = u16::try_from(func_id).unwrap_or(u16::MAX);
            self.pace.start(core, func_id, self.now_ns);
        }
        let kernel = GmAddr(record.kernels[lane % MAX_LANES].load(Ordering::Relaxed));
        if P::TRACES {
            let (time_ns, kind) = (platform.now_ns(), TraceKind::PART);
            platform.trace(TracePoint { time_ns, kind, task: slot, extra: context.part() });
        }
        self.stage_words(platform, core, Staged { task: slot, kernel, args })
    }

    /// Writes the arguments of a part for the worker that runs it, which has no other part; where they are.
    fn write_part(
        &self,
        shapes: &ShapeMemory<'_>,
        core: usize,
        task: &Task,
        context: BlockContext,
    ) -> GmAddr {
        let first = task.payload.load(Ordering::Relaxed) as usize;
        let count = usize::from(task.arg_count.load(Ordering::Relaxed));
        let args = self.state.payloads.get(first..).unwrap_or(&[]);
        let (words, address) = shapes.part_words(self.cores.worker(core));
        for (to, from) in words.iter().zip(args).take(count) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        if let Some(word) = words.get(count) {
            word.store(context.word(), Ordering::Relaxed);
        }
        address
    }

    /// A core has finished a part. With the last one the task is complete.
    #[cold]
    #[inline(never)]
    pub(super) fn part_finished(
        &mut self,
        platform: &mut P,
        core: usize,
        running: u32,
        budget: &mut u32,
    ) {
        let slot = running & !PART;
        let record = self.state.shapes.and_then(|shapes| shapes.record(slot));
        let Some(record) = record.filter(|_| running & PART != 0) else { return };
        if P::TRACES {
            let (time_ns, kind) = (platform.now_ns(), TraceKind::COLLECTED);
            let extra = self.cores.worker(core);
            platform.trace(TracePoint { time_ns, kind, task: slot, extra });
        }
        let one = if mutant::is(Mutant::ForgetsAPart) { 2 } else { 1 };
        // AcqRel: Release passes on what this part wrote; Acquire, in the last decrement, pairs with the Release half of
        // the others.
        let left = P::Sharing::fetch_sub_u32(&record.parts_left, one, Ordering::AcqRel);
        if left == one || left == 1 {
            self.parts_are_done(platform, core, slot, budget);
        }
    }

    /// As `complete`, which has one caller on the hot path.
    fn parts_are_done(&mut self, platform: &mut P, core: usize, slot: u32, budget: &mut u32) {
        let Some(task) = self.state.task(slot) else { return };
        if P::TRACES {
            self.traced_ns = platform.now_ns();
            let (time_ns, kind) = (self.traced_ns, TraceKind::COMPLETED);
            let extra = self.cores.worker(core);
            platform.trace(TracePoint { time_ns, kind, task: slot, extra });
        }
        let lost = u32::from(mutant::is(Mutant::DropsAnEdge));
        let count = F::close::<P::Sharing>(task).saturating_sub(lost);
        self.go_on(platform, slot, ConsumerWalk::new(count), budget);
    }

    /// Blames the part of a task that a core was given.
    #[cold]
    pub(super) fn blame_part(&self, blame: Blame, core: usize, slot: u32) -> Blame {
        let found = self
            .state
            .shapes
            .and_then(|shapes| Some((shapes, self.state.task(slot)?, shapes.record(slot)?)));
        let Some((shapes, task, record)) = found else { return blame };
        let context = shapes.context(self.cores.worker(core), task);
        let lane = match self.cores.kind(core) {
            CoreKind::AIC => 0,
            _ => 1 + BlockContext::of(context).lane as usize,
        };
        let func_id = record.func_ids[lane % MAX_LANES].load(Ordering::Relaxed);
        blame.func(func_id).part(context)
    }
}

fn first_lane(lanes: Lanes) -> usize {
    (0..MAX_LANES).find(|lane| lanes.has(*lane)).unwrap_or(0)
}

/// Whether a task has a shape, by the word that says its kind.
#[inline]
pub(super) const fn is_shaped(kind: u8) -> bool {
    kind & SHAPED != 0
}
