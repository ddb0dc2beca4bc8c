//! Giving work to cores: everything that changes when a core gets a task, a second task, or a part of a task.
//!
//! Which task goes to which core is decided elsewhere (`plain`, `blocks`, `ahead`, `at_once`); all of them apply their
//! decisions here.
//!
//! Invariants:
//! - A task is dispatched once: it is published when it is taken, and dispatched from then on.
//! - A core whose bit is in `staged` was given something since the last commit. It gets no second dispatch before that.
//! - What is staged for a core replaces what was staged ahead for it.
//! - The pace of a core is that of the dispatch that it runs, not of the one that is pending.
//!
//! Why it is so: `docs/decisions/dispatch.md`.

use core::hash::{Hash, Hasher};

use pto_abi::block::BlockContext;
use pto_abi::kinds::TaskState;
use pto_abi::stream::MAX_LANES;
use pto_abi::sync::{Ordering, Sharing};
use pto_abi::task::Task;
use pto_abi::trace::{TraceKind, TracePoint};
use pto_abi::{CoreKind, Fault, TaskId};

use super::ahead::{Ahead, Hint};
use crate::blame::{Blame, BlameSlot};
use crate::block_shapes::BlockShapeMemory;
use crate::cores::apart::PART;
use crate::cores::{CoreSet, bit};
use crate::fanout::FanoutPolicy;
use crate::machine::Machine;
use crate::mutant::{self, Mutant};
use crate::pace::Pace;
use crate::platform::{CoreStatus, Platform, Staged};
use crate::state::SharedState;

/// A core gets a second task when it is expected to be free within this time. What it saves is about 2 us: a report, a dispatch and a
/// doorbell. A kernel may take longer than the one before it, and another core may be free long before.
const PEND_WITHIN_NS: u64 = 4_000;

/// The cores of one scheduler, and what is known of them. See the module.
#[repr(C)]
pub(super) struct Dispatcher<'a> {
    state: SharedState<'a>,
    cores: CoreSet,
    generation: u32,
    // Cores that were given something since the last commit, where a core may have two dispatches.
    staged: u128,
    pace: Pace,
    blame: BlameSlot,
    ahead: Ahead,
    // The clock as it was read last, where events are recorded: one reading serves a completion and what follows from it, or the
    // doorbells of a batch.
    traced_ns: u64,
}

impl<'a> Dispatcher<'a> {
    #[inline(always)]
    pub(super) const fn new(state: SharedState<'a>, generation: u32) -> Self {
        Self {
            state,
            cores: CoreSet::new(),
            generation,
            staged: 0,
            pace: Pace::new(),
            blame: BlameSlot::new(),
            ahead: Ahead::new(),
            traced_ns: 0,
        }
    }

    /// Reads the clock, where events are recorded: before a doorbell is written, because the core may have started when that write returns. An agent that takes over what another agent made ready reads it after that.
    #[inline]
    pub(super) fn look_at_clock<P: Platform>(&mut self, platform: &mut P) {
        if platform.machine().traces() {
            self.traced_ns = platform.machine().now_ns();
        }
    }

    /// The clock as it was read last.
    #[inline]
    pub(super) const fn traced_ns(&self) -> u64 {
        self.traced_ns
    }

