//! When the thread that schedules measures how long kernels are.
//!
//! Counting the kernels down to the next one that is timed costs a twentieth of an empty task. While kernels are short, the thread counts and times whole
//! steps of the schedulers instead. After a step that took longer than its tasks would with short kernels, single
//! kernels are timed ([`DurationEstimator`]), until they are short again.

use pto_abi::sync::{AtomicU32, AtomicU64, Ordering};

use super::durations::DurationEstimator;

/// Tasks between two steps that are timed. Up to four times as many after a false alarm.
const SAMPLE_INTERVAL_TASKS: u32 = 384;
const MAX_SAMPLE_INTERVAL_TASKS: u32 = 4 * SAMPLE_INTERVAL_TASKS;
/// Tasks of a sample at least: then the time of a step itself is small against that of its tasks.
const MIN_SAMPLE_TASKS: u32 = 16;

/// The samples of the thread that schedules; no other thread writes it.
pub(super) struct TimingSampler {
    /// 1: single kernels are timed.
    times_kernels: AtomicU32,
    /// Tasks until steps are timed.
    left: AtomicU32,
    /// The number of tasks from one timed sample of steps to the next.
    interval: AtomicU32,
    /// Tasks of the steps that were timed, and how long they took.
    tasks: AtomicU32,
    took_ns: AtomicU64,
    /// When the step began, if it is timed; 0 otherwise.
    began_ns: AtomicU64,
}

impl TimingSampler {
    /// Of a run whose kernels are not known. `is_needed`: there are threads that could get some.
    pub(super) const fn new(is_needed: bool) -> Self {
        Self {
            times_kernels: AtomicU32::new(is_needed as u32),
            left: AtomicU32::new(SAMPLE_INTERVAL_TASKS),
            interval: AtomicU32::new(SAMPLE_INTERVAL_TASKS),
            tasks: AtomicU32::new(0),
            took_ns: AtomicU64::new(0),
            began_ns: AtomicU64::new(0),
        }
    }

    /// Whether single kernels are timed.
    #[inline(always)]
    pub(super) fn times_kernels(&self) -> bool {
        self.times_kernels.load(Ordering::Relaxed) != 0
    }

    /// Times single kernels from now on.
    pub(super) fn time_kernels(&self) {
        self.times_kernels.store(1, Ordering::Relaxed);
    }

    /// Times steps instead of single kernels from now on, because kernels are short.
    pub(super) fn time_steps(&self) {
        self.left.store(self.interval.load(Ordering::Relaxed), Ordering::Relaxed);
        self.times_kernels.store(0, Ordering::Relaxed);
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
        let is_enough = tasks >= MIN_SAMPLE_TASKS;
        self.tasks.store(if is_enough { 0 } else { tasks }, Ordering::Relaxed);
        self.took_ns.store(if is_enough { 0 } else { took_ns }, Ordering::Relaxed);
        if !is_enough {
            return;
        }
        let mut interval = SAMPLE_INTERVAL_TASKS;
        if kernels.would_be_medium(took_ns / u64::from(tasks)) {
            // The next sample comes later, in case this alarm is false.
            interval = (2 * self.interval.load(Ordering::Relaxed)).min(MAX_SAMPLE_INTERVAL_TASKS);
            self.time_kernels();
        }
        self.interval.store(interval, Ordering::Relaxed);
        self.left.store(interval, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{
        MAX_SAMPLE_INTERVAL_TASKS, MIN_SAMPLE_TASKS, SAMPLE_INTERVAL_TASKS, TimingSampler,
    };
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
        assert!(!TimingSampler::new(false).times_kernels());
        assert!(TimingSampler::new(true).times_kernels(), "nothing is known yet");
    }

    #[test]
    fn a_slow_step_is_an_alarm_and_false_alarms_become_rare() {
        let sampler = TimingSampler::new(true);
        sampler.time_steps();
        let mut interval = Vec::new();
        for _ in 0..4 {
            interval.push(tasks_to_a_timed_step(&sampler));
            assert!(!sampler.times_kernels(), "8 tasks are too few, and were fast");
            assert!(step(&sampler, 8, 1_000), "timed until there are enough");
            assert!(sampler.times_kernels());
            sampler.time_steps();
        }
        let most = MAX_SAMPLE_INTERVAL_TASKS;
        assert_eq!(interval, [SAMPLE_INTERVAL_TASKS, 2 * SAMPLE_INTERVAL_TASKS, most, most]);
        tasks_to_a_timed_step(&sampler);
        assert!(step(&sampler, MIN_SAMPLE_TASKS, 50) && !sampler.times_kernels());
        assert_eq!(tasks_to_a_timed_step(&sampler), SAMPLE_INTERVAL_TASKS, "a step was fast");
    }

    #[test]
    fn steps_without_tasks_say_nothing() {
        let sampler = TimingSampler::new(true);
        sampler.time_steps();
        tasks_to_a_timed_step(&sampler);
        for _ in 0..100 {
            assert!(step(&sampler, 0, 0));
        }
        assert!(step(&sampler, MIN_SAMPLE_TASKS, 150) && sampler.times_kernels());
    }
}
