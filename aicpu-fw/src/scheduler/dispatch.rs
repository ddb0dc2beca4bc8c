//! The second half of a step: which ready task goes to which core.
//!
//! ```text
//! own newly ready tasks -> free own cores -> (two dispatches a core) behind busy own cores -> shared queue
//! shared queue          -> free own cores -> (two dispatches a core) behind busy own cores
//! ```
//! A second dispatch is a promise that cannot be taken back, so it is given only
//! - while no core of the kind is free, here or at a sibling, by what siblings said last;
//! - behind a core that is expected to be free within [`PEND_WITHIN_NS`], the soonest first. A kernel that nobody
//!   has seen to finish yet, or that takes twice what it took before, is expected to take for ever.
//!
//! So a task loses at most about that time against a core that becomes free earlier than expected.

use pto_abi::kinds::TaskState;
use pto_abi::limits::MAX_WORKERS;
use pto_abi::sync::Ordering;
use pto_abi::task::Task;
use pto_abi::trace::{TraceKind, TracePoint};
use pto_abi::{CoreKind, Fault, GmAddr, TaskId};

use super::collect::Moved;
use super::{SHARED_BATCH, Scheduler};
use crate::blame::Blame;
use crate::fanout::FanoutPolicy;
use crate::mutant::{self, Mutant};
use crate::pace::LOOK_WITHIN_NS;
use crate::platform::{Platform, Staged};

/// A task is pended behind a core that is expected to be free within this time: a core is looked at as often.
const PEND_WITHIN_NS: u64 = LOOK_WITHIN_NS;

/// A core in a set of cores.
pub(super) const fn bit(core: usize) -> u128 {
    1 << (core % MAX_WORKERS)
}

