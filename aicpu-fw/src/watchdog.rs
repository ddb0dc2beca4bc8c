//! The progress watchdog of one instance: measures progress with the platform's clock, not idle steps.
//!
//! Two watches. A *core* that has had the same task for the task budget runs too long. The *run* stalls when no
//! counter has moved for the stall budget and no core of any instance is busy; a slow kernel on a busy core
//! is not a stall. Both cost nothing while the instance works.

use pto_abi::limits::MAX_WORKERS;
use pto_abi::sync::Ordering;

use crate::blame::Blame;
use crate::cores::Cores;
use crate::stall;
use crate::state::SharedState;

/// Idle steps between two looks at the clock.
const STEPS_A_LOOK: u32 = 64;

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub struct Budgets {
    /// One task on a core.
    pub task_ns: u64,
    /// No progress while no core is busy.
    pub stall_ns: u64,
    /// The whole run; zero: no limit.
    pub run_ns: u64,
}

pub(crate) struct Watchdog {
    budgets: Budgets,
    idle_steps: u32,
    started_ns: Option<u64>,
    progress: u64,
    progress_ns: u64,
    // What each core was seen running, and since when it has been seen so.
    seen: [(u32, u64); MAX_WORKERS],
}

impl Watchdog {
    pub(crate) const fn new(budgets: Budgets) -> Self {
        Self {
            budgets,
            idle_steps: 0,
            started_ns: None,
            progress: 0,
            progress_ns: 0,
            seen: [(u32::MAX, 0); MAX_WORKERS],
        }
    }

    #[inline]
    pub(crate) const fn worked(&mut self) {
        self.idle_steps = 0;
    }

    /// Whether it is time to look at the clock.
    #[inline]
    pub(crate) fn is_due(&mut self) -> bool {
        self.idle_steps = self.idle_steps.wrapping_add(1);
        self.idle_steps.is_multiple_of(STEPS_A_LOOK)
    }

    /// A busy core that has had one task for too long, and for how long. A core that was given the same slot
    /// anew between two looks is taken for one that still has it; slots are not reused within a run.
    pub(crate) fn overdue(&mut self, now: u64, cores: &Cores) -> Option<(usize, u64)> {
        for core in cores.busy().iter().copied().map(usize::from) {
            let seen = self.seen.get_mut(core)?;
            if seen.0 != cores.running(core) {
                *seen = (cores.running(core), now);
            } else if now.saturating_sub(seen.1) > self.budgets.task_ns {
                return Some((core, now - seen.1));
            }
        }
        None
    }

    /// Why the run does not get on, if it does not.
    pub(crate) fn stalled(&mut self, now: u64, state: &SharedState<'_>) -> Option<Blame> {
        let started = *self.started_ns.get_or_insert(now);
        if self.budgets.run_ns > 0 && now.saturating_sub(started) > self.budgets.run_ns {
            return Some(stall::over_budget(now - started));
        }
        let progress = fingerprint(state);
        let busy = state.sum(|line| line.busy_cores.load(Ordering::Relaxed).into());
        if progress != self.progress || busy > 0 || self.progress_ns == 0 {
            (self.progress, self.progress_ns) = (progress, now);
            return None;
        }
        let since = now.saturating_sub(self.progress_ns);
        (since > self.budgets.stall_ns).then(|| stall::classify(state, since))
    }
}

/// A number that changes whenever a task is added, published or completed.
fn fingerprint(state: &SharedState<'_>) -> u64 {
    let sum = state.sum(|line| {
        let added = line.added.load(Ordering::Relaxed);
        let published = line.published.load(Ordering::Relaxed);
        let satisfied = line.edges_satisfied.load(Ordering::Relaxed);
        let edges = line.edges.load(Ordering::Relaxed).wrapping_add(satisfied);
        added.wrapping_add(published).wrapping_add(edges)
    });
    sum.wrapping_sub(state.outstanding())
}
