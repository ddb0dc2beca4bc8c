//! Staging ahead: while a task runs, the dispatch of a consumer that waits for nothing else is written for the core that
//! could run it. When the task is found finished, that core is rung at once: nothing is left to write, and the barrier
//! has been made. For platforms with [`Platform::STAGES_AHEAD`]; others compute nothing of this.
//!
//! ```text
//! task T starts on core c --look_ahead--> its consumer N has a fanin of 1: N's dispatch is written for core g
//! T is found finished ------complete----> N's fanin is 0: g is rung
//! ```
//! Core g is c itself, where N is of its kind and nothing is pending there, or a free core.
//!
//! - *Nothing is promised.* A ready task takes any core that is free, whatever was staged ahead for it, and replaces that;
//!   N then goes the way of every other task. As nothing was rung, nobody waits for anything: no deadlock, no hoarding.
//! - *What is rung is right.* A fanin of 1 while T runs means that N is published, that T is its last producer, and that
//!   N cannot complete, nor its slot hold another task, before T has completed. So what was written is what N needs. A
//!   dispatch that replaces it clears [`Ahead::on`] of that core.
//! - *It delays nothing that is urgent*: a scheduler looks ahead after it has rung the cores that were idle.

use pto_abi::Fault;
use pto_abi::kinds::{CoreKind, TaskState};
use pto_abi::limits::MAX_WORKERS;
use pto_abi::sync::Ordering;

use super::Scheduler;
use super::dispatch::bit;
use super::parts::is_shaped;
use crate::fanout::FanoutPolicy;
use crate::mutant::{self, Mutant};
use crate::platform::Platform;
use crate::state::kind_of;

/// No task.
const NONE: u32 = u32::MAX;
/// Consumers of a task that are looked at: each costs a line.
const LOOKED_AT: usize = 2;
/// Kernels whose consumers are remembered; those whose function ids agree in the low bits share an entry, which costs
/// looks and nothing else.
const KERNELS: usize = 256;

/// A consumer that was staged ahead, and for which core.
#[derive(Clone, Copy, Hash)]
pub(super) struct Hint {
    consumer: u32,
    core: u8,
}

const NO_HINT: Hint = Hint { consumer: NONE, core: 0 };

/// What one scheduler has staged ahead.
#[derive(Hash)]
pub(super) struct Ahead {
    /// By core: what waits for the task that it runs.
    behind: [Hint; MAX_WORKERS],
    /// By core: the task whose dispatch was staged ahead for it, and not replaced.
    on: [u32; MAX_WORKERS],
    /// Cores with a task whose consumers have not been looked at yet.
    fresh: u128,
    /// By core kind: cores with a task for whose consumer, of that kind, there was no core.
    unplaced: [u128; CoreKind::COUNT],
    /// A core that had nothing to do was given something in this step.
    is_urgent: bool,
    /// By kernel: of which kind the consumers of its tasks are, as far as one has been seen.
    kinds: [Option<CoreKind>; KERNELS],
}

impl Ahead {
    pub(super) const fn new() -> Self {
        Self {
            behind: [NO_HINT; MAX_WORKERS],
            on: [NONE; MAX_WORKERS],
            fresh: 0,
            unplaced: [0; CoreKind::COUNT],
            is_urgent: false,
            kinds: [None; KERNELS],
        }
    }

    /// The core runs another task from now on.
    #[inline]
    pub(super) fn starts(&mut self, core: usize) {
        self.fresh |= bit(core);
    }

    /// A core that had nothing to do is given a task.
    #[inline]
    pub(super) fn starts_at_once(&mut self, core: usize) {
        self.starts(core);
        self.is_urgent = true;
    }

    /// Whether a core that had nothing to do was given a task since the last call.
    #[inline]
    pub(super) fn was_urgent(&mut self) -> bool {
        core::mem::take(&mut self.is_urgent)
    }

    /// A core of this kind has become free.
    #[inline]
    pub(super) fn is_free(&mut self, kind: CoreKind) {
        self.fresh |= core::mem::take(&mut self.unplaced[kind.index()]);
    }

    /// Something else has been staged for the core.
    #[inline]
    pub(super) fn is_replaced(&mut self, core: usize) {
        if !mutant::is(Mutant::RingsWhatWasReplaced) {
            self.on[core % MAX_WORKERS] = NONE;
        }
    }

    /// What waits for the task that the core has finished.
    #[inline]
    pub(super) fn take(&mut self, core: usize) -> Option<Hint> {
        let hint = core::mem::replace(&mut self.behind[core % MAX_WORKERS], NO_HINT);
        (hint.consumer != NONE).then_some(hint)
    }

    fn is_on(&self, core: usize) -> bool {
        self.on[core % MAX_WORKERS] != NONE
    }
}

