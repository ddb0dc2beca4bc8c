//! The first half of a step: which cores have finished.
//!
//! Where a look at a core costs something, only those are looked at that are due ([`crate::pace`]), in turn; the
//! others when there is nothing else to do. A pass over the cores is left when something is ready and a look was in vain, or
//! [`ENDS_A_PASS`] tasks have ended: what is ready goes to a core before further looks, and the next pass goes on where this one was left.
//!
//! Invariant: a pass polls each busy core once (twice, if it had two dispatches).

use pto_abi::Fault;

use super::completion::{Flow, NextTask, OnCore};
use super::dispatcher::Dispatcher;
use crate::fanout::FanoutPolicy;
use crate::machine::Machine;
use crate::mutant::{self, Mutant};
use crate::platform::{CoreStatus, Platform};

/// Ends that one pass takes before what is ready by them is dispatched, where looks cost something: they share a turn and a barrier. Device
/// METG(50 %) of `tb_stencil_1d` is 4.5 us with 1, 4.1 with 2, 3.9 with 3 and with 4 (docs/decisions/polling.md).
const ENDS_A_PASS: u32 = 3;

/// What a step has moved so far.
#[derive(Clone, Copy, Default)]
pub(super) struct PollOutcome {
    /// A task was completed.
    pub(super) collected: bool,
    /// A task was staged for a core.
    pub(super) dispatched: bool,
    /// Tasks that ran from their starts to their ends.
    pub(super) ran: u32,
}

/// What a core does that has finished a task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextStep {
    /// Nothing: it is in service no more, and another one is at its index.
    Free,
    /// It goes on with its second dispatch.
    GoesOn,
    /// The core has finished its second dispatch too.
    LookAgain,
    /// It was given a task that is ready by what it has finished.
    HasNext,
}

/// What a busy core has answered.
#[derive(Clone, Copy)]
struct Answer {
    /// The core's index among the busy cores.
    index: usize,
    /// The core's index among all cores.
    core: usize,
    status: CoreStatus,
}

/// Where the passes over the busy cores go on.
#[derive(Hash)]
pub(super) struct PollCursor {
    from: usize,
    early_from: usize,
}

impl PollCursor {
    #[inline(always)]
    pub(super) const fn new() -> Self {
        Self { from: 0, early_from: 0 }
    }

    /// Polls the busy cores that may have finished by now and completes what has, until the releases of the pass are
    /// used up.
    #[inline(always)]
    pub(super) fn collect<P: Platform, F: FanoutPolicy>(
        &mut self,
        flow: &mut Flow<'_, F>,
        platform: &mut P,
        moved: &mut PollOutcome,
    ) -> Result<(), Fault> {
        flow.begin();
        if flow.is_releasing() {
            moved.collected = true;
            flow.resume(platform);
        }
        if P::Machine::RUNS_AT_ONCE && !platform.has_news(flow.dispatcher.cores().busy()) {
            return Ok(());
        }
        // Where a pass was left for a dispatch, the next one goes on, so that every core has its turn.
        let mut index = if P::Machine::POLLS_COST { core::mem::take(&mut self.from) } else { 0 };
        let mut ends = 0;
        while !flow.is_releasing() {
            let core = flow.dispatcher.cores().busy().get(index).copied().map(usize::from);
            let Some(core) = core else { break };
            if P::Machine::POLLS_COST && !is_due(&flow.dispatcher, core) {
                index += 1;
                continue;
            }
            match platform.poll(core) {
                CoreStatus::Busy => {
                    index += 1;
                    if P::Machine::POLLS_COST {
                        flow.dispatcher.pace_mut().looked_in_vain(core);
                        if ends > 0 {
                            // What is ready waits for no second one of these.
                            ends = ENDS_A_PASS;
                        }
                    }
                }
                status => {
                    moved.collected = true;
                    ends += u32::from(P::Machine::POLLS_COST);
                    match finished(flow, platform, Answer { index, core, status })? {
                        NextStep::Free | NextStep::LookAgain => {}
                        NextStep::GoesOn => index += 1,
                        NextStep::HasNext => {
                            moved.dispatched = true;
                            index += 1;
                        }
                    }
                }
            }
            if P::Machine::POLLS_COST
                && ends >= ENDS_A_PASS
                && (moved.dispatched || flow.plain.has_local())
            {
                self.from = index;
                break;
            }
        }
        Ok(())
    }

    /// There is nothing else to do: looks at the cores that are not due as well, until one has finished.
    pub(super) fn collect_early<P: Platform, F: FanoutPolicy>(
        &mut self,
        flow: &mut Flow<'_, F>,
        platform: &mut P,
        moved: &mut PollOutcome,
    ) -> Result<(), Fault> {
        flow.begin();
        let count = flow.dispatcher.cores().busy().len();
        let first = if self.early_from < count { self.early_from } else { 0 };
        for index in (first..count).chain(0..first) {
            let core = flow.dispatcher.cores().busy().get(index).copied().map(usize::from);
            let Some(core) = core else { break };
            if flow.dispatcher.pace().was_looked_at(core) || mutant::is(Mutant::NeverLooks) {
                continue;
            }
            match platform.poll(core) {
                CoreStatus::Busy => {}
                status => {
                    let then = finished(flow, platform, Answer { index, core, status })?;
                    self.early_from = index + usize::from(then != NextStep::Free);
                    *moved = PollOutcome {
                        collected: true,
                        dispatched: then == NextStep::HasNext,
                        ran: 0,
                    };
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Whether a look at the core is likely to be worth it.
#[inline(always)]
fn is_due(dispatcher: &Dispatcher<'_>, core: usize) -> bool {
    dispatcher.pace().is_due(core) && !mutant::is(Mutant::NeverLooks)
}

/// A busy core, by its index among them, has finished its task: completes it, and gives the core what is ready by
/// that, or lets it follow its second dispatch, or takes it out of service.
#[inline]
fn finished<P: Platform, F: FanoutPolicy>(
    flow: &mut Flow<'_, F>,
    platform: &mut P,
    answer: Answer,
) -> Result<NextStep, Fault> {
    let Answer { index, core, status } = answer;
    if !matches!(status, CoreStatus::Finished | CoreStatus::FinishedMore) {
        return Err(flow.dispatcher.wrong_status::<P>(core, status));
    }
    let slot = flow.dispatcher.cores().running(core);
    if P::Machine::POLLS_COST {
        flow.dispatcher.pace_mut().finished(core);
    }
    if P::Machine::SLOTS > 1
        && let Some(second) = flow.dispatcher.follow::<P>(core, status)
    {
        let is_wrong = mutant::is(Mutant::TakesTheSecondForTheFirst);
        let slot = if is_wrong { second } else { slot };
        flow.complete(platform, OnCore { core, slot }, |_| false)?;
        let more = status == CoreStatus::FinishedMore;
        return Ok(if more { NextStep::LookAgain } else { NextStep::GoesOn });
    }
    let kind = flow.dispatcher.cores().kind(core);
    let hands_over = flow.plain.hands_over();
    let wants = |ready| hands_over && ready == kind;
    match flow.complete(platform, OnCore { core, slot }, wants)? {
        NextTask::Nothing => {
            flow.dispatcher.set_free::<P>(index, kind);
            Ok(NextStep::Free)
        }
        NextTask::Ready(next, _) => {
            flow.dispatcher.stage_next(platform, core, next)?;
            Ok(NextStep::HasNext)
        }
        NextTask::Started => Ok(NextStep::GoesOn),
    }
}
