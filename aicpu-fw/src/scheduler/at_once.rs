//! Tasks that run where they are rung: on a machine that steps a core from within the ring (`Abilities::RUNS_AT_ONCE`) a
//! task has finished when its dispatch returns. Then there is nothing to poll and no core is ever busy: each task is
//! completed at once, and what is ready by that runs next, while its line is at hand. Others compute nothing of this.
//!
//! Invariants:
//! - *Bounded*: a step runs at most [`TASKS_A_STEP`] tasks, and none after a fault.
//! - *Shared*: other agents of the machine that ask for work ([`Platform::asked_for`]) get up to half of what is ready, in the
//!   ordinary way: staged on free cores, which are polled later.
//! - *No hoarding*: what is ready and has not run at the end of the step goes to the shared queues, as ever.
//! - A core that does not finish at once (it has left its loop, or reports something else) is busy from then on, and is
//!   polled as every other one.

use pto_abi::{CoreKind, Fault};

use super::collect::Moved;
use super::completion::{Completions, Next};
use super::dispatcher::Dispatcher;
use super::plain::PlainTasks;
use crate::fanout::FanoutPolicy;
use crate::platform::{CoreStatus, Platform};

/// Tasks that one step runs at most: enough that the step itself does not show, few enough that the rest of the instance
/// (the watchdog, the other instances) gets its turn.
const TASKS_A_STEP: u32 = 128;
/// The same while others run some: what they have finished is to be seen soon.
const TASKS_BESIDE_OTHERS: u32 = 16;

/// Where the next task comes from.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// The newest of those that this step has made ready, of this kind.
    Own(CoreKind),
    /// The oldest of the shared queue of this kind.
    Shared(CoreKind),
    /// Nothing is ready for which there is a free core.
    Nothing,
}

/// Decides where the next task comes from: what this step has made ready goes first. `is_queued` looks at the shared queue of a
/// kind, and is asked only where the answer matters.
#[inline(always)]
fn choose(
    has_own: [bool; CoreKind::COUNT],
    has_free: [bool; CoreKind::COUNT],
    is_queued: impl Fn(CoreKind) -> bool,
) -> Choice {
    for kind in [CoreKind::AIC, CoreKind::AIV] {
        if has_own[kind.index()] && has_free[kind.index()] {
            return Choice::Own(kind);
        }
    }
    for kind in [CoreKind::AIC, CoreKind::AIV] {
        if has_free[kind.index()] && is_queued(kind) {
            return Choice::Shared(kind);
        }
    }
    Choice::Nothing
}

/// What became of a task that was run.
enum Ran {
    /// It is completed; what is ready by it and may run next, if anything.
    Finished(Option<(u32, CoreKind)>),
    /// The core has not finished.
    Busy,
}

/// The free core of each kind that is taken next.
type FreeCores = [Option<usize>; CoreKind::COUNT];

/// The tasks that one step runs.
pub(super) struct AtOnce {
    left: u32,
    free: FreeCores,
    /// Ready by the task that ran last, and in no queue.
    next: Option<(u32, CoreKind)>,
}

impl AtOnce {
    /// Runs what is ready, each task to its end, until nothing is left or the step is.
    #[inline(never)]
    pub(super) fn run_ready<'a, P: Platform, F: FanoutPolicy>(
        completions: &mut Completions<'a, F>,
        (dispatcher, plain): (&mut Dispatcher<'a>, &mut PlainTasks<'a>),
        platform: &mut P,
        moved: &mut Moved,
    ) -> Result<(), Fault> {
        completions.begin();
        let mut step = Self { left: TASKS_A_STEP, free: free_cores(dispatcher), next: None };
        let has_borrowers = platform.has_borrowers();
        // Not while a large fanout waits to be released further, nor after a fault.
        while step.left > 0 && !completions.is_releasing() && !dispatcher.state().fault.is_raised()
        {
            if has_borrowers && lend(dispatcher, plain, platform)? {
                moved.dispatched = true;
                step.left = step.left.min(TASKS_BESIDE_OTHERS);
                step.free = free_cores(dispatcher);
            }
            let Some((slot, kind)) = step.take_next::<P>(dispatcher, plain) else { break };
            let Some(core) = step.free[kind.index()] else {
                // Its cores have become busy: it waits for one.
                step.next = Some((slot, kind));
                break;
            };
            step.left -= 1;
            let parts = (&mut *dispatcher, &mut *plain);
            match run_task(completions, parts, platform, (core, slot))? {
                Ran::Finished(ready) => step.next = ready,
                Ran::Busy => {
                    dispatcher.cores_mut().take(kind, slot);
                    step.free = free_cores(dispatcher);
                }
            }
        }
        moved.ran += TASKS_A_STEP - step.left;
        moved.collected |= moved.ran > 0;
        if let Some((slot, kind)) = step.next {
            plain.make_ready::<P>(dispatcher.state(), slot, kind);
        }
        plain.share_all::<P>(dispatcher.state());
        Ok(())
    }

    /// The task that runs next.
    #[inline(always)]
    fn take_next<P: Platform>(
        &mut self,
        dispatcher: &Dispatcher<'_>,
        plain: &mut PlainTasks<'_>,
    ) -> Option<(u32, CoreKind)> {
        if let Some(next) = self.next.take() {
            return Some(next);
        }
        let state = dispatcher.state();
        let has_own = [CoreKind::AIC, CoreKind::AIV].map(|kind| plain.local_count(kind) > 0);
        let is_queued = |kind| state.queue(kind).has_ready::<P::Sharing>();
        match choose(has_own, self.free.map(|core| core.is_some()), is_queued) {
            Choice::Own(kind) => plain.pop_local(kind).map(|slot| (slot, kind)),
            Choice::Shared(kind) => {
                state.queue(kind).pop_one::<P::Sharing>().map(|slot| (slot, kind))
            }
            Choice::Nothing => None,
        }
    }
}

