//! The part of the machine that a core's port uses, and what is noted there of what the core does.

use pto_abi::CoreKind;
use pto_abi::chain::{self, ChainKernel};
use pto_abi::sync::Ordering::Relaxed;
use pto_abi::task::Task;
use pto_abi::trace::TraceKind;
use pto_aicpu_fw::Launch;
use pto_graph::group::REDUCE;

use super::account::{Account, Change};
use super::block_ledger::{BlockLedger, BlockPart, PartStage, Shaped, is_shaped};
use super::chooser::Chooser;
use super::core::{ChainRun, Core};
use super::cost::{COST_ARGS, FastRegions};
use super::group::{GroupMember, Reduced};
use super::inject::Trouble;
use super::ledger::{Ledger, Violation};
use super::lines::{LineAccess, Lines};
use super::options::{LineModel, VirtualOptions};
use super::trace::{EventKind, EventTrace};
use super::tracer::Tracer;

/// A part that came to a stage.
#[derive(Clone, Copy)]
struct Advance {
    /// The part was the first one, or the task has only one part.
    is_first: bool,
    /// The part was the last one, or the task has only one part.
    is_last: bool,
}

impl Advance {
    const ONLY: Self = Self { is_first: true, is_last: true };
}

/// A task of several parts: what it is, and the part that a worker has.
pub(super) fn part_of(
    launch: &Launch<'_>,
    slot: u32,
    (worker, kind): (u32, CoreKind),
) -> Option<(Shaped, BlockPart)> {
    let (task, shapes) = (launch.state.task(slot)?, launch.state.shapes.as_ref()?);
    let shaped = Shaped::of(shapes, slot).filter(|_| is_shaped(task))?;
    let part = shaped.part(kind, shapes.context(worker, task));
    (shaped.total() > 1).then_some((shaped, part))
}

/// The first of these arguments; zero where there are fewer.
fn first_args(args: &[u64]) -> [u64; COST_ARGS] {
    let mut first = [0; COST_ARGS];
    first.iter_mut().zip(args).for_each(|(to, arg)| *to = *arg);
    first
}

/// The part of the device that a core's port uses.
pub(super) struct CoreMachine<'w> {
    pub(super) launch: &'w Launch<'static>,
    pub(super) options: &'w VirtualOptions,
    pub(super) chooser: &'w mut Chooser,
    pub(super) ledger: &'w mut Ledger,
    pub(super) trace: &'w mut EventTrace,
    pub(super) tracer: &'w Tracer,
    pub(super) account: &'w mut Account,
    pub(super) lines: &'w mut Lines,
    pub(super) block_ledger: &'w mut BlockLedger,
    pub(super) busy_ns: &'w mut [u64; CoreKind::COUNT],
    pub(super) tasks_run: &'w mut [u64; CoreKind::COUNT],
    pub(super) start_ns: u64,
    /// The membership of a device that is in a group.
    pub(super) member: Option<&'w GroupMember>,
    pub(super) fast: &'w FastRegions,
}

