//! The cores of a pool's run: how an OS thread steps one, and who would run some.

use std::sync::Arc;

use pto_abi::handshake::{Dispatch, Handshake};
use pto_abi::sync::{AtomicU32, Ordering};
use pto_aicore_kernels::worker::{self, WorkerPort};
use pto_aicpu_fw::{Launch, Terms};

use super::cpus::CpuMap;
use super::doorbell_bits::DoorbellBits;
use super::durations::{DurationClass, DurationEstimator, DurationLimits};
use super::handoffs::{HandoffSlots, Share};
use super::sampler::TimingSampler;
use crate::clock;
use crate::core_port::{CorePort, UntimedPort};
use crate::supervisor::Beat;

/// Kernels that a thread gets in one handoff, in time: enough that it does not ask again at once, and few enough that what
/// it has not begun does not wait long.
const MAX_HANDOFF_NS: u64 = 4_000;
/// The largest number of tasks in one handoff.
const MAX_HANDOFF_TASKS: usize = 16;

/// Kernels that a step of the schedulers runs at most, in time, unless kernels are short: kernels for a handoff do not wait long.
const MAX_STEP_NS: u64 = 16_000;

/// Every core of a run.
pub(super) struct RunCores {
    pub(super) handoffs: HandoffSlots,
    pub(super) cpus: CpuMap,
    /// Those that were rung and have not run yet. The bells hold it as well: if they looked it up in here, a task would take 2 % more instructions.
    pub(super) doorbells: Arc<DoorbellBits>,
    ports: Vec<CorePort<'static>>,
    /// The beat of the thread that schedules while kernels are short.
    first: Beat,
    /// The beats of the other threads.
    others: Vec<Beat>,
    kernels: DurationEstimator,
    /// The kernels of the last run were short. So are those of this run, until they prove to be longer.
    expects_short: bool,
    scheduler: Scheduler,
}

/// What the thread that schedules knows. In a line of its own: that thread writes it for every task, and the others read the words around it.
#[repr(align(128))]
struct Scheduler {
    /// The scheduler's number.
    thread: AtomicU32,
    /// Kernels until it times one, if it times single kernels.
    kernels_to_sample: AtomicU32,
    /// 0: its step may run as many tasks as that of a pool of one. It is written only for steps that time single kernels.
    is_limited: AtomicU32,
    sampler: TimingSampler,
}

impl Scheduler {
    const fn new(has_others: bool) -> Self {
        let (thread, kernels_to_sample) = (AtomicU32::new(0), AtomicU32::new(1));
        let (is_limited, sampler) = (AtomicU32::new(0), TimingSampler::new(has_others));
        Self { thread, kernels_to_sample, is_limited, sampler }
    }

    #[inline]
    fn thread(&self) -> usize {
        self.thread.load(Ordering::Relaxed) as usize
    }
}

impl RunCores {
    /// Of a run on so many threads. `limits`: of this machine, if there are several. `before`: of the kernels of the run before this one.
    pub(super) fn of_launch(
        launch: &Launch<'static>,
        threads: usize,
        (limits, before): (DurationLimits, DurationClass),
    ) -> Self {
        Self {
            handoffs: HandoffSlots::new(threads),
            cpus: CpuMap::new(threads),
            doorbells: Arc::default(),
            ports: CorePort::of_launch(launch),
            first: Beat::default(),
            others: (1..threads).map(|_| Beat::default()).collect(),
            kernels: DurationEstimator::new(limits),
            expects_short: before == DurationClass::Short,
            scheduler: Scheduler::new(threads > 1),
        }
    }

    /// The beats of all threads.
    pub(super) fn beats(&self) -> Vec<&Beat> {
        core::iter::once(&self.first).chain(&self.others).collect()
    }

    #[inline]
    fn beat_of(&self, thread: usize) -> Option<&Beat> {
        thread.checked_sub(1).map_or(Some(&self.first), |other| self.others.get(other))
    }

    /// Whether all cores are stepped by one thread, so that it does not matter how long kernels are.
    #[inline]
    fn is_alone(&self) -> bool {
        self.others.is_empty()
    }