    /// What the instances of the run share.
    #[inline(always)]
    pub(super) const fn state(&self) -> &SharedState<'a> {
        &self.state
    }

    /// Which cores are free, which are busy, and with what.
    #[inline(always)]
    pub(super) const fn cores(&self) -> &CoreSet {
        &self.cores
    }

    /// The same, to take cores into service, set them apart and free them.
    #[inline(always)]
    pub(super) const fn cores_mut(&mut self) -> &mut CoreSet {
        &mut self.cores
    }

    /// When cores are worth a look.
    #[inline(always)]
    pub(super) const fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Returns the pace mutably, so that the caller can note durations.
    #[inline(always)]
    pub(super) const fn pace_mut(&mut self) -> &mut Pace {
        &mut self.pace
    }

    /// Gives a task to the free core of its kind that became free last.
    #[inline]
    pub(super) fn stage_on_free<P: Platform>(
        &mut self,
        platform: &mut P,
        kind: CoreKind,
        slot: u32,
    ) -> Result<(), Fault> {
        let Some(core) = self.cores.take(kind, slot) else {
            return Err(Fault::SCHEDULE_CORE_NOT_FREE);
        };
        self.stage_first(platform, core, slot)
    }

    /// A busy core that has finished its task goes on with this one.
    #[inline]
    pub(super) fn stage_next<P: Platform>(
        &mut self,
        platform: &mut P,
        core: usize,
        slot: u32,
    ) -> Result<(), Fault> {
        self.cores.goes_on_with(core, slot);
        self.stage_first(platform, core, slot)
    }

    /// Gives a task to a core that was set apart for it.
    pub(super) fn stage_on_set_apart<P: Platform>(
        &mut self,
        platform: &mut P,
        core: usize,
        slot: u32,
    ) -> Result<(), Fault> {
        self.cores.assign(core, slot);
        self.stage_first(platform, core, slot)
    }

    /// Gives a busy core a second task.
    pub(super) fn stage_second<P: Platform>(
        &mut self,
        platform: &mut P,
        core: usize,
        slot: u32,
    ) -> Result<(), Fault> {
        self.cores.pend(core, slot);
        self.stage(platform, core, slot)
    }

    /// Gives a part of a task to a core that was set apart for it.
    pub(super) fn stage_part<P: Platform>(
        &mut self,
        platform: &mut P,
        core: usize,
        part: Staged,
        func_id: u32,
    ) -> Result<(), Fault> {
        self.cores.assign(core, PART | part.task);
        if P::Machine::POLLS_COST {
            self.pace.start(core, u16::try_from(func_id).unwrap_or(u16::MAX));
        }
        self.stage_words(platform, core, part)
    }

    /// Stages the only task of a core. At each of its callers: of the way of a task through a scheduler it is a fourth.
    #[inline(always)]
    fn stage_first<P: Platform>(
        &mut self,
        platform: &mut P,
        core: usize,
        slot: u32,
    ) -> Result<(), Fault> {
        if P::Machine::POLLS_COST {
            self.pace.start(core, self.func_id(slot));
        }
        if P::Machine::STAGES_AHEAD {
            self.ahead.note_urgent_start(core);
        }
        self.stage(platform, core, slot)
    }

    #[inline(always)]
    fn stage<P: Platform>(
        &mut self,
        platform: &mut P,
        core: usize,
        slot: u32,
    ) -> Result<(), Fault> {
        let staged = self.take_published::<P>(slot)?;
        self.stage_words(platform, core, staged)
    }

    /// Stages what a core is given, for a task or a part of one.
    #[inline(always)]
    fn stage_words<P: Platform>(
        &mut self,
        platform: &mut P,
        core: usize,
        staged: Staged,
    ) -> Result<(), Fault> {
        if P::Machine::SLOTS > 1 {
            self.staged |= bit(core);
        }
        if P::Machine::STAGES_AHEAD {
            self.ahead.replace(core);
        }
        platform.stage(core, staged).map_err(|fault| self.refused::<P>(fault, core))?;
        self.trace_dispatch(platform, core, staged.task);
        Ok(())
    }

    /// One barrier, then the doorbells of everything that was staged.
    #[inline]
    pub(super) fn commit<P: Platform>(&mut self, platform: &mut P) {
        platform.commit();
        self.staged = 0;
    }

    /// Marks a task dispatched; what its core is to be given.
    #[inline(always)]
    pub(super) fn take_published<P: Platform>(&mut self, slot: u32) -> Result<Staged, Fault> {
        self.take_task::<P>(slot).map(|(_, staged)| staged)
    }

    /// Marks a task dispatched; returns the task, and the dispatch to give to its core.
    #[inline(always)]
    pub(super) fn take_task<P: Platform>(
        &mut self,
        slot: u32,
    ) -> Result<(&'a Task, Staged), Fault> {
        let task = self.mark_dispatched(slot)?;
        if mutant::is(Mutant::CountsTooEarly) {
            let outstanding = &self.state.progress.outstanding;
            // Release: as `Tally::flush`, which counts the task where nothing is wrong.
            P::Sharing::fetch_sub(outstanding, 1, Ordering::Release);
        }
        Ok((task, self.state.dispatch_of(slot, task)))
    }

    /// Marks a published task dispatched. A task is dispatched once.
    #[inline(always)]
    pub(super) fn mark_dispatched(&mut self, slot: u32) -> Result<&'a Task, Fault> {
        let task = self.expect_published(slot)?;
        task.state.store(TaskState::DISPATCHED.get(), Ordering::Relaxed);
        Ok(task)
    }

    /// The published task in this slot.
    #[inline(always)]
    pub(super) fn expect_published(&mut self, slot: u32) -> Result<&'a Task, Fault> {
        let Some(task) = self.state.task(slot) else { return Err(self.wrong_task(slot, 0)) };
        let state = task.state.load(Ordering::Relaxed);
        if state == TaskState::PUBLISHED.get() {
            Ok(task)
        } else {
            Err(self.wrong_task(slot, state))
        }
    }

    /// The busy core of `kind` with room for a second task that is free soonest, if it is soon enough. None that was given
    /// something since the last commit.
    #[must_use]
    pub(super) fn soonest_free(&self, kind: CoreKind) -> Option<usize> {
        choose_soonest(&self.cores, &self.pace, kind, |core| self.staged & bit(core) != 0)
    }

    /// The second dispatch of a core that has finished the first one, which it follows to.
    pub(super) fn follow<P: Platform>(&mut self, core: usize, status: CoreStatus) -> Option<u32> {
        let second = self.cores.advance(core).filter(|_| !mutant::is(Mutant::ForgetsTheSecond))?;
        self.state.task(second)?;
        self.pace.start(core, self.func_id(second));
        if status == CoreStatus::FinishedMore {
            self.pace.hurry(core);
        } else if P::Machine::STAGES_AHEAD {
            self.ahead.note_start(core);
        }
        Some(second)
    }

    /// The busy core at `index` of the busy ones has nothing to go on with.
    #[inline]
    pub(super) fn set_free<P: Platform>(&mut self, index: usize, kind: CoreKind) {
        self.cores.release(index);
        if P::Machine::STAGES_AHEAD {
            self.ahead.note_free(kind);
        }
    }

    #[inline]
    fn func_id(&self, slot: u32) -> u16 {
        self.state.task(slot).map_or(0, |task| task.func_id.load(Ordering::Relaxed))
    }
}