#[inline]
fn free_cores(dispatcher: &Dispatcher<'_>) -> FreeCores {
    [CoreKind::AIC, CoreKind::AIV].map(|kind| dispatcher.cores().free_core(kind))
}

/// Runs one task on a free core.
#[inline(always)]
fn run_task<'a, P: Platform, F: FanoutPolicy>(
    completions: &mut Completions<'a, F>,
    (dispatcher, plain): (&mut Dispatcher<'a>, &mut PlainTasks<'a>),
    platform: &mut P,
    (core, slot): (usize, u32),
) -> Result<Ran, Fault> {
    let words = dispatcher.take_published::<P>(slot)?;
    match platform.run(core, words) {
        Ok(CoreStatus::Finished) => {}
        Ok(_) => return Ok(Ran::Busy),
        Err(fault) => return Err(dispatcher.refused(fault, core)),
    }
    let hands_over = plain.hands_over();
    match completions.complete((dispatcher, plain), platform, (core, slot), |_| hands_over)? {
        Next::Ready(next, kind) => Ok(Ran::Finished(Some((next, kind)))),
        Next::Nothing | Next::Rung => Ok(Ran::Finished(None)),
    }
}

/// Lends to those who ask for it. Whether there was anything.
#[inline(always)]
fn lend<P: Platform>(
    dispatcher: &mut Dispatcher<'_>,
    plain: &mut PlainTasks<'_>,
    platform: &mut P,
) -> Result<bool, Fault> {
    let asked = platform.asked_for();
    if asked == 0 { Ok(false) } else { lend_some(dispatcher, plain, platform, asked) }
}

/// Stages what is ready for those who ask, the oldest first, up to `asked` tasks and half of all. Whether there was any.
#[inline(never)]
fn lend_some<P: Platform>(
    dispatcher: &mut Dispatcher<'_>,
    plain: &mut PlainTasks<'_>,
    platform: &mut P,
    asked: usize,
) -> Result<bool, Fault> {
    let mut has_lent = false;
    for &kind in CoreKind::ALL {
        let queue = dispatcher.state().queue(kind);
        let shared = usize::try_from(queue.len()).unwrap_or(usize::MAX);
        let all = shared + plain.local_count(kind);
        let count = asked.min(dispatcher.cores().free_count(kind)).min(all / 2);
        for _ in 0..count {
            let shared = dispatcher.state().queue(kind).pop_one::<P::Sharing>();
            let Some(slot) = shared.or_else(|| plain.pop_local(kind)) else { break };
            dispatcher.stage_on_free(platform, kind, slot)?;
            has_lent = true;
        }
    }
    if has_lent {
        dispatcher.commit(platform);
        platform.lend();
    }
    Ok(has_lent)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{Choice, choose};
    use pto_abi::CoreKind;

    /// Every state: the own tasks before the queues, cube before vector, and only where a core is free.
    #[test]
    fn every_choice() {
        for bits in 0..64_u8 {
            let bit = |bit: usize| bits >> bit & 1 == 1;
            let pair = |first: usize| [bit(first), bit(first + 1)];
            let (own, free, queued) = (pair(0), pair(2), pair(4));
            let mut runnable = [CoreKind::AIC, CoreKind::AIV]
                .into_iter()
                .filter(|kind| own[kind.index()] && free[kind.index()])
                .map(Choice::Own)
                .chain([CoreKind::AIC, CoreKind::AIV].into_iter().filter_map(|kind| {
                    let can_run = queued[kind.index()] && free[kind.index()];
                    can_run.then_some(Choice::Shared(kind))
                }));
            let expected = runnable.next().unwrap_or(Choice::Nothing);
            assert_eq!(choose(own, free, |kind| queued[kind.index()]), expected, "{bits:b}");
        }
    }
}
