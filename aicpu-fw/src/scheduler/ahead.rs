//! Staging ahead: while a task runs, the dispatch of a consumer that waits for nothing else is written for the core that
//! could run it. When the task is found finished, that core's doorbell is written at once: nothing is left to write, and the barrier
//! has been made. For platforms that stage ahead (`Machine::STAGES_AHEAD`); others compute nothing of this.
//!
//! ```text
//! task T starts on core c --look--> its consumer N has a fanin of 1: N's dispatch is written for core g
//! T is found finished --complete--> N's fanin is 0: g's doorbell (Dispatcher::ring_ahead)
//! ```
//! Core g is c itself, where N is of its kind and nothing is pending there, or a free core (`choose_core`).
//!
//! Invariants:
//! - *Nothing is promised.* A ready task takes any core that is free, whatever was staged ahead for it, and replaces that;
//!   N then goes the way of every other task. As no doorbell was written, no core waits for anything: no deadlock, no hoarding.
//! - *What starts is right.* A fanin of 1 while T runs means that N is published, that T is its last producer, and that
//!   N cannot complete, nor its slot hold another task, before T has completed. So what was written is what N needs. A
//!   dispatch that replaces it clears [`Ahead::on`] of that core.
//! - *It delays nothing that is urgent*: a scheduler looks ahead after it has written the doorbells of the cores that were idle.

use pto_abi::kinds::CoreKind;
use pto_abi::limits::MAX_WORKERS;
use pto_abi::sync::Ordering;

use crate::cores::{CoreSet, bit};
use crate::fanout::FanoutPolicy;
use crate::machine::Machine;
use crate::mutant::{self, Mutant};
use crate::platform::Platform;
use crate::state::{SharedState, has_block_shape, kind_of};

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

impl Hint {
    /// Whether it is about this task.
    pub(super) const fn is_of(self, consumer: u32) -> bool {
        self.consumer == consumer
    }
}

/// What one scheduler has staged ahead.
#[derive(Hash)]
pub(super) struct Ahead {
    /// By core: what waits for the task that it runs.
    next: [Hint; MAX_WORKERS],
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

/// What happens around it.
impl Ahead {
    #[inline(always)]
    pub(super) const fn new() -> Self {
        Self {
            next: [NO_HINT; MAX_WORKERS],
            on: [NONE; MAX_WORKERS],
            fresh: 0,
            unplaced: [0; CoreKind::COUNT],
            is_urgent: false,
            kinds: [None; KERNELS],
        }
    }

    /// The core runs another task from now on.
    #[inline]
    pub(super) fn note_start(&mut self, core: usize) {
        self.fresh |= bit(core);
    }

    /// A core that had nothing to do is given a task.
    #[inline]
    pub(super) fn note_urgent_start(&mut self, core: usize) {
        self.note_start(core);
        self.is_urgent = true;
    }

    /// The core was started on what was staged ahead for it.
    pub(super) fn note_started(&mut self, core: usize) {
        self.on[core % MAX_WORKERS] = NONE;
        self.note_start(core);
    }

    /// A core of this kind has become free.
    #[inline]
    pub(super) fn note_free(&mut self, kind: CoreKind) {
        self.fresh |= core::mem::take(&mut self.unplaced[kind.index()]);
    }

    /// Records that another task is staged for the core.
    #[inline]
    pub(super) fn replace(&mut self, core: usize) {
        if !mutant::is(Mutant::RingsWhatWasReplaced) {
            self.on[core % MAX_WORKERS] = NONE;
        }
    }

    /// Whether a core that had nothing to do was given a task since the last call.
    #[inline]
    pub(super) fn take_urgent(&mut self) -> bool {
        core::mem::take(&mut self.is_urgent)
    }

    /// What waits for the task that the core has finished.
    #[inline]
    pub(super) fn take(&mut self, core: usize) -> Option<Hint> {
        let hint = core::mem::replace(&mut self.next[core % MAX_WORKERS], NO_HINT);
        (hint.consumer != NONE).then_some(hint)
    }

    /// The core for which `consumer` is still staged, if that core can take it.
    #[inline]
    #[must_use]
    pub(super) fn core_staged_for(
        &self,
        hint: Option<Hint>,
        consumer: u32,
        can_take: impl FnOnce(usize) -> bool,
    ) -> Option<usize> {
        let hint = hint.filter(|hint| hint.is_of(consumer))?;
        let core = usize::from(hint.core);
        let is_staged = self.on[core % MAX_WORKERS] == consumer;
        (is_staged && can_take(core)).then_some(core)
    }
}

/// Looking ahead.
impl Ahead {
    /// Stages what waits for the tasks that have started.
    pub(super) fn look<P: Platform, F: FanoutPolicy>(
        &mut self,
        platform: &mut P,
        state: &SharedState<'_>,
        cores: &CoreSet,
    ) {
        let mut fresh = core::mem::take(&mut self.fresh);
        while fresh != 0 {
            let core = fresh.trailing_zeros() as usize;
            fresh &= fresh - 1;
            if cores.is_busy(core) && self.next[core % MAX_WORKERS].consumer == NONE {
                self.stage_next::<P, F>(platform, state, cores, core);
            }
        }
    }