impl<P: Platform, F: FanoutPolicy> Scheduler<'_, P, F> {
    /// Fills the free cores, from the own newly ready tasks, then from the shared queues; then what is pending. What
    /// is left of the own ones goes to the shared queues.
    #[inline(always)]
    pub(super) fn dispatch(&mut self, platform: &mut P, moved: &mut Moved) -> Result<(), Fault> {
        if P::RUNS_AT_ONCE && platform.runs_now() {
            return self.run_ready(platform, moved);
        }
        // Written out, so that each kind's tables are at known places.
        if self.has_work(CoreKind::AIC) {
            moved.dispatched |= self.dispatch_kind(platform, CoreKind::AIC)?;
        }
        if self.has_work(CoreKind::AIV) {
            moved.dispatched |= self.dispatch_kind(platform, CoreKind::AIV)?;
        }
        Ok(())
    }

    /// Whether there is a ready task of `kind` that could go somewhere.
    #[inline(always)]
    fn has_work(&self, kind: CoreKind) -> bool {
        let has_room = self.cores.free_count(kind) > 0 || P::SLOTS > 1;
        !self.local[kind.index()].is_empty()
            || has_room && self.state.queue(kind).has_ready::<P::Sharing>()
    }

    #[inline(never)]
    fn dispatch_kind(&mut self, platform: &mut P, kind: CoreKind) -> Result<bool, Fault> {
        let mut staged = false;
        while self.cores.free_count(kind) > 0 {
            let Some(slot) = self.local[kind.index()].pop() else { break };
            self.stage_on_free(platform, kind, slot)?;
            staged = true;
        }
        if self.cores.free_count(kind) > 0 && self.state.queue(kind).has_ready::<P::Sharing>() {
            staged |= self.dispatch_shared(platform, kind)?;
        }
        if P::SLOTS > 1 && self.cores.free_count(kind) == 0 && self.hands_over {
            staged |= self.pend(platform, kind)?;
        }
        if !self.local[kind.index()].is_empty() && !mutant::is(Mutant::Hoards) {
            self.make_room(kind);
        }
        Ok(staged)
    }

    /// Gives second tasks to busy cores, those that are free soonest first, unless a sibling has a free core of the
    /// kind.
    fn pend(&mut self, platform: &mut P, kind: CoreKind) -> Result<bool, Fault> {
        let mut staged = false;
        loop {
            let is_ready = !self.local[kind.index()].is_empty()
                || self.state.queue(kind).has_ready::<P::Sharing>();
            if !is_ready || self.siblings_are_hungry(kind) {
                return Ok(staged);
            }
            let Some(core) = self.soonest_free(kind) else { return Ok(staged) };
            let mut shared = [0];
            let slot = match self.local[kind.index()].pop() {
                Some(slot) => slot,
                None if self.state.queue(kind).pop::<P::Sharing>(&mut shared) == 1 => shared[0],
                None => return Ok(staged),
            };
            self.cores.pend(core, slot);
            self.stage(platform, core, slot)?;
            staged = true;
        }
    }

    /// Whether a sibling has a free core of `kind`, as it said last.
    fn siblings_are_hungry(&self, kind: CoreKind) -> bool {
        let others = self.state.instances.iter().filter(|line| !core::ptr::eq(*line, self.line));
        let mut free = others.map(|line| line.free_cores[kind.index()].load(Ordering::Relaxed));
        free.any(|count| count > 0) && !mutant::is(Mutant::PendsBesideFreeCores)
    }

    /// The busy core of `kind` with room for a second task that is free soonest, if it is soon enough.
    fn soonest_free(&self, kind: CoreKind) -> Option<usize> {
        let busy = self.cores.busy().iter().copied().map(usize::from);
        let rung = busy.filter(|core| self.staged & bit(*core) == 0);
        let with_room = rung.filter(|core| self.cores.has_room(*core, kind));
        let known = with_room.filter_map(|core| {
            if mutant::is(Mutant::PendsBehindLongKernels) {
                return Some((0, core));
            }
            let remaining_ns = self.pace.remaining_ns(core, self.now_ns)?;
            (remaining_ns <= PEND_WITHIN_NS).then_some((remaining_ns, core))
        });
        known.min().map(|(_, core)| core)
    }

    /// Takes no more from the shared queue than the free cores run.
    fn dispatch_shared(&mut self, platform: &mut P, kind: CoreKind) -> Result<bool, Fault> {
        let mut staged = false;
        loop {
            let mut slots = [0; SHARED_BATCH];
            let room = self.cores.free_count(kind).min(SHARED_BATCH);
            let slots = slots.get_mut(..room).unwrap_or_default();
            let taken = self.state.queue(kind).pop::<P::Sharing>(slots);
            for &slot in slots.iter().take(taken) {
                self.stage_on_free(platform, kind, slot)?;
                staged = true;
            }
            if taken < SHARED_BATCH {
                return Ok(staged);
            }
        }
    }

    #[inline]
    pub(super) fn stage_on_free(
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

    /// Stages the only task of a core.
    #[inline]
    pub(super) fn stage_first(
        &mut self,
        platform: &mut P,
        core: usize,
        slot: u32,
    ) -> Result<(), Fault> {
        if P::POLLS_COST {
            let func_id =
                self.state.task(slot).map_or(0, |task| task.func_id.load(Ordering::Relaxed));
            self.pace.start(core, func_id, self.now_ns);
        }
        if P::STAGES_AHEAD {
            self.ahead.starts_at_once(core);
        }
        self.stage(platform, core, slot)
    }

    #[inline]
    fn stage(&mut self, platform: &mut P, core: usize, slot: u32) -> Result<(), Fault> {
        let staged = self.take_published(slot)?;
        self.stage_words(platform, core, staged)
    }

    /// Marks a task dispatched; what its core is to be given.
    #[inline(always)]
    pub(super) fn take_published(&mut self, slot: u32) -> Result<Staged, Fault> {
        let Some(task) = self.state.task(slot) else { return Err(self.wrong_task(slot, 0)) };
        self.expect_published(slot, task)?;
        task.state.store(TaskState::DISPATCHED.get(), Ordering::Relaxed);
        if mutant::is(Mutant::CountsTooEarly) {
            self.unflushed += 1;
        }
        Ok(self.words_of(slot, task))
    }

    /// Stages what a core is given, for a task or a part of one.
    #[inline(always)]
    pub(super) fn stage_words(
        &mut self,
        platform: &mut P,
        core: usize,
        staged: Staged,
    ) -> Result<(), Fault> {
        if P::SLOTS > 1 {
            self.staged |= bit(core);
        }
        if P::STAGES_AHEAD {
            self.ahead.is_replaced(core);
        }
        platform.stage(core, staged).map_err(|fault| self.refused(fault, core))?;
        self.trace_dispatch(platform, core, staged.task);
        Ok(())
    }

    /// A task is dispatched once.
    #[inline(always)]
    pub(super) fn expect_published(&mut self, slot: u32, task: &Task) -> Result<(), Fault> {
        let state = task.state.load(Ordering::Relaxed);
        if state == TaskState::PUBLISHED.get() { Ok(()) } else { Err(self.wrong_task(slot, state)) }
    }

    /// What a core is given for a task.
    #[inline]
    pub(super) fn words_of(&self, slot: u32, task: &Task) -> Staged {
        let payload = u64::from(task.payload.load(Ordering::Relaxed));
        Staged {
            task: slot,
            kernel: GmAddr(task.kernel.load(Ordering::Relaxed)),
            args: self.state.payloads_address.offset(8 * payload),
        }
    }

    #[inline]
    pub(super) fn trace_dispatch(&self, platform: &mut P, core: usize, slot: u32) {
        if P::TRACES {
            let (time_ns, kind) = (platform.now_ns(), TraceKind::DISPATCHED);
            let extra = self.cores.worker(core);
            platform.trace(TracePoint { time_ns, kind, task: slot, extra });
        }
    }

    #[cold]
    pub(super) fn refused(&mut self, fault: Fault, core: usize) -> Fault {
        let blame = self.blame_core(fault, core);
        self.blame.leave(blame)
    }

    #[cold]
    pub(super) fn wrong_task(&mut self, slot: u32, state: u8) -> Fault {
        let task = TaskId { slot, generation: self.generation };
        let expected = TaskState::PUBLISHED.get().into();
        let blame = Blame::of(Fault::SCHEDULE_TASK_STATE).task(task);
        self.blame.leave(blame.detail(state.into(), expected))
    }
}