    /// One more turn of a thread.
    #[inline]
    pub(super) fn beat(&self, thread: usize) {
        self.beat_of(thread).into_iter().for_each(Beat::turn);
    }

    /// This thread schedules from now on.
    #[inline]
    pub(super) fn schedule_by(&self, thread: usize) {
        if thread != 0 {
            self.scheduler.sampler.time_kernels();
        }
        let thread = u32::try_from(thread).unwrap_or(u32::MAX);
        self.scheduler.thread.store(thread, Ordering::Relaxed);
    }

    /// Begins a step of the schedulers; returns the terms on which it runs tasks. They are those of a pool of one while kernels are short or expected to be, so that tasks
    /// run in the same order.
    #[inline]
    pub(super) fn begin_step(&self) -> Terms {
        if self.is_alone() {
            return Terms::ALONE;
        }
        let Scheduler { sampler, is_limited, .. } = &self.scheduler;
        let has_idle_threads = self.is_worth_sharing();
        if !sampler.times_kernels() && !has_idle_threads {
            sampler.begin_step(clock::now_ns_alone);
            return Terms::ALONE;
        }
        sampler.time_kernels();
        let is_short = self.expects_short && !has_idle_threads;
        is_limited.store((!is_short).into(), Ordering::Relaxed);
        if is_short {
            return Terms::ALONE;
        }
        Terms { most: self.kernels.within(MAX_STEP_NS), has_borrowers: has_idle_threads }
    }

    /// Ends a step of the scheduler, which has run this many tasks.
    #[inline]
    pub(super) fn end_step(&self, tasks: u32) {
        let sampler = &self.scheduler.sampler;
        if !self.is_alone() && !sampler.times_kernels() {
            sampler.end_step(tasks, clock::now_ns_alone, &self.kernels);
        }
    }

    /// Whether giving a core to another thread may be worth it.
    #[inline]
    pub(super) fn is_worth_sharing(&self) -> bool {
        self.kernels.is_medium()
    }

    /// Whether threads take turns at scheduling.
    #[inline]
    pub(super) fn is_long(&self) -> bool {
        self.kernels.is_long()
    }

    /// Whether the thread that schedules runs every core as soon as it has rung it.
    #[inline]
    pub(super) fn run_at_once(&self) -> bool {
        self.is_alone() || !self.is_long()
    }

    /// Whether there are other threads, and kernels are long enough for them.
    #[inline]
    pub(super) fn has_idle_threads(&self) -> bool {
        !self.is_alone() && self.is_worth_sharing()
    }

    /// How long the kernels of the run are.
    pub(super) fn duration_class(&self) -> DurationClass {
        self.kernels.duration_class()
    }

    /// How many dispatches the next handoff has; 0: no thread asks for one.
    #[inline]
    pub(super) fn requested_tasks(&self) -> usize {
        if !self.handoffs.is_asked(self.scheduler.thread()) {
            return 0;
        }
        let count = MAX_HANDOFF_NS / self.kernels.mean_ns().max(1);
        usize::try_from(count).unwrap_or(MAX_HANDOFF_TASKS).clamp(1, MAX_HANDOFF_TASKS)
    }

    /// Hands cores whose doorbells were rung to a thread that asks; returns those that were not taken.
    pub(super) fn hand_off(&self, cores: [u64; 2]) -> [u64; 2] {
        self.handoffs.give(self.scheduler.thread(), cores, Share::All)
    }

    /// Runs and reports a dispatch that was just written for a free core, on the thread that schedules; whether it was run: not if kernels have proved in this
    /// step to be long enough for others, against what was expected; then it is rung. Nothing is looked up that this thread has just written.
    #[inline(always)]
    pub(super) fn run_dispatched(
        &self,
        worker: u32,
        lines: &Handshake,
        dispatch: &Dispatch,
    ) -> bool {
        if !self.scheduler.sampler.times_kernels() {
            // Then it is the first one.
            run_at(&self.first, worker, (lines, dispatch));
            return true;
        }
        self.run_and_time(worker, lines, *dispatch)
    }

