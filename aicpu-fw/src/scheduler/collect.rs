//! The first half of a step: which cores have finished, and what is ready by that.
//!
//! Where a look at a core costs something, only those are looked at that are due ([`crate::pace`]), in turn; the
//! others when there is nothing else to do. A pass over the cores is left as soon as something is ready: it goes
//! to a core before further looks, and the next pass goes on where this one was left.

use pto_abi::Fault;
use pto_abi::kinds::TaskState;
use pto_abi::sync::{Ordering, Sharing};
use pto_abi::task::Task;
use pto_abi::trace::{TraceKind, TraceRecord};

use super::{RELEASES_A_STEP, Release, Scheduler};
use crate::fanout::{ConsumerWalk, FanoutPolicy};
use crate::platform::{CoreStatus, Platform};
use crate::state::kind_of;

impl<P: Platform, F: FanoutPolicy> Scheduler<'_, P, F> {
    /// Polls the busy cores that may have finished by now and completes what has, until the step's releases are
    /// used up.
    #[inline]
    pub(super) fn collect(&mut self, platform: &mut P) -> Result<bool, Fault> {
        let mut budget = RELEASES_A_STEP;
        let mut worked = false;
        if self.release.is_some() {
            worked = true;
            if let Some(Release { slot, walk }) = self.release.take() {
                self.look_at_clock(platform);
                self.go_on(platform, slot, walk, &mut budget);
            }
        }
        // Where a pass was left for a dispatch, the next one goes on, so that every core has its turn.
        let mut index = if P::POLLS_COST { core::mem::take(&mut self.look_from) } else { 0 };
        while self.release.is_none() {
            let Some(core) = self.cores.busy().get(index).copied().map(usize::from) else { break };
            if P::POLLS_COST && !self.pace.is_due(core, self.now_ns) {
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
                    index += usize::from(self.finished(platform, index, status, &mut budget)?);
                    worked = true;
                    if P::POLLS_COST && self.local.iter().any(|local| !local.is_empty()) {
                        // What is ready now does not wait for further looks.
                        self.look_from = index;
                        break;
                    }
                }
            }
        }
        Ok(worked)
    }

    /// There is nothing else to do: looks at the cores that are not due as well, until one has finished.
    pub(super) fn collect_early(&mut self, platform: &mut P) -> Result<bool, Fault> {
        let mut budget = RELEASES_A_STEP;
        for index in 0..self.busy_count() {
            let Some(core) = self.cores.busy().get(index).copied().map(usize::from) else { break };
            if self.pace.was_looked_at(core, self.now_ns) {
                continue;
            }
            match platform.poll(core) {
                CoreStatus::Busy => {}
                status => {
                    self.finished(platform, index, status, &mut budget)?;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The core at `index` of the busy ones has finished its task, or its only one: takes it out of service, or
    /// follows it to the next. Whether it is still at `index`, and need not be looked at again.
    #[inline]
    fn finished(
        &mut self,
        platform: &mut P,
        index: usize,
        status: CoreStatus,
        budget: &mut u32,
    ) -> Result<bool, Fault> {
        let Some(core) = self.cores.busy().get(index).copied().map(usize::from) else {
            return Ok(false);
        };
        if !matches!(status, CoreStatus::Finished | CoreStatus::FinishedMore) {
            return Err(self.wrong_status(core, status));
        }
        let slot = self.cores.running(core);
        if P::POLLS_COST {
            self.pace.finished(core, self.now_ns);
        }
        let next = if P::SLOTS > 1 { self.cores.advance(core) } else { None };
        match next.and_then(|next| self.state.task(next)) {
            Some(task) => {
                self.pace.start(core, task.func_id.load(Ordering::Relaxed), self.now_ns);
                if status == CoreStatus::FinishedMore {
                    self.pace.hurry(core);
                }
            }
            None => self.cores.release(index),
        }
        self.complete(platform, core, slot, budget);
        Ok(next.is_some() && status == CoreStatus::Finished)
    }

    #[cold]
    fn wrong_status(&mut self, core: usize, status: CoreStatus) -> Fault {
        let found = if let CoreStatus::Foreign(found) = status { found } else { 0 };
        let blame = self.blame_core(Fault::CORE_WRONG_STATUS, core);
        self.blame.leave(blame.detail(found.into(), 0))
    }

    /// Closes the fanout of the task that a core has finished, and releases its consumers.
    #[inline]
    fn complete(&mut self, platform: &mut P, core: usize, slot: u32, budget: &mut u32) {
        let Some(task) = self.state.task(slot) else { return };
        self.look_at_clock(platform);
        if P::TRACES {
            let (kind, extra) = (TraceKind::COMPLETED, self.cores.worker(core));
            let time_ns = self.traced_ns;
            platform.trace(TraceRecord { time_ns, kind, task: slot, extra });
        }
        let walk = ConsumerWalk::new(F::close::<P::Sharing>(task));
        self.go_on(platform, slot, walk, budget);
    }

    /// Where events are recorded: one look serves all events of a completion.
    #[inline]
    fn look_at_clock(&mut self, platform: &P) {
        if P::TRACES {
            self.traced_ns = platform.now_ns();
        }
    }

    #[inline]
    fn go_on(&mut self, platform: &mut P, slot: u32, mut walk: ConsumerWalk, budget: &mut u32) {
        let Some(task) = self.state.task(slot) else { return };
        while let Some(consumer) = walk.next(task, self.state.chunks) {
            self.release(platform, consumer);
            *budget = budget.saturating_sub(1);
            if *budget == 0 {
                self.release = Some(Release { slot, walk });
                return;
            }
        }
        // Release: pairs with the Acquire loads in `stream::Stream`, whose builder then reuses the slot and its edges:
        // nothing of the task is touched after this store.
        task.state.store(TaskState::COMPLETED.get(), Ordering::Release);
        self.completed += 1;
        self.unflushed += 1;
    }

    /// One producer of `consumer` has completed.
    #[inline]
    fn release(&mut self, platform: &mut P, consumer: u32) {
        let Some(task) = self.state.task(consumer) else { return };
        // AcqRel: Release passes on what this producer wrote; Acquire, in the last decrement, pairs with the
        // Release half of the others and with the publish in `release_published`.
        if P::Sharing::fetch_sub_u32(&task.fanin, 1, Ordering::AcqRel) == 1 {
            if P::TRACES {
                let (time_ns, kind) = (self.traced_ns, TraceKind::READY);
                platform.trace(TraceRecord { time_ns, kind, task: consumer, extra: 0 });
            }
            self.make_ready(consumer, task);
        }
    }

    #[inline]
    fn make_ready(&mut self, slot: u32, task: &Task) {
        let kind = kind_of(task);
        let local = &mut self.local[kind.index()];
        if let Err(slot) = local.push(slot) {
            self.state.queue(kind).push::<P::Sharing>(local);
            local.clear();
            self.shared = true;
            // There is room now.
            local.push(slot).unwrap_or_default();
        }
    }
}
