//! Tasks that run where they are rung: on a machine that steps a core from within the ring ([`Platform::RUNS_AT_ONCE`]) a
//! task has finished when its dispatch returns. Then there is nothing to poll and no core is ever busy: each task is
//! completed at once, and what is ready by that runs next, while its line is at hand. Others compute nothing of this.
//!
//! - *Bounded*: a step runs at most [`TASKS_A_STEP`] tasks, and none after a fault.
//! - *Shared*: other agents of the machine that ask for work (`Platform::asked_for`) get up to half of what is ready, in the
//!   ordinary way: staged on free cores, which are polled later.
//! - *No hoarding*: what is ready and has not run at the end of the step goes to the shared queues, as ever.
//! - A core that does not finish at once (it has left its loop, or reports something else) is busy from then on, and is
//!   polled as every other one.

use pto_abi::{CoreKind, Fault};

use super::collect::{Moved, Next};
use super::{RELEASES_A_STEP, Scheduler};
use crate::fanout::FanoutPolicy;
use crate::platform::{CoreStatus, Platform};

/// Tasks that one step runs at most: enough that the step itself does not show, few enough that the rest of the instance
/// (the watchdog, the other instances) gets its turn.
const TASKS_A_STEP: u32 = 128;
/// The same while others run some: what they have finished is to be seen soon.
const TASKS_BESIDE_OTHERS: u32 = 16;

/// What became of a task that was run.
enum Ran {
    /// It is completed; what is ready by it and may run next, if anything.
    Finished(Option<(u32, CoreKind)>),
    /// The core has not finished.
    Busy,
}

impl<P: Platform, F: FanoutPolicy> Scheduler<'_, P, F> {
    /// Runs what is ready, each task to its end, until nothing is left or the step is.
    #[inline(never)]
    pub(super) fn run_ready(&mut self, platform: &mut P, moved: &mut Moved) -> Result<(), Fault> {
        let (mut left, mut budget) = (TASKS_A_STEP, RELEASES_A_STEP);
        let has_borrowers = platform.has_borrowers();
        let mut free = self.free_cores();
        let mut next = None;
        while left > 0 && self.may_go_on() {
            if has_borrowers && self.lend(platform)? {
                moved.dispatched = true;
                left = left.min(TASKS_BESIDE_OTHERS);
                free = self.free_cores();
            }
            let Some((slot, kind)) = next.take().or_else(|| self.take_ready(&free)) else { break };
            let Some(core) = free[kind.index()] else {
                // Its cores have become busy: it waits for one.
                next = Some((slot, kind));
                break;
            };
            left -= 1;
            match self.run_task(platform, core, slot, &mut budget)? {
                Ran::Finished(ready) => next = ready,
                Ran::Busy => {
                    self.cores.take(kind, slot);
                    free = self.free_cores();
                }
            }
        }
        moved.ran += TASKS_A_STEP - left;
        moved.collected |= moved.ran > 0;
        if let Some((slot, kind)) = next {
            self.make_ready(slot, kind);
        }
        for &kind in CoreKind::ALL {
            if !self.local[kind.index()].is_empty() {
                self.make_room(kind);
            }
        }
        Ok(())
    }

    /// The free core of each kind that is taken next.
    #[inline]
    fn free_cores(&self) -> [Option<usize>; CoreKind::COUNT] {
        [CoreKind::AIC, CoreKind::AIV].map(|kind| self.cores.free_core(kind))
    }

    /// Lends to those who ask for it. Whether there was anything.
    #[inline(always)]
    fn lend(&mut self, platform: &mut P) -> Result<bool, Fault> {
        let asked = platform.asked_for();
        if asked == 0 { Ok(false) } else { self.lend_some(platform, asked) }
    }

    /// Stages what is ready for those who ask, the oldest first, up to `asked` tasks and half of all. Whether there was any.
    #[inline(never)]
    fn lend_some(&mut self, platform: &mut P, asked: usize) -> Result<bool, Fault> {
        let mut has_lent = false;
        for &kind in CoreKind::ALL {
            let shared = usize::try_from(self.state.queue(kind).len()).unwrap_or(usize::MAX);
            let local = self.local[kind.index()].len();
            let count = asked.min(self.cores.free_count(kind)).min((shared + local) / 2);
            for _ in 0..count {
                let shared = self.state.queue(kind).pop_one::<P::Sharing>();
                let Some(slot) = shared.or_else(|| self.local[kind.index()].pop()) else { break };
                self.stage_on_free(platform, kind, slot)?;
                has_lent = true;
            }
        }
        if has_lent {
            platform.commit();
            platform.lend();
        }
        Ok(has_lent)
    }

    /// Not while a large fanout waits to be released further, nor after a fault.
    #[inline(always)]
    fn may_go_on(&self) -> bool {
        self.release.is_none() && !self.state.fault.is_raised()
    }

    /// A ready task for which there is a free core: what this step has made ready first, the newest first, then the oldest of
    /// the shared queues.
    #[inline(always)]
    fn take_ready(&mut self, free: &[Option<usize>; CoreKind::COUNT]) -> Option<(u32, CoreKind)> {
        for kind in [CoreKind::AIC, CoreKind::AIV] {
            if !self.local[kind.index()].is_empty() && free[kind.index()].is_some() {
                return self.local[kind.index()].pop().map(|slot| (slot, kind));
            }
        }
        for kind in [CoreKind::AIC, CoreKind::AIV] {
            if free[kind.index()].is_some()
                && let Some(slot) = self.state.queue(kind).pop_one::<P::Sharing>()
            {
                return Some((slot, kind));
            }
        }
        None
    }

    /// Runs one task on a free core.
    #[inline(always)]
    fn run_task(
        &mut self,
        platform: &mut P,
        core: usize,
        slot: u32,
        budget: &mut u32,
    ) -> Result<Ran, Fault> {
        let words = self.take_published(slot)?;
        match platform.run(core, words) {
            Ok(CoreStatus::Finished) => {}
            Ok(_) => return Ok(Ran::Busy),
            Err(fault) => return Err(self.refused(fault, core)),
        }
        let hands_over = self.hands_over;
        match self.complete(platform, core, slot, |_| hands_over, budget)? {
            Next::Ready(next, kind) => Ok(Ran::Finished(Some((next, kind)))),
            Next::Nothing | Next::Rung => Ok(Ran::Finished(None)),
        }
    }
}
