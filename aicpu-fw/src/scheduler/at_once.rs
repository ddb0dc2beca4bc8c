//! Tasks that run as soon as their doorbell is written: on a machine that steps a core from within the ring (`Machine::RUNS_AT_ONCE`) a
//! task has finished when its dispatch returns. Then there is nothing to poll and no core is ever busy: each task is
//! completed at once, and what is ready by that runs next, while its line is at hand. Others compute nothing of this.
//!
//! Invariants:
//! - *Bounded*: a step runs at most [`TASKS_A_STEP`] tasks, and none after a fault.
//! - *Shared*: other agents of the machine that ask for work (`Platform::asked_for`) are lent up to half of what is ready, on free
//!   cores, which are polled later.
//! - *No hoarding*: what is ready and has not run at the end of the step goes to the shared queues, as ever.
//! - A core that does not finish at once (it has left its loop, or reports something else) is busy from then on, and is
//!   polled as every other one.

use pto_abi::{CoreKind, Fault};

use super::collect::PollOutcome;
use super::completion::{Flow, NextTask, OnCore};
use super::dispatcher::Dispatcher;
use crate::fanout::FanoutPolicy;
use crate::machine::{Machine, Terms};
use crate::platform::{CoreStatus, Platform};

/// Tasks that one step runs at most: enough that the step itself does not show, few enough that the rest of the instance
/// (the watchdog, the other instances) gets its turn.
const TASKS_A_STEP: u32 = 128;
/// The same while others run some: what they have finished is to be seen soon.
const TASKS_A_STEP_WHEN_SHARED: u32 = 16;

/// Tasks that are taken from a shared queue at once, where no sibling asks for some: a line of its slots holds 8.
const TASKS_A_LOOK: usize = 8;

/// Tasks of one kind that were taken from a shared queue and have not run. They do not outlive the step.
struct Taken {
    slots: [u32; TASKS_A_LOOK],
    at: usize,
    end: usize,
    kind: CoreKind,
    // How many are taken at once.
    most: usize,
}

impl Taken {
    const fn new(most: usize) -> Self {
        Self { slots: [0; TASKS_A_LOOK], at: 0, end: 0, kind: CoreKind::AIC, most }
    }

    /// The oldest of them.
    #[inline(always)]
    fn pop(&mut self) -> Option<(u32, CoreKind)> {
        if self.at == self.end {
            return None;
        }
        let slot = self.slots.get(self.at).copied();
        self.at += 1;
        slot.map(|slot| (slot, self.kind))
    }

    /// Takes some of a kind that has a free core, if there are any. Nothing is left of the last ones.
    #[inline(always)]
    fn refill<P: Platform, F>(&mut self, flow: &Flow<'_, F>, free: &FreeCores, left: u32) {
        let most = self.most.min(left as usize);
        for kind in [CoreKind::AIC, CoreKind::AIV] {
            if free[kind.index()] != NONE {
                let slots = self.slots.get_mut(..most).unwrap_or_default();
                let queue = flow.dispatcher.state().queue(kind);
                (self.at, self.end, self.kind) = (0, queue.pop::<P::Sharing>(slots), kind);
                if self.end > 0 {
                    return;
                }
            }
        }
    }

    /// Whether nothing is left.
    #[inline(always)]
    const fn is_empty(&self) -> bool {
        self.at == self.end
    }
}

/// Where the next task comes from.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskSource {
    /// The newest of those that this step has made ready, of this kind.
    Own(CoreKind),
    /// The oldest of a shared queue, of a kind that has a free core, if there is one.
    Shared,
}

/// Decides where the next task comes from: what this step has made ready goes first.
#[inline(always)]
fn choose(has_own: impl Fn(CoreKind) -> bool, has_free: impl Fn(CoreKind) -> bool) -> TaskSource {
    for kind in [CoreKind::AIC, CoreKind::AIV] {
        if has_own(kind) && has_free(kind) {
            return TaskSource::Own(kind);
        }
    }
    TaskSource::Shared
}

/// What became of a task that was run.
enum AttemptResult {
    /// It is completed; what is ready by it and may run next, if anything.
    Finished(Option<(u32, CoreKind)>),
    /// The core has not finished.
    Busy,
}

/// The free core of each kind that is taken next, or [`NONE`].
type FreeCores = [usize; CoreKind::COUNT];
/// No core: one number where an `Option` would be two words.
const NONE: usize = usize::MAX;

/// Runs what is ready, each task to its end, until nothing is left or the step is.
#[inline(never)]
pub(super) fn run_ready<P: Platform, F: FanoutPolicy>(
    flow: &mut Flow<'_, F>,
    platform: &mut P,
    moved: &mut PollOutcome,
) -> Result<(), Fault> {
    flow.begin();
    let Terms { most, has_borrowers } = platform.machine().begin_step();
    let mut most = most.min(TASKS_A_STEP);
    let mut left = most;
    let mut free = free_cores(&flow.dispatcher);
    let mut taken = Taken::new(if has_borrowers { 1 } else { TASKS_A_LOOK });
    // Ready by the task that ran last, and in no queue.
    let mut next = None;
    while left > 0 && may_go_on(flow) {
        if has_borrowers && lend(flow, platform)? {
            moved.dispatched = true;
            let fewer = left.min(TASKS_A_STEP_WHEN_SHARED);
            most -= left - fewer;
            left = fewer;
            free = free_cores(&flow.dispatcher);
        }
        let ready = next.take().or_else(|| take_ready::<P, F>(flow, (&free, left), &mut taken));
        let Some((slot, kind)) = ready else { break };
        let core = free[kind.index()];
        if core == NONE {
            // Its cores have become busy: it waits for one.
            next = Some((slot, kind));
            break;
        }
        left -= 1;
        match run_task(flow, platform, OnCore { core, slot })? {
            AttemptResult::Finished(ready) => next = ready,
            AttemptResult::Busy => {
                flow.dispatcher.cores_mut().take(kind, slot);
                free = free_cores(&flow.dispatcher);
            }
        }
    }
    let ran = most - left;
    platform.machine().end_step(ran);
    moved.ran += ran;
    moved.collected |= ran > 0;
    let Flow { dispatcher, plain, .. } = flow;
    if let Some((slot, kind)) = next {
        plain.make_ready::<P>(dispatcher.state(), slot, kind);
    }
    while let Some((slot, kind)) = taken.pop() {
        plain.make_ready::<P>(dispatcher.state(), slot, kind);
    }
    plain.share_all::<P>(dispatcher.state());
    Ok(())
}

