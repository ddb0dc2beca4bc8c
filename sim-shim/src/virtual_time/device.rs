//! The state that all agents of the machine share: the agenda, the cores, the chooser, the books. The agents
//! themselves are in [`super::engine`] (instances) and [`super::core`] (cores).

use std::sync::Arc;

use pto_abi::kinds::TaskState;
use pto_abi::sync::Ordering::Relaxed;
use pto_abi::task::{CLOSED, Task};
use pto_abi::trace::TraceKind;
use pto_abi::{CoreKind, RuntimeVariant};
use pto_aicore_kernels::worker::WorkerStep;
#[cfg(not(test))]
use pto_aicore_kernels::worker::step;
use pto_aicpu_fw::Launch;
use pto_aicpu_fw::fanout::ConsumerWalk;

use super::account::{Account, Change};
use super::agenda::{Agenda, Agent};
use super::block_ledger::{Assigned, BlockLedger, Release, is_shaped};
use super::chooser::Chooser;
use super::core::{Core, DoorbellSnapshot};
use super::core_machine::CoreMachine;
use super::cost::FastRegions;
use super::group::GroupMember;
use super::inject::{Injection, Trouble};
use super::ledger::{Invariant, Ledger, Violation};
use super::lines::Lines;
use super::options::VirtualOptions;
use super::port::VirtualPort;
use super::trace::{EventKind, EventTrace};
use super::tracer::Tracer;
#[cfg(test)]
use super::wrong_core::step;
use crate::supervisor::{self, Beat};

/// An instance, as others see it.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(super) struct Nap {
    pub(super) is_asleep: bool,
    /// When its next idle step would start, and how long each takes: it wakes between two of them.
    pub(super) from_ns: u64,
    pub(super) period_ns: u64,
    /// When it last moved something.
    pub(super) worked_ns: u64,
}

/// A watchdog looks at the clock every 64 idle steps; with naps of this part of the smallest budget it does so eight times within each.
const NAPS_A_BUDGET: u64 = 512;
/// No nap is shorter, as far as the budgets of the run decide it.
const SHORTEST_OF_RUNS_NS: u64 = 1_000;

/// How long an instance that has just worked naps at least, in a run with these budgets.
fn shortest_nap_ns(launch: &Launch<'_>) -> u64 {
    let budgets = &launch.budgets;
    let all = [budgets.task_ns, budgets.stall_ns, budgets.run_ns, launch.bring_up_budget_ns];
    let smallest = all.into_iter().filter(|budget| *budget > 0).min().unwrap_or(u64::MAX);
    (smallest / NAPS_A_BUDGET).max(SHORTEST_OF_RUNS_NS)
}

/// Naps in the time since an instance last moved something.
const NAPS_SINCE_WORK: u64 = 512;
/// How much longer than the shortest a nap becomes.
const LONGEST_NAP: u64 = 64;

impl Nap {
    /// How long it is: `shortest_ns`, and where nothing has happened for long, that over [`NAPS_SINCE_WORK`], up
    /// to [`LONGEST_NAP`] times as long. A core that does not stop costs 10 s of budget, where the smallest may be
    /// 1 ms: 80,000 naps instead of 5 million.
    pub(super) fn length_ns(&self, shortest_ns: u64) -> u64 {
        let since_work_ns = self.from_ns.saturating_sub(self.worked_ns);
        (since_work_ns / NAPS_SINCE_WORK).clamp(shortest_ns, LONGEST_NAP * shortest_ns)
    }
}

/// The instance that builds.
pub(super) const BUILDER: usize = 0;

/// A byte that is no state of a task.
const NO_STATE: u8 = 0xEE;

/// Reports and orders under way for one core at most; one task makes one of each.
const UNDER_WAY: usize = 8;