/// What is staged ahead.
impl Dispatcher<'_> {
    /// Whether a core that had nothing to do was given a task since the last call.
    #[inline]
    pub(super) fn take_urgent(&mut self) -> bool {
        self.ahead.take_urgent()
    }

    /// Stages what waits for the tasks that have started.
    pub(super) fn look_ahead<P: Platform, F: FanoutPolicy>(&mut self, platform: &mut P) {
        let Self { state, cores, ahead, .. } = self;
        ahead.look::<P, F>(platform, state, cores);
    }

    /// What was staged ahead to follow the task that the core has finished.
    #[inline]
    pub(super) fn take_hint(&mut self, core: usize) -> Option<Hint> {
        self.ahead.take(core)
    }

    /// The core for which `consumer` was staged ahead and that can start it: the one that has just finished the producer
    /// only if it `goes_on` with this one.
    #[inline]
    #[must_use]
    pub(super) fn core_staged_for(
        &self,
        hint: Option<Hint>,
        consumer: u32,
        from: usize,
        goes_on: bool,
    ) -> Option<usize> {
        self.ahead.core_staged_for(hint, consumer, |core| {
            if core == from { goes_on } else { self.cores.is_free(core) }
        })
    }

    /// Rings a core for the task that was staged ahead for it, and is ready now that another core (or the same one)
    /// has finished its last producer.
    pub(super) fn ring_ahead<P: Platform>(
        &mut self,
        platform: &mut P,
        from: usize,
        core: usize,
        slot: u32,
    ) -> Result<(), Fault> {
        let task = self.expect_published(slot)?;
        platform.ring_ahead(core, slot).map_err(|fault| self.refused::<P>(fault, core))?;
        task.state.store(TaskState::DISPATCHED.get(), Ordering::Relaxed);
        if core == from {
            self.cores.goes_on_with(core, slot);
        } else {
            self.cores.set_apart(core);
            self.cores.assign(core, slot);
        }
        if P::Machine::POLLS_COST {
            self.pace.start(core, task.func_id.load(Ordering::Relaxed));
        }
        self.ahead.note_started(core);
        self.trace_dispatch(platform, core, slot);
        Ok(())
    }
}

