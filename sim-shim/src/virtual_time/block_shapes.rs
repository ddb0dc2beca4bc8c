//! What the machine notes of shaped tasks, for [`super::block_ledger`].

use pto_abi::CoreKind;
use pto_abi::sync::Ordering::Relaxed;
use pto_abi::trace::TraceKind;
use pto_aicpu_fw::block_shapes::{List, has_predicate};

use super::block_ledger::{Assigned, First, PartStage, Release, Shaped, is_shaped};
use super::core_machine::part_of;
use super::device::VirtualDevice;
use super::ledger::{Invariant, Violation};
use super::trace::EventKind;

impl VirtualDevice {
    /// An instance begins a step.
    #[inline]
    pub(super) fn begins(&mut self, instance: usize) {
        if self.launch.state.shapes.is_some() {
            self.block_ledger.begins(instance);
        }
    }

    /// A task with a shape is ready.
    pub(super) fn book_ready(&mut self, slot: u32, now_ns: u64) {
        let Some(shapes) = &self.launch.state.shapes else { return };
        let Some((shaped, line)) = Shaped::of(shapes, slot).zip(shapes.line(slot)) else {
            return;
        };
        if List::of(line) == Some(List::TRANSFERS) {
            // It needs no core.
            return;
        }
        let Some(task) = self.launch.state.task(slot) else { return };
        self.block_ledger.ready(slot, &shaped, (now_ns, Release::of(task)));
        // One that will not run needs no core, whether a scheduler knows that yet or not.
        if !has_predicate(line) || shapes.predicate_holds(line) {
            self.account.shaped_is_ready(now_ns, shaped.waiting(slot));
        }
    }

    /// The builder has released a task.
    pub(super) fn book_release(&mut self) {
        let state = self.launch.state;
        let is_released =
            |slot| state.task(slot).is_some_and(|task| Release::of(task) == Release::Made);
        self.block_ledger.releases(is_released);
    }

    /// A worker is given a task, or a part of it.
    pub(super) fn book_dispatch(
        &mut self,
        slot: u32,
        worker: usize,
        instance: usize,
        now_ns: u64,
    ) -> Assigned {
        let state = self.launch.state;
        let (Some(shapes), Some(task)) = (&state.shapes, state.task(slot)) else {
            self.ledger.dispatch(slot, now_ns);
            return Assigned::Plain;
        };
        let number = u32::try_from(worker).unwrap_or(u32::MAX);
        let kind = self.launch.workers.kind(number).unwrap_or(CoreKind::AIV);
        let shaped = Shaped::of(shapes, slot).filter(|_| is_shaped(task));
        let mut found = Vec::new();
        found.extend(self.block_ledger.takes_core(slot, shaped.as_ref(), kind, instance));
        if shaped.is_some() {
            found.extend(wrong_predicate(shapes, slot, true));
        }
        let part = part_of(&self.launch, slot, (number, kind));
        let first = part.map_or(First::Task, |(shaped, part)| {
            let cluster = self.launch.workers.cluster(number).unwrap_or(u32::MAX);
            let (first, wrong) =
                self.block_ledger.dispatched(slot, &shaped, part, (worker, cluster));
            found.extend(wrong);
            first
        });
        if first == First::Task {
            self.ledger.dispatch(slot, now_ns);
        }
        for (rule, what) in found {
            self.violate(rule, slot, worker, what);
        }
        match (shaped, first) {
            (None, _) => Assigned::Plain,
            (Some(_), First::Nothing) => Assigned::Part,
            (Some(_), First::Task | First::Block) => Assigned::Block,
        }
    }

    /// In a run that is traced: the part of a task that a worker has; `None`: the task has one only.
    #[inline]
    pub(super) fn traced_part(&self, slot: u32, worker: u32) -> Option<u32> {
        if !self.tracer.is_on() {
            return None;
        }
        let kind = self.launch.workers.kind(worker)?;
        part_of(&self.launch, slot, (worker, kind)).map(|(_, part)| part.traced(kind))
    }

