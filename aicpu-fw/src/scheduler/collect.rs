//! The first half of a step: which cores have finished, and what is ready by that.
//!
//! Where a look at a core costs something, only those are looked at that are due ([`crate::pace`]), in turn; the
//! others when there is nothing else to do. A pass over the cores is left as soon as something is ready: it goes
//! to a core before further looks, and the next pass goes on where this one was left.

use pto_abi::kinds::TaskState;
use pto_abi::sync::{Ordering, Sharing};
use pto_abi::task::{INLINE_CONSUMERS, Task};
use pto_abi::trace::{TraceKind, TracePoint};
use pto_abi::{CoreKind, Fault};

use super::parts::is_shaped;
use super::{RELEASES_A_STEP, Release, Scheduler};
use crate::fanout::{ConsumerWalk, FanoutPolicy};
use crate::mutant::{self, Mutant};
use crate::platform::{CoreStatus, Platform};
use crate::state::kind_in;

/// Consumers in a task's own line.
#[expect(clippy::cast_possible_truncation, reason = "five")]
const INLINE: u32 = INLINE_CONSUMERS as u32;

/// What a pass over the cores has moved.
#[derive(Clone, Copy, Default)]
pub(super) struct Moved {
    /// A task was completed.
    pub(super) collected: bool,
    /// A task was staged for the core that its producer had.
    pub(super) dispatched: bool,
    /// Tasks that ran from their starts to their ends.
    pub(super) ran: u32,
}

/// What a core does that has finished a task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    /// Nothing: it is in service no more, and another one stands at its index.
    Free,
    /// It goes on with its second dispatch.
    GoesOn,
    /// It has finished its second dispatch too.
    LookAgain,
    /// It was given a task that is ready by what it has finished.
    HasNext,
}

/// What a core that has finished a task could run next, of what is ready by that.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing that is wanted.
    Nothing,
    /// This task, of this kind, which is in no queue.
    Ready(u32, CoreKind),
    /// A task that was staged ahead for it, and has been rung.
    Rung,
}