/// What is reported of dispatches: events and circumstances of faults.
impl<'a> Dispatcher<'a> {
    #[inline]
    fn trace_dispatch<P: Platform>(&self, platform: &mut P, core: usize, task: u32) {
        if platform.machine().traces() {
            let (time_ns, kind) = (self.traced_ns, TraceKind::DISPATCHED);
            let extra = self.cores.worker(core);
            platform.machine().trace(TracePoint { time_ns, kind, task, extra });
        }
    }

    /// The circumstances of a fault that a step returned.
    pub(super) fn blame(&self, fault: Fault) -> Blame {
        self.blame.of(fault)
    }

    /// Stores the circumstances of a fault, and returns the fault.
    #[cold]
    pub(super) fn leave(&mut self, blame: Blame) -> Fault {
        self.blame.leave(blame)
    }

    /// The platform has refused a dispatch.
    #[cold]
    pub(super) fn refused<P: Platform>(&mut self, fault: Fault, core: usize) -> Fault {
        let blame = self.blame_core::<P>(fault, core);
        self.blame.leave(blame)
    }

    /// A core reports something that it was not given.
    #[cold]
    pub(super) fn wrong_status<P: Platform>(&mut self, core: usize, status: CoreStatus) -> Fault {
        let found = if let CoreStatus::Foreign(found) = status { found } else { 0 };
        let blame = self.blame_core::<P>(Fault::CORE_WRONG_STATUS, core);
        self.blame.leave(blame.detail(found.into(), 0))
    }

    #[cold]
    fn wrong_task(&mut self, slot: u32, state: u8) -> Fault {
        let task = self.id_of(slot);
        let expected = TaskState::PUBLISHED.get().into();
        let blame = Blame::of(Fault::SCHEDULE_TASK_STATE).task(task);
        self.blame.leave(blame.detail(state.into(), expected))
    }

    /// The task in a slot: where slots are used again, each task has a generation of its own.
    fn id_of(&self, slot: u32) -> TaskId {
        let task = self.state.task(slot);
        let generation =
            task.map_or(self.generation, |task| task.generation.load(Ordering::Relaxed));
        TaskId { slot, generation }
    }

    /// Blames a core and the task, or the part of one, that it was given.
    pub(super) fn blame_core<P: Platform>(&self, fault: Fault, core: usize) -> Blame {
        let blame = Blame::of(fault).worker(self.cores.worker(core));
        if !self.cores.is_busy(core) {
            return blame;
        }
        let running = self.cores.running(core);
        let slot = running & !PART;
        let func = self.func_id(slot);
        let blame = blame.task(self.id_of(slot)).func(func.into());
        if P::Machine::BLOCK_SHAPES && running != slot {
            self.blame_part(blame, core, slot)
        } else {
            blame
        }
    }