pub(super) struct VirtualDevice {
    pub(super) launch: Launch<'static>,
    pub(super) options: VirtualOptions,
    pub(super) chooser: Chooser,
    pub(super) agenda: Agenda,
    pub(super) cores: Vec<Core>,
    pub(super) naps: Vec<Nap>,
    /// How long a nap is while something happens; it becomes longer when nothing does, see [`Nap::length_ns`].
    pub(super) shortest_nap_ns: u64,
    pub(super) ledger: Ledger,
    pub(super) trace: EventTrace,
    pub(super) tracer: Tracer,
    pub(super) account: Account,
    pub(super) lines: Lines,
    pub(super) block_ledger: BlockLedger,
    pub(super) busy_ns: [u64; CoreKind::COUNT],
    pub(super) tasks_run: [u64; CoreKind::COUNT],
    /// The time of the builder program, while one is on the stack.
    pub(super) builder_ns: u64,
    /// Of that, what building took since the last report to the builder's instance; the rest is waiting.
    pub(super) built_ns: u64,
    /// The task whose line is corrupted as soon as it is published: the builder writes it until then.
    pub(super) corrupts: Option<u32>,
    pub(super) build_noticed: bool,
    pub(super) fault_noticed: bool,
    /// Doorbells rung so far, per core: which one an injected fault concerns.
    pub(super) doorbells_rung: Vec<u64>,
    /// Shows the supervisor that the OS thread gets on.
    pub(super) beats: Arc<Vec<Beat>>,
    pub(super) start_ns: u64,
    /// The membership of a device that is in a group.
    pub(super) member: Option<GroupMember>,
    pub(super) fast: FastRegions,
}

impl VirtualDevice {
    /// The builder works for so long; its time afterwards.
    pub(super) const fn build_for(&mut self, cost_ns: u64) -> u64 {
        self.builder_ns += cost_ns;
        self.built_ns += cost_ns;
        self.builder_ns
    }

    pub(super) fn new(
        launch: Launch<'static>,
        options: VirtualOptions,
        chooser: Chooser,
        beats: Arc<Vec<Beat>>,
    ) -> Self {
        let lines = launch.arena.workers().iter();
        let cores: Vec<Core> = (0_u32..)
            .zip(lines)
            .map_while(|(worker, lines)| {
                Some(Core::new(worker, launch.workers.kind(worker)?, lines))
            })
            .collect();
        let streams = launch.variant == RuntimeVariant::TENSORMAP_AND_RINGBUFFER;
        let follows_paths = streams && !chooser.searches_states();
        let ledger = if follows_paths { Ledger::following_paths() } else { Ledger::new() };
        Self {
            agenda: Agenda::new(),
            naps: vec![Nap::default(); launch.aicpu_instances as usize],
            ledger,
            trace: EventTrace::new(options.keep),
            tracer: Tracer::of(&launch),
            account: Account::new(&launch.workers),
            lines: Lines::new(),
            block_ledger: BlockLedger::new(),
            busy_ns: [0; CoreKind::COUNT],
            tasks_run: [0; CoreKind::COUNT],
            builder_ns: 0,
            built_ns: 0,
            corrupts: None,
            build_noticed: false,
            fault_noticed: false,
            doorbells_rung: vec![0; cores.len()],
            start_ns: options.profile.core_start_ns(),
            shortest_nap_ns: shortest_nap_ns(&launch),
            member: None,
            fast: FastRegions::default(),
            beats,
            cores,
            launch,
            options,
            chooser,
        }
    }

    /// Lets a core look at its line, and do what it finds there.
    pub(super) fn step_core(&mut self, worker: usize, time_ns: u64) {
        let Some(core) = self.cores.get_mut(worker) else { return };
        core.now_ns = core.now_ns.max(time_ns);
        let machine = CoreMachine {
            launch: &self.launch,
            options: &self.options,
            chooser: &mut self.chooser,
            ledger: &mut self.ledger,
            trace: &mut self.trace,
            tracer: &self.tracer,
            account: &mut self.account,
            lines: &mut self.lines,
            block_ledger: &mut self.block_ledger,
            busy_ns: &mut self.busy_ns,
            tasks_run: &mut self.tasks_run,
            start_ns: self.start_ns,
            member: self.member.as_ref(),
            fast: &self.fast,
        };
        self.beats.iter().for_each(|beat| beat.core(core.worker));
        let mut port = VirtualPort { core, machine };
        if port.core.going_on.is_some() && port.goes_on() {
            let due_ns = port.core.now_ns;
            self.beats.iter().for_each(Beat::no_core);
            return self.agenda.schedule(Agent::Core(worker), due_ns);
        }
        // Up to the end of a kernel: what comes until then is for the next turn.
        while port.core.now_ns <= time_ns && step(&mut port) == WorkerStep::Worked {}
        self.beats.iter().for_each(Beat::no_core);
        let (order, report) = (core.orders.front().copied(), core.reports.back().copied());
        let (owner, is_full) = (core.owner, core.reports.len() > UNDER_WAY);
        let core_now = core.now_ns;
        if let Some(order) = order {
            self.agenda.schedule(Agent::Core(worker), order.seen_ns.max(core_now));
        }
        if core.has_more() || core.going_on.is_some() {
            self.agenda.schedule(Agent::Core(worker), core_now);
        }
        if let Some(report) = report {
            self.wake_within(owner, report.visible_ns);
        }
        if is_full {
            self.violate(
                Invariant::BoundedMemory,
                u32::MAX,
                worker,
                "reports that are not collected",
            );
        }
    }