impl<P: Platform, F: FanoutPolicy> Scheduler<'_, P, F> {
    /// Stages what waits for the tasks that have started.
    pub(super) fn look_ahead(&mut self, platform: &mut P) {
        let mut fresh = core::mem::take(&mut self.ahead.fresh);
        while fresh != 0 {
            let core = fresh.trailing_zeros() as usize;
            fresh &= fresh - 1;
            if self.cores.is_busy(core) && self.ahead.behind[core % MAX_WORKERS].consumer == NONE {
                self.look_behind(platform, core);
            }
        }
    }

    /// Stages the first consumer that waits only for what `core` runs.
    fn look_behind(&mut self, platform: &mut P, core: usize) {
        let Some(task) = self.state.task(self.cores.running(core)) else { return };
        let [kernel, _] = task.func_id.load(Ordering::Relaxed).to_le_bytes();
        let kernel = usize::from(kernel);
        // No look at a line for a consumer that cannot be placed.
        if let Some(kind) = self.ahead.kinds[kernel]
            && self.room_ahead(core, kind).is_none()
        {
            self.ahead.unplaced[kind.index()] |= bit(core);
            return;
        }
        let Some(count) = F::count(task) else { return };
        for consumer in task.consumers.iter().take((count as usize).min(LOOKED_AT)) {
            let consumer = consumer.load(Ordering::Relaxed);
            let Some(next) = self.state.task(consumer) else { continue };
            platform.fetch(consumer);
            if P::SHAPES && is_shaped(next.kind.load(Ordering::Relaxed)) {
                // It may need several cores, or none.
                continue;
            }
            let kind = kind_of(next);
            self.ahead.kinds[kernel] = Some(kind);
            // Acquire: pairs with the Release half of the decrements of the other producers and of the publish, so that
            // the words of the task are those of its publish.
            let fanin = next.fanin.load(Ordering::Acquire);
            if fanin != 1 && (fanin > 2 || !mutant::is(Mutant::RingsTooEarly)) {
                continue;
            }
            let Some(target) = self.room_ahead(core, kind) else {
                self.ahead.unplaced[kind.index()] |= bit(core);
                continue;
            };
            let Ok(number) = u8::try_from(target) else { continue };
            platform.stage_ahead(target, self.words_of(consumer, next));
            self.ahead.on[target % MAX_WORKERS] = consumer;
            self.ahead.behind[core % MAX_WORKERS] = Hint { consumer, core: number };
            return;
        }
    }

    /// Where a consumer of what `core` runs can be staged ahead.
    fn room_ahead(&self, core: usize, kind: CoreKind) -> Option<usize> {
        if self.cores.has_room(core, kind) {
            return (!self.ahead.is_on(core)).then_some(core);
        }
        // From the end that ready tasks take last.
        let mut free = self.cores.free(kind).iter().copied().map(usize::from);
        free.find(|core| !self.ahead.is_on(*core))
    }

    /// The core for which the dispatch of `consumer` still stands, and which can take it: one that is free, or the one that
    /// has just finished the producer, if that goes on with this one.
    #[inline]
    pub(super) fn stands_on(
        &self,
        hint: Option<Hint>,
        consumer: u32,
        (from, goes_on): (usize, bool),
    ) -> Option<usize> {
        let hint = hint.filter(|hint| hint.consumer == consumer)?;
        let core = usize::from(hint.core);
        let is_right = self.ahead.on[core % MAX_WORKERS] == consumer;
        let can_take = if core == from { goes_on } else { self.cores.is_free(core) };
        (is_right && can_take).then_some(core)
    }

    /// A mutant: what was staged ahead, whatever it waits for.
    #[inline(always)]
    pub(super) fn too_early(&self, hint: Option<Hint>, consumer: u32) -> Option<CoreKind> {
        if !mutant::is(Mutant::RingsTooEarly) {
            return None;
        }
        hint.filter(|hint| hint.consumer == consumer)?;
        self.state.task(consumer).map(kind_of)
    }

    /// Rings a core for the task that was staged ahead for it, and is ready now that another core (or the same one)
    /// has finished its last producer.
    pub(super) fn ring_ahead(
        &mut self,
        platform: &mut P,
        (from, core): (usize, usize),
        slot: u32,
    ) -> Result<(), Fault> {
        let Some(task) = self.state.task(slot) else { return Err(self.wrong_task(slot, 0)) };
        self.expect_published(slot, task)?;
        platform.ring_ahead(core, slot).map_err(|fault| self.refused(fault, core))?;
        task.state.store(TaskState::DISPATCHED.get(), Ordering::Relaxed);
        self.ahead.on[core % MAX_WORKERS] = NONE;
        if core == from {
            self.cores.goes_on_with(core, slot);
        } else {
            self.cores.set_apart(core);
            self.cores.assign(core, slot);
        }
        if P::POLLS_COST {
            self.pace.start(core, task.func_id.load(Ordering::Relaxed), self.now_ns);
        }
        self.ahead.starts(core);
        self.trace_dispatch(platform, core, slot);
        Ok(())
    }
}