impl CoreMachine<'_> {
    pub(super) fn kernel_cost(&self, slot: u32, core: (u32, CoreKind)) -> u64 {
        let Some(task) = self.launch.state.task(slot) else { return 0 };
        let costs = self.options.costs;
        let args = if costs.needs_args() { self.args(task) } else { [0; COST_ARGS] };
        let func_id = self.func_of(task, slot, core);
        let cost_ns = costs.of_code((func_id, task.kernel.load(Relaxed)), slot, &args);
        cost_ns.saturating_sub(self.saved_ns(func_id, &args))
    }

    /// What a library kernel saves on tensors in fast regions.
    fn saved_ns(&self, func_id: u16, args: &[u64]) -> u64 {
        if !self.options.costs.needs_args() {
            return 0;
        }
        self.fast.saved_ns(func_id, args, self.options.profile)
    }

    fn args(&self, task: &Task) -> [u64; COST_ARGS] {
        let first = task.payload.load(Relaxed) as usize;
        let count = usize::from(task.arg_count.load(Relaxed)).min(COST_ARGS);
        let mut args = [0; COST_ARGS];
        let words = self.launch.state.payloads.get(first..).unwrap_or_default();
        for (arg, word) in args.iter_mut().zip(words).take(count) {
            *arg = word.load(Relaxed);
        }
        args
    }

    #[inline]
    pub(super) fn started(&mut self, now_ns: u64, core: (u32, CoreKind), slot: u32) {
        let (worker, _) = core;
        if self.advance_part(slot, core, PartStage::Started, now_ns).is_first {
            self.ledger.start(slot, now_ns);
        }
        self.trace.add(now_ns, EventKind::Started, worker as usize, slot);
        self.tracer.core(worker, now_ns, TraceKind::STARTED, (slot, 0));
    }

    /// The kernel has ended, at the core's own time.
    #[inline]
    pub(super) fn finished(
        &mut self,
        core: &Core,
        slot: u32,
        started_ns: u64,
        cost_ns: u64,
        trouble: Option<Trouble>,
    ) {
        let kind = core.kind.index();
        self.busy_ns[kind] += cost_ns;
        self.tasks_run[kind] += 1;
        let on = (core.worker, core.kind);
        let longest_ns = self.longest_part_ns(slot, on, cost_ns);
        if self.advance_part(slot, on, PartStage::Finished, core.now_ns).is_last {
            self.ledger.finish(slot, core.now_ns, longest_ns);
        }
        self.trace.add(core.now_ns, EventKind::Finished, core.worker as usize, slot);
        self.tracer.core(core.worker, core.now_ns, TraceKind::FINISHED, (slot, 0));
        if core.unstarted == 0 {
            self.account.add(core.now_ns, Change::CoreIdle(core.worker));
        }
        if let Some(member) = self.member.filter(|member| member.follows()) {
            self.follow_contributions(member, slot, on);
        }
        if self.options.lines == LineModel::Results {
            let during = (started_ns, core.now_ns);
            self.follow_lines(core.worker, slot, during, trouble);
        }
    }

    /// Whose values a kernel `reduce` has put together.
    #[cold]
    fn follow_contributions(&self, member: &GroupMember, slot: u32, core: (u32, CoreKind)) {
        let Some(task) = self.launch.state.task(slot) else { return };
        if task.func_id.load(Relaxed) == REDUCE.0 {
            let [a, parts, out, each, how, which, ..] = self.args(task);
            let block = part_of(self.launch, slot, core).map_or(0, |(_, part)| part.block());
            member.reduced(&Reduced { args: [a, parts, out, each, how, which], block });
        }
    }

    #[cold]
    fn follow_lines(
        &mut self,
        worker: u32,
        slot: u32,
        during: (u64, u64),
        trouble: Option<Trouble>,
    ) {
        let Some(task) = self.launch.state.task(slot) else { return };
        let called = (task.func_id.load(Relaxed), self.args(task));
        self.follow_call(worker, slot, during, trouble, called);
    }

    /// Follows the lines that a kernel with these first arguments accesses.
    fn follow_call(
        &mut self,
        worker: u32,
        slot: u32,
        during: (u64, u64),
        trouble: Option<Trouble>,
        (func_id, args): (u16, [u64; COST_ARGS]),
    ) {
        let access = LineAccess::of(&self.launch.arena, func_id, &args);
        let found = self.lines.task(worker, slot, during, &access, trouble);
        found.into_iter().for_each(|violation| self.ledger.violate(violation));
    }

    /// A core begins with a chain.
    pub(super) fn chain_started(&mut self, now_ns: u64, worker: u32, slot: u32) {
        self.ledger.start(slot, now_ns);
        self.trace.add(now_ns, EventKind::Started, worker as usize, slot);
    }

    /// A core begins with a kernel of a chain.
    pub(super) fn link_started(
        &mut self,
        now_ns: u64,
        worker: u32,
        slot: u32,
        kernel: &ChainKernel,
    ) {
        let extra = chain::event_extra(kernel);
        self.tracer.core(worker, now_ns, TraceKind::STARTED, (slot, extra));
    }

    /// What a kernel of a chain costs.
    pub(super) fn link_cost(&self, kernel: &ChainKernel, slot: u32, args: &[u64]) -> u64 {
        // Drawn costs differ from kernel to kernel, as they do from task to task.
        let draw = slot.wrapping_add(kernel.number << 20);
        let first = first_args(args);
        let cost_ns = self.options.costs.of_code((kernel.func_id, kernel.kernel), draw, &first);
        cost_ns.saturating_sub(self.saved_ns(kernel.func_id, &first))
    }

    /// A kernel of a chain has ended, at the core's own time.
    pub(super) fn link_finished(
        &mut self,
        core: &Core,
        (slot, kernel): (u32, &ChainKernel),
        (started_ns, cost_ns): (u64, u64),
        (args, trouble): (&[u64], Option<Trouble>),
    ) {
        self.busy_ns[core.kind.index()] += cost_ns;
        self.tasks_run[core.kind.index()] += 1;
        let extra = chain::event_extra(kernel);
        self.tracer.core(core.worker, core.now_ns, TraceKind::FINISHED, (slot, extra));
        if self.options.lines == LineModel::Results {
            let (during, called) = ((started_ns, core.now_ns), (kernel.func_id, first_args(args)));
            self.follow_call(core.worker, slot, during, trouble, called);
        }
    }

    /// The last kernel of a chain has ended: each of them has run.
    pub(super) fn chain_finished(&mut self, core: &Core, run: &ChainRun) {
        self.ledger.chain_has_run(run.task, run.kernels, core.now_ns);
        self.ledger.finish(run.task, core.now_ns, run.busy_ns);
        self.trace.add(core.now_ns, EventKind::Finished, core.worker as usize, run.task);
        if core.unstarted == 0 {
            self.account.add(core.now_ns, Change::CoreIdle(core.worker));
        }
    }

    /// From one kernel of a chain to the next.
    pub(super) fn link_delay(&mut self) -> u64 {
        self.chooser.delay(self.options.profile.link_ns)
    }

    /// Writing results back and reporting.
    #[inline]
    pub(super) fn report_delay(&mut self) -> u64 {
        let profile = self.options.profile;
        self.chooser.delay(profile.flush_ns) + self.chooser.delay(profile.set_cond_ns)
    }

    #[inline]
    pub(super) fn visible_delay(&mut self) -> u64 {
        self.chooser.delay(self.options.profile.finish_visible_ns)
    }

    pub(super) fn answered(&mut self, now_ns: u64, worker: u32, epoch: u32) {
        self.trace.add(now_ns, EventKind::Answered, worker as usize, epoch);
    }

    pub(super) fn left(&mut self, now_ns: u64, worker: u32) {
        self.trace.add(now_ns, EventKind::Left, worker as usize, 0);
    }

    pub(super) fn injected(&mut self, now_ns: u64, worker: u32) {
        self.trace.add(now_ns, EventKind::Injected, worker as usize, 0);
    }
}

