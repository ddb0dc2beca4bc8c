//! The progress watchdog of one instance: measures progress with the platform's clock, not idle steps.
//!
//! Two watches. A *core* that has had the same task for the task budget, or a launch of a session for the time of its stream, runs too long. The *run* stalls when no
//! counter has moved for the stall budget and no core of any instance is busy; a slow kernel on a busy core
//! is not a stall. While the instance works, only its cores and the run budget are looked at.

use core::hash::{Hash, Hasher};

use pto_abi::BuildMode;
use pto_abi::kinds::TaskState;
use pto_abi::limits::MAX_WORKERS;
use pto_abi::sync::Ordering;
use pto_abi::task::{NO_CHUNK, Task};

use crate::blame::Blame;
use crate::cores::CoreSet;
use crate::cores::apart::PART;
use crate::mutant::{self, Mutant};
use crate::stall;
use crate::state::SharedState;

/// Steps between two looks at the clock, idle ones and others counted apart.
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
    /// Whether the tasks are launches of a session, whose lines say how long each may take.
    pub of_launches: bool,
}

impl Budgets {
    /// How long the task in `slot` may be on a core. A slot whose task is on none has the time of the run: the limit in the slot is of no task,
    /// or of one before.
    #[must_use]
    pub fn of(&self, slot: u32, state: &SharedState<'_>) -> u64 {
        let is_on_a_core =
            |task: &&Task| task.state.load(Ordering::Relaxed) == TaskState::DISPATCHED.get();
        let of_launch = state.task(slot).filter(is_on_a_core).and_then(|task| self.of_launch(task));
        of_launch.map_or(self.task_ns, |budget_ns| self.task_ns.min(budget_ns))
    }

    /// How long a task may be on a core, where it is a launch of a session whose stream has a time of its own.
    #[must_use]
    pub fn of_launch(&self, task: &Task) -> Option<u64> {
        let budget_us = Some(task.last_chunk.load(Ordering::Relaxed));
        let budget_us = budget_us.filter(|budget_us| self.of_launches && *budget_us != NO_CHUNK);
        budget_us.map(|budget_us| u64::from(budget_us) * 1000)
    }
}

pub(crate) struct Watchdog {
    budgets: Budgets,
    idle_steps: u32,
    worked_steps: u32,
    started_ns: Option<u64>,
    progress: u64,
    progress_ns: u64,
    // What each core was seen running, and since when it has been seen so.
    seen: [(RunningTask, u64); MAX_WORKERS],
}

/// What a core runs. Two of these are compared word by word; one number made of the words would be the same for different parts.
///
/// A core runs nothing twice in a run: tasks that have the same slot have different generations, and each part of a task is given to one core,
/// once. So what is seen again has lasted from one look to the other, also where the core was free at looks between.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct RunningTask {
    /// The slot, with [`PART`].
    running: u32,
    generation: u32,
    /// Which part of the task: its [`BlockContext`](pto_abi::block::BlockContext). Zero: it has one only.
    context: u64,
}

impl RunningTask {
    /// What no core runs: no slot is as large.
    const NOTHING: Self = Self { running: u32::MAX, generation: 0, context: 0 };

    /// What a worker runs that was given this.
    fn on(worker: u32, running: u32, state: &SharedState<'_>) -> Self {
        let slot = running & !PART;
        let Some(task) = state.task(slot) else { return Self { running, ..Self::NOTHING } };
        let generation = task.generation.load(Ordering::Relaxed);
        let shapes = state.shapes.as_ref().filter(|_| running != slot);
        let context = shapes.map_or(0, |shapes| shapes.context(worker, task));
        Self { running, generation, context }
    }

    /// Whether it is the same dispatch.
    fn is(&self, other: &Self) -> bool {
        if mutant::is(Mutant::FoldsWhatRuns) {
            let folded = |of: &Self| {
                let number = u64::from(of.generation) << 32 | u64::from(of.running);
                number ^ of.context.rotate_right(24)
            };
            return folded(self) == folded(other);
        }
        self == other
    }
}