    /// The kernels of a task with a shape, which was added.
    pub(super) fn trace_lanes(&self, slot: u32, now_ns: u64) {
        let (state, tracer) = (&self.launch.state, &self.tracer);
        let task = state.task(slot).filter(|task| tracer.is_on() && is_shaped(task));
        let shapes = task.and(state.shapes.as_ref());
        let Some(line) = shapes.and_then(|shapes| shapes.line(slot)) else { return };
        let lanes = line.flags.load(Relaxed);
        for (lane, func_id) in (0_u32..).zip(&line.func_ids) {
            if lanes >> lane & 1 == 1 {
                let func_and_lane = func_id.load(Relaxed) | lane << 16;
                tracer.instance(0, now_ns, TraceKind::LANE, (slot, func_and_lane));
            }
        }
    }

    /// A scheduler has seen that a worker has finished; whether the task is complete by that.
    pub(super) fn book_collected(&mut self, slot: u32, worker: usize, now_ns: u64) -> bool {
        if self.launch.state.shapes.is_none() {
            return true;
        }
        self.block_ledger.frees(worker);
        let number = u32::try_from(worker).unwrap_or(u32::MAX);
        let kind = self.launch.workers.kind(number).unwrap_or(CoreKind::AIV);
        let Some((shaped, part)) = part_of(&self.launch, slot, (number, kind)) else { return true };
        let (_, is_last, found) =
            self.block_ledger.advanced(slot, &shaped, part, PartStage::Collected);
        if let Some((rule, what)) = found {
            self.ledger.violate(Violation {
                rule,
                time_ns: now_ns,
                task: slot,
                other: number,
                what,
            });
        }
        is_last
    }

    /// The predicate of a task is false, and its consumers are about to be released; when that is done.
    pub(super) fn skipped(&mut self, slot: u32, instance: usize, mut now_ns: u64) -> u64 {
        let state = self.launch.state;
        let Some(task) = state.task(slot) else { return now_ns };
        let profile = self.options.profile;
        // It reads the task's line, and that of the element.
        let cost_ns = self.chooser.delay(profile.complete_ns) + 2 * profile.line_miss_ns.low;
        now_ns = now_ns.max(self.ledger.ready_ns(slot)) + cost_ns;
        self.ledger.skip(slot, now_ns);
        self.account.shaped_is_skipped(now_ns, slot);
        let found = state.shapes.as_ref().and_then(|shapes| wrong_predicate(shapes, slot, false));
        if let Some((rule, what)) = found {
            self.violate(rule, slot, instance, what);
        }
        self.trace.add(now_ns, EventKind::Skipped, instance, slot);
        self.tracer.instance(instance, now_ns, TraceKind::SKIPPED, (slot, 0));
        self.release_consumers(slot, task, instance, now_ns)
    }

    /// A transfer is over, and its consumers are about to be released; when that is done.
    pub(super) fn transferred(&mut self, slot: u32, instance: usize, mut now_ns: u64) -> u64 {
        let Some(task) = self.launch.state.task(slot) else { return now_ns };
        let profile = self.options.profile;
        // It reads the task's line, which the engine has written.
        now_ns += self.chooser.delay(profile.complete_ns) + profile.line_miss_ns.low;
        self.ledger.skip(slot, now_ns);
        self.trace.add(now_ns, EventKind::Skipped, instance, slot);
        self.tracer.instance(instance, now_ns, TraceKind::SKIPPED, (slot, 0));
        self.release_consumers(slot, task, instance, now_ns)
    }

    /// After a run without a fault: nothing of a shaped task is left.
    pub(super) fn check_parts_at_end(&mut self) {
        if !self.block_ledger.is_over() {
            let what = "a part is left after the run";
            self.violate(Invariant::Termination, u32::MAX, usize::MAX, what);
        }
    }
}

/// What is wrong with running or skipping a task.
fn wrong_predicate(
    shapes: &pto_aicpu_fw::block_shapes::BlockShapeMemory<'_>,
    slot: u32,
    runs: bool,
) -> Option<super::block_ledger::Found> {
    let line = shapes.line(slot).filter(|line| has_predicate(line))?;
    match (runs, shapes.predicate_holds(line)) {
        (true, false) => Some((Invariant::Predicate, "runs, and its predicate is false")),
        (false, true) => Some((Invariant::Predicate, "is skipped, and its predicate is true")),
        _ => None,
    }
}