    /// As `run_dispatched`, with a kernel timed now and then. The dispatch by value: a reference would keep those that are not timed in memory as well.
    #[cold]
    #[inline(never)]
    fn run_and_time(&self, worker: u32, lines: &Handshake, dispatch: Dispatch) -> bool {
        let dispatch = (lines, &dispatch);
        let Scheduler { kernels_to_sample: left, is_limited, sampler, .. } = &self.scheduler;
        if is_limited.load(Ordering::Relaxed) == 0 && self.is_worth_sharing() {
            self.doorbells.ring(worker);
            return false;
        }
        let thread = self.scheduler.thread();
        let Some(beat) = self.beat_of(thread) else { return false };
        let mut kernels_to_sample = left.load(Ordering::Relaxed);
        let was_timed = self.sampled(&mut kernels_to_sample, || run_at(beat, worker, dispatch));
        left.store(kernels_to_sample, Ordering::Relaxed);
        if was_timed && thread == 0 && self.kernels.are_short() {
            sampler.time_steps();
        }
        true
    }

    /// Steps the cores that another thread has rung: first looks at all of them, because their lines are in that thread's
    /// cache, and come together as fast as one of them alone.
    pub(super) fn step_handed_off(
        &self,
        thread: usize,
        mut cores: [u64; 2],
        kernels_to_sample: &mut u32,
    ) {
        let mut found = [const { None::<(u32, Dispatch)> }; MAX_HANDOFF_TASKS];
        while cores != [0; 2] {
            for entry in &mut found {
                let Some(worker) = take_one(&mut cores) else { break };
                let mut port = self.ports.get(worker as usize);
                let dispatch = port.as_mut().and_then(WorkerPort::next_dispatch);
                match dispatch {
                    Some(dispatch) => *entry = Some((worker, dispatch)),
                    None => self.step(thread, worker),
                }
            }
            for (worker, dispatch) in found.iter_mut().filter_map(Option::take) {
                self.sampled(kernels_to_sample, || self.run(thread, worker, &dispatch));
            }
        }
    }

    fn run(&self, thread: usize, worker: u32, dispatch: &Dispatch) {
        let Some(beat) = self.beat_of(thread) else { return };
        beat.core(worker);
        if let Some(mut port) = self.ports.get(worker as usize) {
            worker::run(&mut port, dispatch);
        }
        beat.no_core();
    }

    /// Steps a core, and times it if it runs a kernel that is to be sampled. A step before the first kernel is not a sample.
    #[inline]
    pub(super) fn step_and_sample(&self, thread: usize, worker: u32, kernels_to_sample: &mut u32) {
        let mut port = self.ports.get(worker as usize);
        match port.as_mut().and_then(WorkerPort::next_dispatch) {
            Some(dispatch) => {
                self.sampled(kernels_to_sample, || self.run(thread, worker, &dispatch));
            }
            None => self.step(thread, worker),
        }
    }

    /// Runs `step`, and times it if the sample period is over; whether it was timed.
    #[inline(always)]
    fn sampled(&self, kernels_to_sample: &mut u32, step: impl FnOnce()) -> bool {
        *kernels_to_sample -= 1;
        if *kernels_to_sample == 0 {
            let start_ns = clock::now_ns();
            step();
            *kernels_to_sample = self.kernels.add(clock::now_ns() - start_ns);
            true
        } else {
            step();
            false
        }
    }

    // In the loops over cores, which then save registers once for all of them.
    #[inline(always)]
    pub(super) fn step(&self, thread: usize, worker: u32) {
        let Some(beat) = self.beat_of(thread) else { return };
        beat.core(worker);
        if let Some(mut port) = self.ports.get(worker as usize) {
            worker::step(&mut port);
        }
        beat.no_core();
    }
}

/// Runs a dispatch on the thread of this beat.
#[inline(always)]
fn run_at(beat: &Beat, worker: u32, (lines, dispatch): (&Handshake, &Dispatch)) {
    beat.core(worker);
    worker::run(&mut UntimedPort(lines), dispatch);
    beat.no_core();
}

/// Takes one core out of a set.
pub(super) fn take_one(cores: &mut [u64; 2]) -> Option<u32> {
    let (word, first) = if cores[0] == 0 { (1, 64) } else { (0, 0) };
    let bit = cores[word].trailing_zeros();
    cores[word] &= cores[word].checked_sub(1)?;
    Some(first + bit)
}