    #[cold]
    fn blame_part(&self, blame: Blame, core: usize, slot: u32) -> Blame {
        let of_task = |shapes: BlockShapeMemory<'a>| {
            Some((shapes, self.state.task(slot)?, shapes.line(slot)?))
        };
        let Some((shapes, task, line)) = self.state.shapes.and_then(of_task) else {
            return blame;
        };
        let context = shapes.context(self.cores.worker(core), task);
        let lane = match self.cores.kind(core) {
            CoreKind::AIC => 0,
            _ => 1 + BlockContext::of(context).lane as usize,
        };
        let func_id = line.func_ids[lane % MAX_LANES].load(Ordering::Relaxed);
        blame.func(func_id).part(context)
    }

    /// Hashes everything that later steps depend on. The memory of the run is not part of it, nor the blame, which is only
    /// reported.
    pub(super) fn hash_state<H: Hasher>(&self, into: &mut H) {
        let Self { state: _, cores, generation, staged, pace, blame: _, ahead, traced_ns } = self;
        (cores, generation, staged, pace, ahead, traced_ns).hash(into);
    }
}

/// See [`Dispatcher::soonest_free`].
#[must_use]
fn choose_soonest(
    cores: &CoreSet,
    pace: &Pace,
    kind: CoreKind,
    is_staged: impl Fn(usize) -> bool,
) -> Option<usize> {
    let busy = cores.busy().iter().copied().map(usize::from);
    let with_room = busy.filter(|core| !is_staged(*core) && cores.has_room(*core, kind));
    let known = with_room.filter_map(|core| {
        if mutant::is(Mutant::PendsAfterLongKernels) {
            return Some((0, core));
        }
        let remaining_ns = pace.remaining_ns(core)?;
        (remaining_ns <= PEND_WITHIN_NS).then_some((remaining_ns, core))
    });
    known.min().map(|(_, core)| core)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{PEND_WITHIN_NS, choose_soonest};
    use crate::cores::CoreSet;
    use crate::pace::Pace;
    use pto_abi::CoreKind;

    const AIV: CoreKind = CoreKind::AIV;

    /// Cores 0 to 3 are vector cores and busy. The kernels of 0, 1 and 2 are known: they take 1,000 and 3,000 ns, and more than the
    /// bound. All have started at 100,000 ns; it is so much later.
    fn busy_for(since_ns: u64) -> (CoreSet, Pace) {
        let (mut cores, mut pace) = (CoreSet::new(), Pace::new());
        let kernels = [(0, 1_000), (1, 3_000), (2, PEND_WITHIN_NS + 1)];
        for core in 0..4 {
            cores.add(core, AIV).unwrap();
            cores.take(AIV, core).unwrap();
        }
        for (core, takes_ns) in kernels {
            pace.begin(0);
            pace.start(core, u16::try_from(core).unwrap());
            pace.begin(takes_ns);
            pace.finished(core);
        }
        pace.begin(100_000);
        (0..4_u16).for_each(|core| pace.start(core.into(), core));
        pace.begin(100_000 + since_ns);
        (cores, pace)
    }

    #[test]
    fn a_second_task_goes_to_the_core_that_is_free_soonest() {
        let nothing = |_| false;
        let soonest = |(cores, pace): &(CoreSet, Pace)| choose_soonest(cores, pace, AIV, nothing);
        assert_eq!(soonest(&busy_for(0)), Some(0));
        assert_eq!(soonest(&busy_for(2_001)), Some(1), "0 takes more than twice its time");
        assert_eq!(soonest(&busy_for(6_001)), Some(2), "which is within the bound by now");
        assert_eq!(soonest(&busy_for(50_000)), None, "all take too long, and 3 is not known");
    }

    #[test]
    fn a_core_is_left_out_that_cannot_take_a_second_task() {
        let (mut cores, pace) = busy_for(0);
        let choose = |cores: &CoreSet, kind, staged| {
            choose_soonest(cores, &pace, kind, |core| core == staged)
        };
        assert_eq!(choose(&cores, AIV, 0), Some(1), "0 is staged");
        assert_eq!(choose(&cores, CoreKind::AIC, 9), None);
        cores.pend(0, 7);
        assert_eq!(choose(&cores, AIV, 9), Some(1), "0 has its second task");
    }
}