impl<P: Platform, F: FanoutPolicy> Scheduler<'_, P, F> {
    /// Polls the busy cores that may have finished by now and completes what has, until the step's releases are
    /// used up.
    #[inline]
    pub(super) fn collect(&mut self, platform: &mut P, moved: &mut Moved) -> Result<(), Fault> {
        let mut budget = RELEASES_A_STEP;
        if self.release.is_some() {
            moved.collected = true;
            self.resume(platform, &mut budget);
        }
        if P::RUNS_AT_ONCE && !platform.has_news(self.cores.busy()) {
            return Ok(());
        }
        // Where a pass was left for a dispatch, the next one goes on, so that every core has its turn.
        let mut index = if P::POLLS_COST { core::mem::take(&mut self.look_from) } else { 0 };
        while self.release.is_none() {
            let Some(core) = self.cores.busy().get(index).copied().map(usize::from) else { break };
            let is_due = self.pace.is_due(core, self.now_ns) && !mutant::is(Mutant::NeverLooks);
            if P::POLLS_COST && !is_due {
                index += 1;
                continue;
            }
            match platform.poll(core) {
                CoreStatus::Busy => {
                    if P::POLLS_COST {
                        self.pace.looked_in_vain(core, self.now_ns);
                    }
                    index += 1;
                }
                status => {
                    moved.collected = true;
                    match self.finished(platform, (index, core), status, &mut budget)? {
                        Then::Free | Then::LookAgain => {}
                        Then::GoesOn => index += 1,
                        Then::HasNext => {
                            moved.dispatched = true;
                            index += 1;
                        }
                    }
                    let is_ready = || self.local.iter().any(|local| !local.is_empty());
                    if P::POLLS_COST && (moved.dispatched || is_ready()) {
                        // What is ready now does not wait for further looks.
                        self.look_from = index;
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// There is nothing else to do: looks at the cores that are not due as well, until one has finished.
    pub(super) fn collect_early(
        &mut self,
        platform: &mut P,
        moved: &mut Moved,
    ) -> Result<(), Fault> {
        let mut budget = RELEASES_A_STEP;
        let count = self.busy_count();
        let first = if self.early_from < count { self.early_from } else { 0 };
        for index in (first..count).chain(0..first) {
            let Some(core) = self.cores.busy().get(index).copied().map(usize::from) else { break };
            if self.pace.was_looked_at(core, self.now_ns) || mutant::is(Mutant::NeverLooks) {
                continue;
            }
            match platform.poll(core) {
                CoreStatus::Busy => {}
                status => {
                    let then = self.finished(platform, (index, core), status, &mut budget)?;
                    self.early_from = index + usize::from(then != Then::Free);
                    *moved = Moved { collected: true, dispatched: then == Then::HasNext, ran: 0 };
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// A busy core, by its index among them, has finished its task: completes it, and gives the core what is ready by
    /// that, or lets it follow its second dispatch, or takes it out of service.
    #[inline]
    fn finished(
        &mut self,
        platform: &mut P,
        (index, core): (usize, usize),
        status: CoreStatus,
        budget: &mut u32,
    ) -> Result<Then, Fault> {
        if !matches!(status, CoreStatus::Finished | CoreStatus::FinishedMore) {
            return Err(self.wrong_status(core, status));
        }
        let slot = self.cores.running(core);
        if P::POLLS_COST {
            self.pace.finished(core, self.now_ns);
        }
        if P::SLOTS > 1
            && let Some(second) = self.follow(core, status)
        {
            let is_wrong = mutant::is(Mutant::TakesTheSecondForTheFirst);
            let slot = if is_wrong { second } else { slot };
            self.complete(platform, core, slot, |_| false, budget)?;
            let more = status == CoreStatus::FinishedMore;
            return Ok(if more { Then::LookAgain } else { Then::GoesOn });
        }
        let kind = self.cores.kind(core);
        let hands_over = self.hands_over;
        let wants = |ready| hands_over && ready == kind;
        match self.complete(platform, core, slot, wants, budget)? {
            Next::Nothing => {
                self.cores.release(index);
                if P::STAGES_AHEAD {
                    self.ahead.is_free(kind);
                }
                Ok(Then::Free)
            }
            Next::Ready(next, _) => {
                self.cores.goes_on_with(core, next);
                self.stage_first(platform, core, next)?;
                Ok(Then::HasNext)
            }
            Next::Rung => Ok(Then::GoesOn),
        }
    }

    /// The second dispatch of a core that has finished the first one, which it follows to.
    fn follow(&mut self, core: usize, status: CoreStatus) -> Option<u32> {
        let second = self.cores.advance(core).filter(|_| !mutant::is(Mutant::ForgetsTheSecond))?;
        let func_id = self.state.task(second)?.func_id.load(Ordering::Relaxed);
        self.pace.start(core, func_id, self.now_ns);
        if status == CoreStatus::FinishedMore {
            self.pace.hurry(core);
        } else if P::STAGES_AHEAD {
            self.ahead.starts(core);
        }
        Some(second)
    }

    #[cold]
    fn wrong_status(&mut self, core: usize, status: CoreStatus) -> Fault {
        let found = if let CoreStatus::Foreign(found) = status { found } else { 0 };
        let blame = self.blame_core(Fault::CORE_WRONG_STATUS, core);
        self.blame.leave(blame.detail(found.into(), 0))
    }

    /// Closes the fanout of the task that a core has finished, and releases its consumers. Returns the first one of a
    /// kind that is wanted and is ready by that, if any; it is in no queue then. What was staged ahead is rung.
    #[inline]
    pub(super) fn complete(
        &mut self,
        platform: &mut P,
        core: usize,
        slot: u32,
        wants: impl Fn(CoreKind) -> bool,
        budget: &mut u32,
    ) -> Result<Next, Fault> {
        let Some(task) = self.state.task(slot) else {
            if P::SHAPES {
                self.part_finished(platform, core, slot, budget);
            }
            return Ok(Next::Nothing);
        };
        self.look_at_clock(platform);
        if P::TRACES {
            let (kind, extra) = (TraceKind::COMPLETED, self.cores.worker(core));
            let time_ns = self.traced_ns;
            platform.trace(TracePoint { time_ns, kind, task: slot, extra });
        }
        let lost = u32::from(mutant::is(Mutant::DropsAnEdge));
        let count = F::close::<P::Sharing>(task).saturating_sub(lost);
        let mut next = Next::Nothing;
        let hint = if P::STAGES_AHEAD { self.ahead.take(core) } else { None };
        let in_line = task.consumers.get(..count.min(INLINE) as usize);
        for consumer in in_line.unwrap_or(&task.consumers) {
            let consumer = consumer.load(Ordering::Relaxed);
            let ready = self.release(platform, consumer);
            let Some(kind) = ready.or_else(|| self.too_early(hint, consumer)) else { continue };
            if P::STAGES_AHEAD
                && self.hands_over
                && let Some(target) = self.stands_on(hint, consumer, (core, wants(kind)))
            {
                self.ring_ahead(platform, (core, target), consumer)?;
                if target == core
                    && let Next::Ready(other, kind) = core::mem::replace(&mut next, Next::Rung)
                {
                    self.make_ready(other, kind);
                }
            } else if next == Next::Nothing && wants(kind) {
                next = Next::Ready(consumer, kind);
            } else {
                self.make_ready(consumer, kind);
            }
        }
        if count > INLINE {
            *budget = budget.saturating_sub(INLINE);
            let walk = ConsumerWalk::beyond_the_line(count);
            self.go_on(platform, slot, walk, budget);
        } else {
            self.is_completed(task);
        }
        Ok(next)
    }

    /// All its consumers are released.
    #[inline]
    fn is_completed(&mut self, task: &Task) {
        if !mutant::is(Mutant::ForgetsTheState) {
            // Release: pairs with the Acquire loads in `stream::Stream`, whose builder then reuses the slot and its edges:
            // nothing of the task is touched after this store.
            task.state.store(TaskState::COMPLETED.get(), Ordering::Release);
        }
        self.completed += 1;
        self.unflushed += u64::from(!mutant::is(Mutant::CountsTooEarly));
    }

    /// Goes on with the release that an earlier step has left.
    #[cold]
    fn resume(&mut self, platform: &mut P, budget: &mut u32) {
        if let Some(Release { slot, walk }) = self.release.take() {
            self.look_at_clock(platform);
            self.go_on(platform, slot, walk, budget);
        }
    }

    /// Where events are recorded: one look serves all events of a completion.
    #[inline]
    fn look_at_clock(&mut self, platform: &P) {
        if P::TRACES {
            self.traced_ns = platform.now_ns();
        }
    }

    /// Releases the consumers of a large fanout, as far as the step's budget goes.
    #[inline(never)]
    pub(super) fn go_on(
        &mut self,
        platform: &mut P,
        slot: u32,
        mut walk: ConsumerWalk,
        budget: &mut u32,
    ) {
        let Some(task) = self.state.task(slot) else { return };
        while let Some(consumer) = walk.next(task, self.state.chunks) {
            if let Some(kind) = self.release(platform, consumer) {
                self.make_ready(consumer, kind);
            }
            *budget = budget.saturating_sub(1);
            if *budget == 0 {
                self.release = Some(Release { slot, walk });
                return;
            }
        }
        self.is_completed(task);
    }

    /// One producer of `consumer` has completed; the consumer's kind, if it is ready by that for a core of that kind.
    #[inline(always)]
    fn release(&mut self, platform: &mut P, consumer: u32) -> Option<CoreKind> {
        let task = self.state.task(consumer)?;
        if mutant::is(Mutant::ReleasesTwice) {
            P::Sharing::fetch_sub_u32(&task.fanin, 1, Ordering::Relaxed);
        }
        // AcqRel: Release passes on what this producer wrote; Acquire, in the last decrement, pairs with the
        // Release half of the others and with the publish in `release_published`.
        if P::Sharing::fetch_sub_u32(&task.fanin, 1, Ordering::AcqRel) != 1 {
            return None;
        }
        if P::TRACES {
            let (time_ns, kind) = (self.traced_ns, TraceKind::READY);
            platform.trace(TracePoint { time_ns, kind, task: consumer, extra: 0 });
        }
        let kind = task.kind.load(Ordering::Relaxed);
        if P::SHAPES && is_shaped(kind) {
            self.shaped_is_ready(consumer);
            return None;
        }
        Some(kind_in(kind))
    }

    #[inline(always)]
    pub(super) fn make_ready(&mut self, slot: u32, kind: CoreKind) {
        let local = &mut self.local[kind.index()];
        if local.push(slot).is_err() {
            self.make_room(kind);
            // There is room now.
            self.local[kind.index()].push(slot).unwrap_or_default();
        }
    }

    /// Gives the newly ready tasks away.
    #[cold]
    pub(super) fn make_room(&mut self, kind: CoreKind) {
        let local = &mut self.local[kind.index()];
        self.state.queue(kind).push::<P::Sharing>(local);
        local.clear();
        self.shared = true;
    }
}