/// A ready task for which there is a free core, as it was chosen.
#[inline(always)]
fn take_ready<P: Platform, F>(
    flow: &mut Flow<'_, F>,
    (free, left): (&FreeCores, u32),
    taken: &mut Taken,
) -> Option<(u32, CoreKind)> {
    let has_free = |kind: CoreKind| free[kind.index()] != NONE;
    match choose(|kind| flow.plain.local_count(kind) > 0, has_free) {
        TaskSource::Own(kind) => flow.plain.pop_local(kind).map(|slot| (slot, kind)),
        TaskSource::Shared => {
            if taken.is_empty() {
                taken.refill::<P, F>(flow, free, left);
            }
            taken.pop()
        }
    }
}

/// Not while a large fanout waits to be released further, nor after a fault.
#[inline(always)]
fn may_go_on<F: FanoutPolicy>(flow: &Flow<'_, F>) -> bool {
    !flow.is_releasing() && !flow.dispatcher.state().fault.is_raised()
}

#[inline]
fn free_cores(dispatcher: &Dispatcher<'_>) -> FreeCores {
    [CoreKind::AIC, CoreKind::AIV].map(|kind| dispatcher.cores().free_core(kind).unwrap_or(NONE))
}

/// Runs one task on a free core.
#[inline(always)]
fn run_task<P: Platform, F: FanoutPolicy>(
    flow: &mut Flow<'_, F>,
    platform: &mut P,
    chosen: OnCore,
) -> Result<AttemptResult, Fault> {
    let (task, words) = flow.dispatcher.take_task::<P>(chosen.slot)?;
    match platform.run(chosen.core, words) {
        Ok(CoreStatus::Finished) => {}
        Ok(_) => return Ok(AttemptResult::Busy),
        Err(fault) => return Err(flow.dispatcher.refused::<P>(fault, chosen.core)),
    }
    let hands_over = flow.plain.hands_over();
    match flow.complete_task(platform, chosen, task, |_| hands_over)? {
        NextTask::Ready(next, kind) => Ok(AttemptResult::Finished(Some((next, kind)))),
        NextTask::Nothing | NextTask::Started => Ok(AttemptResult::Finished(None)),
    }
}

/// Lends ready tasks to the agents that ask. Whether there was any.
#[inline(always)]
fn lend<P: Platform, F>(flow: &mut Flow<'_, F>, platform: &mut P) -> Result<bool, Fault> {
    let asked = platform.machine().asked_for();
    if asked == 0 { Ok(false) } else { lend_some(flow, platform, asked) }
}

/// Lends what is ready to the agents that ask, the oldest first, up to `asked` tasks and half of all. Whether there was any.
#[inline(never)]
fn lend_some<P: Platform, F>(
    flow: &mut Flow<'_, F>,
    platform: &mut P,
    asked: usize,
) -> Result<bool, Fault> {
    let Flow { dispatcher, plain, .. } = flow;
    let mut has_lent = false;
    for &kind in CoreKind::ALL {
        let queue = dispatcher.state().queue(kind);
        let shared = usize::try_from(queue.len()).unwrap_or(usize::MAX);
        let all = shared + plain.local_count(kind);
        let count = asked.min(dispatcher.cores().free_count(kind)).min(all / 2);
        for _ in 0..count {
            let shared = dispatcher.state().queue(kind).pop_one::<P::Sharing>();
            let Some(slot) = shared.or_else(|| plain.pop_local(kind)) else { break };
            dispatcher.look_at_clock(platform);
            dispatcher.stage_on_free(platform, kind, slot)?;
            has_lent = true;
        }
    }
    if has_lent {
        dispatcher.commit(platform);
        platform.machine().lend();
    }
    Ok(has_lent)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{TaskSource, choose};
    use pto_abi::CoreKind;

    /// Every state: the own tasks before the queues, cube before vector, and only where a core is free.
    #[test]
    fn every_choice() {
        for bits in 0..16_u8 {
            let [own, free] = [bits & 3, bits >> 2];
            let of = |set: u8| move |kind: CoreKind| set >> kind.index() & 1 == 1;
            let runs = [CoreKind::AIC, CoreKind::AIV].map(|kind| of(own & free)(kind));
            let expected = match runs {
                [true, _] => TaskSource::Own(CoreKind::AIC),
                [false, true] => TaskSource::Own(CoreKind::AIV),
                [false, false] => TaskSource::Shared,
            };
            assert_eq!(choose(of(own), of(free)), expected, "{bits:b}");
        }
    }
}