    /// Stages the first consumer that waits only for what `core` runs.
    fn stage_next<P: Platform, F: FanoutPolicy>(
        &mut self,
        platform: &mut P,
        state: &SharedState<'_>,
        cores: &CoreSet,
        core: usize,
    ) {
        let Some(task) = state.task(cores.running(core)) else { return };
        let [kernel, _] = task.func_id.load(Ordering::Relaxed).to_le_bytes();
        let kernel = usize::from(kernel);
        // No look at a line for a consumer that cannot be placed.
        if let Some(kind) = self.kinds[kernel]
            && self.choose_core(cores, core, kind).is_none()
        {
            self.unplaced[kind.index()] |= bit(core);
            return;
        }
        let Some(count) = F::count(task) else { return };
        for consumer in task.consumers.iter().take((count as usize).min(LOOKED_AT)) {
            let consumer = consumer.load(Ordering::Relaxed);
            let Some(next) = state.task(consumer) else { continue };
            platform.fetch(consumer);
            if P::Machine::BLOCK_SHAPES && has_block_shape(next.kind.load(Ordering::Relaxed)) {
                // It may need several cores, or none.
                continue;
            }
            let kind = kind_of(next);
            self.kinds[kernel] = Some(kind);
            // Acquire: pairs with the Release halves in `Flow::release` and `release_published`, so that the words of the task are
            // those of its publish.
            let fanin = next.fanin.load(Ordering::Acquire);
            if fanin != 1 && (fanin > 2 || !mutant::is(Mutant::RingsTooEarly)) {
                continue;
            }
            let Some(target) = self.choose_core(cores, core, kind) else {
                self.unplaced[kind.index()] |= bit(core);
                continue;
            };
            platform.stage_ahead(target, state.dispatch_of(consumer, next));
            self.note_staged((core, target), consumer);
            return;
        }
    }

    /// For which core a consumer of what `core` runs can be staged ahead.
    #[must_use]
    fn choose_core(&self, cores: &CoreSet, core: usize, kind: CoreKind) -> Option<usize> {
        if cores.has_room(core, kind) {
            return (!self.is_on(core)).then_some(core);
        }
        // From the end that ready tasks take last.
        let mut free = cores.free(kind).iter().copied().map(usize::from);
        free.find(|core| !self.is_on(*core))
    }

    fn is_on(&self, core: usize) -> bool {
        self.on[core % MAX_WORKERS] != NONE
    }

    /// `consumer` was staged ahead for core `target`, to follow what core `from` runs.
    fn note_staged(&mut self, (from, target): (usize, usize), consumer: u32) {
        // A core is one of at most 128.
        let core = u8::try_from(target).unwrap_or(u8::MAX);
        self.on[target % MAX_WORKERS] = consumer;
        self.next[from % MAX_WORKERS] = Hint { consumer, core };
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    extern crate std;
    use super::Ahead;
    use crate::cores::CoreSet;
    use pto_abi::CoreKind;

    /// Core 0 is a cube core; 1, 2 and 3 are vector cores. Core 1 is busy.
    fn cores() -> CoreSet {
        let mut cores = CoreSet::new();
        let kinds = [CoreKind::AIC, CoreKind::AIV, CoreKind::AIV, CoreKind::AIV];
        (0..).zip(kinds).for_each(|(worker, kind)| cores.add(worker, kind).unwrap());
        cores.set_apart(1);
        cores.assign(1, 7);
        cores
    }

    #[test]
    fn a_consumer_follows_on_the_same_core_or_waits_at_a_free_one() {
        let (cores, mut ahead) = (cores(), Ahead::new());
        assert_eq!(ahead.choose_core(&cores, 1, CoreKind::AIV), Some(1));
        assert_eq!(ahead.choose_core(&cores, 1, CoreKind::AIC), Some(0), "it is of another kind");
        ahead.note_staged((1, 0), 9);
        assert_eq!(ahead.choose_core(&cores, 1, CoreKind::AIC), None, "that one has its task");
    }

    #[test]
    fn what_was_replaced_is_no_longer_staged() {
        let mut ahead = Ahead::new();
        ahead.note_staged((1, 2), 9);
        let hint = ahead.take(1);
        assert_eq!(ahead.core_staged_for(hint, 9, |_| true), Some(2));
        assert_eq!(ahead.core_staged_for(hint, 8, |_| true), None, "another task");
        assert_eq!(ahead.core_staged_for(hint, 9, |_| false), None, "the core is not free");
        ahead.replace(2);
        assert_eq!(ahead.core_staged_for(hint, 9, |_| true), None);
        assert!(ahead.take(1).is_none(), "it is taken once");
    }
}