impl Watchdog {
    /// As [`Scheduler::hash_state`](crate::Scheduler::hash_state). The budgets are the run's.
    pub(crate) fn hash_state<H: Hasher>(&self, into: &mut H) {
        let Self { budgets: _, idle_steps, worked_steps, started_ns, progress, progress_ns, seen } =
            self;
        (idle_steps, worked_steps, started_ns, progress, progress_ns, seen).hash(into);
    }

    #[inline(always)]
    pub(crate) const fn new(budgets: Budgets) -> Self {
        Self {
            budgets,
            idle_steps: 0,
            worked_steps: 0,
            started_ns: None,
            progress: 0,
            progress_ns: 0,
            seen: [(RunningTask::NOTHING, 0); MAX_WORKERS],
        }
    }

    /// Counts a step that has moved something, and has run so many tasks from their starts to their ends: each of them counts
    /// as a step. Answers whether it is time to look at the clock.
    #[inline]
    pub(crate) fn count_worked(&mut self, ran: u32) -> bool {
        self.worked_steps += 1 + ran;
        let is_due = self.worked_steps >= STEPS_A_LOOK;
        if is_due {
            self.worked_steps = 0;
        }
        is_due
    }

    /// Counts an idle step. Answers whether it is time to look at the clock.
    #[inline]
    pub(crate) fn count_idle(&mut self) -> bool {
        self.idle_steps = self.idle_steps.wrapping_add(1);
        self.idle_steps.is_multiple_of(STEPS_A_LOOK)
    }

    /// A busy core that has had one task for too long, and for how long.
    pub(crate) fn overdue(
        &mut self,
        now: u64,
        cores: &CoreSet,
        state: &SharedState<'_>,
    ) -> Option<(usize, u64)> {
        for core in cores.busy().iter().copied().map(usize::from) {
            let slot = cores.running(core);
            let running = RunningTask::on(cores.worker(core), slot, state);
            let seen = self.seen.get_mut(core)?;
            if !running.is(&seen.0) {
                *seen = (running, now);
            } else if now.saturating_sub(seen.1) > self.budgets.of(slot, state)
                && !mutant::is(Mutant::IgnoresSlowCores)
            {
                return Some((core, now - seen.1));
            }
        }
        None
    }

    /// Whether the run has taken too long, however much it gets on.
    pub(crate) fn over_budget(&mut self, now: u64) -> Option<Blame> {
        let taken = now.saturating_sub(*self.started_ns.get_or_insert(now));
        let is_over = self.budgets.run_ns > 0 && taken > self.budgets.run_ns;
        is_over.then(|| stall::over_budget(taken))
    }

    /// Why the run does not get on, if it does not.
    pub(crate) fn stalled(
        &mut self,
        now: u64,
        state: &SharedState<'_>,
        mode: BuildMode,
    ) -> Option<Blame> {
        let progress = fingerprint(state);
        let busy = state.sum(|line| line.busy_cores.load(Ordering::Relaxed).into());
        let busy = busy > 0 && !mutant::is(Mutant::TakesWorkForAStall);
        if progress != self.progress || busy || self.progress_ns == 0 {
            (self.progress, self.progress_ns) = (progress, now);
            return None;
        }
        let since = now.saturating_sub(self.progress_ns);
        (since > self.budgets.stall_ns).then(|| stall::classify(state, mode, since))
    }
}

/// A number that changes whenever a task is added, published or completed: a sum of counters that rise, so that no two changes take
/// each other back. Only a range that cannot be added lowers one, and the build ends with that.
fn fingerprint(state: &SharedState<'_>) -> u64 {
    state.sum(|line| {
        let added = line.added.load(Ordering::Relaxed);
        let published = line.published.load(Ordering::Relaxed);
        let completed = line.completed.load(Ordering::Relaxed);
        let satisfied = line.edges_satisfied.load(Ordering::Relaxed);
        let edges = line.edges.load(Ordering::Relaxed).wrapping_add(satisfied);
        added.wrapping_add(published).wrapping_add(edges).wrapping_add(completed)
    })
}