    /// Brings a core to `now_ns` of the instance that looks at it, and its report to the arena.
    #[inline]
    pub(super) fn look_at(&mut self, worker: usize, now_ns: u64) {
        loop {
            let due = self.agenda.due(Agent::Core(worker));
            if due > now_ns {
                break;
            }
            self.agenda.cancel(Agent::Core(worker));
            self.step_core(worker, due);
        }
        if let Some(core) = self.cores.get_mut(worker) {
            core.show(now_ns);
        }
    }

    /// The doorbell of a core was rung at `now_ns`: it sees its line as it is now, later.
    pub(super) fn ring(&mut self, worker: usize, now_ns: u64, owner: usize, what: Ring) {
        let mut delay = self.chooser.delay(self.options.profile.doorbell_ns);
        if what == Ring::Dispatch {
            match self.doorbell_trouble(worker, now_ns) {
                Some(Trouble::DoorbellLost) => return,
                Some(Trouble::DoorbellDelayed(more)) => delay += more,
                _ => {}
            }
        }
        let Some(core) = self.cores.get_mut(worker) else { return };
        core.owner = owner;
        let order = DoorbellSnapshot::of(&core.arena_lines.scheduler, now_ns + delay);
        core.orders.push_back(order);
        let due = order.seen_ns.max(core.now_ns);
        self.agenda.schedule(Agent::Core(worker), due);
    }

    fn doorbell_trouble(&mut self, worker: usize, now_ns: u64) -> Option<Trouble> {
        let number = self.doorbells_rung.get_mut(worker)?;
        let at = *number;
        *number += 1;
        let injection = self.options.injection?;
        let is_doorbell =
            matches!(injection.trouble, Trouble::DoorbellLost | Trouble::DoorbellDelayed(_));
        let hits = is_doorbell && injection.hits(u32::try_from(worker).ok()?, at);
        if hits {
            self.trace.add(now_ns, EventKind::Injected, worker, u32::MAX);
        }
        hits.then_some(injection.trouble)
    }

    /// A task goes to a core, whose doorbell is about to be rung.
    pub(super) fn dispatched(&mut self, worker: usize, now_ns: u64, instance: usize) {
        let Some(core) = self.cores.get_mut(worker) else { return };
        let line = &core.arena_lines.scheduler;
        let slot = line.dispatch(line.doorbell.load(Relaxed)).task;
        let (is_free, kind, number) = (core.is_free(now_ns), core.kind, core.worker);
        core.unstarted += 1;
        // A dispatch that is given ahead occupies the core from the end of its kernel on; one that waits after
        // another which has not started occupies nothing more.
        let busy_from_ns = (core.unstarted == 1).then(|| now_ns.max(core.kernel_end_ns));
        if !is_free {
            self.violate(Invariant::FreeCore, slot, worker, "rung while the core is not free");
        }
        let given = self.book_dispatch(slot, worker, instance, now_ns);
        self.trace.add(now_ns, EventKind::Dispatched, worker, slot);
        if let Some(part) = self.traced_part(slot, number) {
            self.tracer.instance(instance, now_ns, TraceKind::PART, (slot, part));
        }
        self.tracer.instance(instance, now_ns, TraceKind::DISPATCHED, (slot, number));
        match given {
            Assigned::Plain => self.account.add(now_ns, Change::TaskDispatched(kind)),
            Assigned::Block => self.account.block_is_dispatched(now_ns, slot),
            Assigned::Part => {}
        }
        if let Some(busy_from_ns) = busy_from_ns {
            self.account.add(busy_from_ns, Change::CoreBusy(number));
        }
        self.account.settle(self.agenda.now());
    }

