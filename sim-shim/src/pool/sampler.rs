//! How closely the thread that schedules watches how long kernels are.
//!
//! To count the kernels down to the next one that is timed costs a twentieth of an empty task. While kernels are short, the thread counts and times whole
//! steps of the schedulers instead. A step that took longer than its tasks would with short kernels says only that something took long: from then on single
//! kernels are timed ([`DurationEstimator`]), until they prove to be short.

use pto_abi::sync::{AtomicU32, AtomicU64, Ordering};

use super::durations::DurationEstimator;

/// Tasks between two steps that are timed. Up to four times as many after an alarm that was none.
const TASKS_APART: u32 = 384;
const MOST_TASKS_APART: u32 = 4 * TASKS_APART;
/// Tasks after which the time of steps says something of them: what a step takes itself does not show.
const ENOUGH_TASKS: u32 = 16;

/// What the thread that schedules knows of its steps; no other thread writes it meanwhile.
pub(super) struct TimingSampler {
    /// 1: single kernels are timed.
    is_close: AtomicU32,
    /// Tasks until steps are timed.
    left: AtomicU32,
    /// The same at the beginning.
    apart: AtomicU32,
    /// Tasks of the steps that were timed, and how long they took.
    tasks: AtomicU32,
    took_ns: AtomicU64,
    /// When the step began, if it is timed; 0 otherwise.
    began_ns: AtomicU64,
}

impl TimingSampler {
    /// Of a run whose kernels are not known. `is_needed`: there are threads that could be lent some.
    pub(super) const fn new(is_needed: bool) -> Self {
        Self {
            is_close: AtomicU32::new(is_needed as u32),
            left: AtomicU32::new(TASKS_APART),
            apart: AtomicU32::new(TASKS_APART),
            tasks: AtomicU32::new(0),
            took_ns: AtomicU64::new(0),
            began_ns: AtomicU64::new(0),
        }
    }

    /// Whether single kernels are timed.
    #[inline(always)]
    pub(super) fn is_close(&self) -> bool {
        self.is_close.load(Ordering::Relaxed) != 0
    }

    /// From now on single kernels are timed.
    pub(super) fn watch_closely(&self) {
        self.is_close.store(1, Ordering::Relaxed);
    }

    /// Kernels have proved to be short: single ones are not timed any more.
    pub(super) fn relax(&self) {
        self.left.store(self.apart.load(Ordering::Relaxed), Ordering::Relaxed);
        self.is_close.store(0, Ordering::Relaxed);
    }

    /// A step begins, while single kernels are not timed.
    #[inline]
    pub(super) fn begin_step(&self, now_ns: impl FnOnce() -> u64) {
        if self.left.load(Ordering::Relaxed) == 0 {
            self.began_ns.store(now_ns().max(1), Ordering::Relaxed);
        }
    }

    /// The step has run so many tasks.
    #[inline]
    pub(super) fn end_step(
        &self,
        tasks: u32,
        now_ns: impl FnOnce() -> u64,
        kernels: &DurationEstimator,
    ) {
        let began_ns = self.began_ns.load(Ordering::Relaxed);
        if began_ns == 0 {
            let left = self.left.load(Ordering::Relaxed);
            self.left.store(left.saturating_sub(tasks), Ordering::Relaxed);
        } else if tasks > 0 {
            self.began_ns.store(0, Ordering::Relaxed);
            self.end_timed_step(tasks, now_ns().saturating_sub(began_ns), kernels);
        }
    }

    #[inline(never)]
    fn end_timed_step(&self, tasks: u32, took_ns: u64, kernels: &DurationEstimator) {
        let tasks = self.tasks.load(Ordering::Relaxed).saturating_add(tasks);
        let took_ns = self.took_ns.load(Ordering::Relaxed).saturating_add(took_ns);
        let is_enough = tasks >= ENOUGH_TASKS;
        self.tasks.store(if is_enough { 0 } else { tasks }, Ordering::Relaxed);
        self.took_ns.store(if is_enough { 0 } else { took_ns }, Ordering::Relaxed);
        if !is_enough {
            return;
        }
        let mut apart = TASKS_APART;
        if kernels.would_be_medium(took_ns / u64::from(tasks)) {
            // The next alarm comes later, in case this one is none.
            apart = (2 * self.apart.load(Ordering::Relaxed)).min(MOST_TASKS_APART);
            self.watch_closely();
        }
        self.apart.store(apart, Ordering::Relaxed);
        self.left.store(apart, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{ENOUGH_TASKS, MOST_TASKS_APART, TASKS_APART, TimingSampler};
    use crate::pool::durations::{DurationEstimator, DurationLimits};

    static KERNELS: DurationEstimator =
        DurationEstimator::new(DurationLimits { medium_ns: 100, long_ns: 2_000 });

    /// Runs a step that takes so long for each task; whether it was timed.
    fn step(sampler: &TimingSampler, tasks: u32, ns_a_task: u64) -> bool {
        let mut was_timed = false;
        sampler.begin_step(|| {
            was_timed = true;
            1_000
        });
        let end_ns = 1_000 + ns_a_task * u64::from(tasks);
        sampler.end_step(tasks, || end_ns, &KERNELS);
        was_timed
    }

    fn tasks_to_a_timed_step(sampler: &TimingSampler) -> u32 {
        let mut tasks = 0;
        while !step(sampler, 8, 20) {
            tasks += 8;
        }
        tasks
    }

    #[test]
    fn a_single_thread_does_not_time_kernels() {
        assert!(!TimingSampler::new(false).is_close());
        assert!(TimingSampler::new(true).is_close(), "nothing is known yet");
    }

    #[test]
    fn a_slow_step_is_an_alarm_and_false_alarms_become_rare() {
        let sampler = TimingSampler::new(true);
        sampler.relax();
        let mut apart = Vec::new();
        for _ in 0..4 {
            apart.push(tasks_to_a_timed_step(&sampler));
            assert!(!sampler.is_close(), "8 tasks are too few, and were fast");
            assert!(step(&sampler, 8, 1_000), "timed until there are enough");
            assert!(sampler.is_close());
            sampler.relax();
        }
        let most = MOST_TASKS_APART;
        assert_eq!(apart, [TASKS_APART, 2 * TASKS_APART, most, most]);
        tasks_to_a_timed_step(&sampler);
        assert!(step(&sampler, ENOUGH_TASKS, 50) && !sampler.is_close());
        assert_eq!(tasks_to_a_timed_step(&sampler), TASKS_APART, "a step was fast");
    }

    #[test]
    fn steps_without_tasks_say_nothing() {
        let sampler = TimingSampler::new(true);
        sampler.relax();
        tasks_to_a_timed_step(&sampler);
        for _ in 0..100 {
            assert!(step(&sampler, 0, 0));
        }
        assert!(step(&sampler, ENOUGH_TASKS, 150) && sampler.is_close());
    }
}