impl CoreMachine<'_> {
    /// The part of `slot` that a core has comes to a stage.
    #[inline]
    fn advance_part(
        &mut self,
        slot: u32,
        core: (u32, CoreKind),
        stage: PartStage,
        time_ns: u64,
    ) -> Advance {
        let Some((shaped, part)) = part_of(self.launch, slot, core) else { return Advance::ONLY };
        let (is_first, is_last, found) = self.block_ledger.advanced(slot, &shaped, part, stage);
        if let Some((rule, what)) = found {
            self.ledger.violate(Violation { rule, time_ns, task: slot, other: core.0, what });
        }
        Advance { is_first, is_last }
    }

    /// What a task adds to a path: its longest part.
    fn longest_part_ns(&mut self, slot: u32, core: (u32, CoreKind), cost_ns: u64) -> u64 {
        match part_of(self.launch, slot, core) {
            Some(_) => self.block_ledger.longest_ns(slot, cost_ns),
            None => cost_ns,
        }
    }

    /// The kernel that a core runs of a task.
    fn func_of(&self, task: &Task, slot: u32, core: (u32, CoreKind)) -> u16 {
        let own = task.func_id.load(Relaxed);
        let Some((_, part)) = part_of(self.launch, slot, core) else { return own };
        let line = self.launch.state.shapes.and_then(|shapes| shapes.line(slot));
        let func_id = line.and_then(|line| line.func_ids.get(part.lane()));
        func_id.and_then(|id| u16::try_from(id.load(Relaxed)).ok()).unwrap_or(own)
    }
}