    /// A scheduler has seen that the task of a core is finished, and is about to release its consumers, one
    /// each `release_ns`. `by`: the scheduler and the core. Returns when it will be done.
    pub(super) fn completed(&mut self, slot: u32, by: (usize, usize), mut now: u64) -> u64 {
        let (instance, worker) = by;
        let state = self.launch.state;
        let Some(task) = state.task(slot) else { return now };
        let profile = self.options.profile;
        now += self.chooser.delay(profile.complete_ns) + self.line_ns(slot, instance);
        let number = u32::try_from(worker).unwrap_or(u32::MAX);
        if self.traced_part(slot, number).is_some() {
            self.tracer.instance(instance, now, TraceKind::COLLECTED, (slot, number));
        }
        let part_ns = now;
        if is_shaped(task) {
            now = self.block_ledger.collected(slot, now);
        }
        if !self.book_collected(slot, worker, part_ns) {
            return part_ns;
        }
        self.ledger.complete(slot, now);
        self.trace.add(now, EventKind::Completed, instance, slot);
        self.tracer.instance(instance, now, TraceKind::COMPLETED, (slot, number));
        self.release_consumers(slot, task, instance, now)
    }

    /// Releases the consumers of a task, one each `release_ns`; when that is done.
    pub(super) fn release_consumers(
        &mut self,
        slot: u32,
        task: &Task,
        instance: usize,
        mut now: u64,
    ) -> u64 {
        let (state, profile) = (self.launch.state, self.options.profile);
        let fanout = task.fanout.load(Relaxed);
        let mut walk = ConsumerWalk::new(fanout & !CLOSED);
        while let Some(consumer) = walk.next(task, state.chunks) {
            now += profile.release_ns.low + self.line_ns(consumer, instance);
            let Some(line) = state.task(consumer) else { continue };
            if self.ledger.release(slot, consumer, now, line.edges_in.load(Relaxed)) {
                self.became_ready(consumer, line, instance, now);
            }
        }
        now
    }

    /// What it takes an instance to touch the line of a task: a miss where another one has touched it since.
    #[inline]
    pub(super) fn line_ns(&mut self, slot: u32, instance: usize) -> u64 {
        let profile = self.options.profile;
        let line = match self.ledger.touch(slot, instance) {
            true => profile.line_hit_ns,
            false => profile.line_miss_ns,
        };
        line.low
    }

    /// A task was published at `now_ns`.
    pub(super) fn published(&mut self, slot: u32, instance: usize, now_ns: u64) {
        let state = self.launch.state;
        let Some(task) = state.task(slot) else { return };
        self.trace.add(now_ns, EventKind::Published, instance, slot);
        self.tracer.instance(instance, now_ns, TraceKind::PUBLISHED, (slot, 0));
        let number = self.ledger.published;
        if self.ledger.publish(slot, now_ns, task.edges_in.load(Relaxed)) {
            self.became_ready(slot, task, instance, now_ns);
            // It is in a shared queue, at which every scheduler looks in each of its steps; unless the engine does it.
            if !is_shaped(task) || !state.is_transfer(slot) {
                self.wake_others(instance, now_ns);
            }
        }
        let trouble = self.builder_trouble().filter(|found| u64::from(found.at) == number);
        if let Some(Injection { trouble, .. }) =
            trouble.filter(|found| found.trouble.is_at_publish())
        {
            self.trouble_at_publish(trouble, slot, task, now_ns);
        }
    }

    #[cold]
    fn trouble_at_publish(&mut self, trouble: Trouble, slot: u32, task: &Task, now_ns: u64) {
        self.trace.add(now_ns, EventKind::Injected, 0, u32::MAX);
        match trouble {
            Trouble::CorruptLine => {
                self.corrupts = Some(slot);
                self.corrupt_line();
            }
            Trouble::HostSilent => self.tracer.host_is_silent(),
            Trouble::CorruptCount => task.fanin.store(task.fanin.load(Relaxed) + 1, Relaxed),
            _ => supervisor::raise_cancelled(&self.launch, now_ns),
        }
    }

    /// Corrupts the line of the task that is to be, if it is published.
    pub(super) fn corrupt_line(&mut self) {
        let task = self.corrupts.and_then(|slot| self.launch.state.task(slot));
        if let Some(task) = task.filter(|task| task.state.load(Relaxed) != TaskState::ADDED.get()) {
            task.state.store(NO_STATE, Relaxed);
            self.corrupts = None;
        }
    }

    #[inline]
    fn became_ready(&mut self, slot: u32, task: &Task, instance: usize, now_ns: u64) {
        self.trace.add(now_ns, EventKind::Ready, instance, slot);
        self.tracer.instance(instance, now_ns, TraceKind::READY, (slot, 0));
        if is_shaped(task) {
            self.book_ready(slot, now_ns);
        } else {
            let kind = CoreKind::try_from(task.kind.load(Relaxed)).unwrap_or(CoreKind::AIC);
            self.account.add(now_ns, Change::TaskReady(kind));
            if self.launch.state.shapes.is_some() {
                self.block_ledger.plain_ready(slot, kind, Release::of(task));
            }
        }
    }

    /// A launch of a session is published, and its stream may allow it less time than the run does: from now on the watchdogs look often
    /// enough for that. As often as the device's do for the shortest of them, because an idle step lasts longer than such a nap.
    pub(super) fn heed_budget_of(&mut self, task: &Task) {
        if let Some(budget_ns) = self.launch.budgets.of_launch(task) {
            self.shortest_nap_ns = self.shortest_nap_ns.min((budget_ns / NAPS_A_BUDGET).max(1));
        }
    }

    /// Wakes a sleeping instance for something that it sees when it polls at `time_ns`: the idle step that
    /// this lies in is made.
    #[inline]
    pub(super) fn wake_within(&mut self, instance: usize, time_ns: u64) {
        let Some(nap) = self.naps.get(instance).filter(|nap| nap.is_asleep) else { return };
        let steps = time_ns.saturating_sub(nap.from_ns).checked_div(nap.period_ns);
        let at = match steps {
            Some(steps) => nap.from_ns + steps * nap.period_ns,
            None => time_ns.max(nap.from_ns),
        };
        self.agenda.schedule(Agent::Instance(instance), at);
    }

    /// When the first step of a sleeping instance from `time_ns` on is; `None`: it is awake.
    fn next_look_ns(&self, instance: usize, time_ns: u64) -> Option<u64> {
        let nap = self.naps.get(instance).filter(|nap| nap.is_asleep)?;
        let waited = time_ns.saturating_sub(nap.from_ns);
        Some(match nap.period_ns {
            0 => time_ns.max(nap.from_ns),
            period => nap.from_ns + waited.div_ceil(period) * period,
        })
    }

    /// Wakes a sleeping instance for something that any step from `time_ns` on sees.
    #[inline]
    pub(super) fn wake_after(&mut self, instance: usize, time_ns: u64) {
        if let Some(at) = self.next_look_ns(instance, time_ns) {
            self.agenda.schedule(Agent::Instance(instance), at);
        }
    }

    /// Wakes of the sleeping schedulers those that look first, one for each of `count` transfers that are over: the others would find
    /// nothing. The instance that builds is woken as well, because it may be no scheduler.
    pub(super) fn wake_for_transfers(&mut self, count: usize, time_ns: u64) {
        self.wake_after(0, time_ns);
        for _ in 0..count.min(self.naps.len()) {
            let looks = (1..self.naps.len())
                .filter_map(|me| Some((self.next_look_ns(me, time_ns)?, me)))
                .filter(|(at, me)| self.agenda.due(Agent::Instance(*me)) > *at);
            let Some((at, me)) = looks.min() else { return };
            self.agenda.schedule(Agent::Instance(me), at);
        }
    }

    /// Wakes every sleeping instance but one.
    pub(super) fn wake_others(&mut self, instance: usize, time_ns: u64) {
        for other in (0..self.naps.len()).filter(|other| *other != instance) {
            self.wake_after(other, time_ns);
        }
    }

    pub(super) fn violate(&mut self, rule: Invariant, task: u32, other: usize, what: &'static str) {
        let other = u32::try_from(other).unwrap_or(u32::MAX);
        let time_ns = self.agenda.now();
        self.ledger.violate(Violation { rule, time_ns, task, other, what });
    }

    /// The trouble that the builder is to have, if any.
    pub(super) fn builder_trouble(&self) -> Option<Injection> {
        self.options.injection.filter(|injection| injection.trouble.is_builders())
    }
}

/// Why a doorbell is rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ring {
    Dispatch,
    Order,
}
