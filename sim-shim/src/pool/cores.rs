//! The cores of a pool's run: how an OS thread steps one, and who would run some.

use std::sync::Arc;

use pto_abi::handshake::{Dispatch, Handshake};
use pto_abi::sync::{AtomicU32, Ordering};
use pto_aicore_kernels::worker::{self, WorkerPort};
use pto_aicpu_fw::Launch;

use super::lengths::{KernelLength, Limits};
use super::offers::{Offers, Share};
use super::places::Places;
use crate::clock;
use crate::core_port::{CorePort, UntimedPort};
use crate::supervisor::Beat;

/// What a thread is lent at once, in time: enough that it does not ask again at once, and little enough that nobody waits
/// long for what it has not begun.
const LENT_NS: u64 = 4_000;
/// The same in tasks, at most.
const MOST_LENT: usize = 16;

/// Every core of a run.
pub(super) struct Cores {
    pub(super) offers: Offers,
    pub(super) places: Places,
    ports: Vec<CorePort<'static>>,
    beats: Arc<[Beat]>,
    /// Whether all cores are stepped by one thread, so that nobody asks how long kernels are.
    is_alone: bool,
    kernels: KernelLength,
    scheduler: Scheduler,
}

/// What the thread that schedules knows. In a line of its own: that thread writes it for every task, and the others look at what stands around it.
#[repr(align(128))]
struct Scheduler {
    /// Its number.
    thread: AtomicU32,
    /// Kernels until it times one.
    to_look: AtomicU32,
}

impl Scheduler {
    const fn new() -> Self {
        Self { thread: AtomicU32::new(0), to_look: AtomicU32::new(1) }
    }

    #[inline]
    fn thread(&self) -> usize {
        self.thread.load(Ordering::Relaxed) as usize
    }
}

impl Cores {
    /// `limits`: of this machine, if there are several threads.
    pub(super) fn of_launch(launch: &Launch<'static>, beats: Arc<[Beat]>, limits: Limits) -> Self {
        Self {
            offers: Offers::new(beats.len()),
            places: Places::new(beats.len()),
            ports: CorePort::of_launch(launch),
            is_alone: beats.len() == 1,
            beats,
            kernels: KernelLength::new(limits),
            scheduler: Scheduler::new(),
        }
    }

    /// One more turn of a thread.
    #[inline]
    pub(super) fn beat(&self, thread: usize) {
        self.beats[thread].turn();
    }

    /// This thread schedules from now on.
    #[inline]
    pub(super) fn schedule_by(&self, thread: usize) {
        let thread = u32::try_from(thread).unwrap_or(u32::MAX);
        self.scheduler.thread.store(thread, Ordering::Relaxed);
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
        self.is_alone || !self.is_long()
    }

    /// Whether there are other threads, and kernels are long enough for them.
    #[inline]
    pub(super) fn has_borrowers(&self) -> bool {
        !self.is_alone && self.is_worth_sharing()
    }

    /// How many dispatches another thread would run.
    #[inline]
    pub(super) fn asked_for(&self) -> usize {
        if !self.offers.is_asked(self.scheduler.thread()) {
            return 0;
        }
        let count = LENT_NS / self.kernels.mean_ns().max(1);
        usize::try_from(count).unwrap_or(MOST_LENT).clamp(1, MOST_LENT)
    }

    /// Gives cores that were rung to a thread that asks; those that nobody takes any more.
    pub(super) fn lend(&self, cores: [u64; 2]) -> [u64; 2] {
        self.offers.give(self.scheduler.thread(), cores, Share::All)
    }

    /// Runs and reports a dispatch that was just rung on a free core, on the thread that schedules; whether it was run. Nothing is looked up that this
    /// thread has just written.
    #[inline(always)]
    pub(super) fn run_rung(&self, worker: u32, lines: &Handshake, dispatch: &Dispatch) -> bool {
        if let [only] = &*self.beats {
            run_at(only, worker, (lines, dispatch));
            return true;
        }
        let Some(beat) = self.beats.get(self.scheduler.thread()) else { return false };
        let mut to_look = self.scheduler.to_look.load(Ordering::Relaxed);
        self.timed_now_and_then(&mut to_look, || run_at(beat, worker, (lines, dispatch)));
        self.scheduler.to_look.store(to_look, Ordering::Relaxed);
        true
    }

    /// Steps the cores that another thread has rung: first looks at all of them, because their lines are in that thread's
    /// cache, and come together as fast as one of them alone.
    pub(super) fn step_lent(&self, thread: usize, mut cores: [u64; 2], to_look: &mut u32) {
        let mut found = [const { None::<(u32, Dispatch)> }; MOST_LENT];
        while cores != [0; 2] {
            for place in &mut found {
                let Some(worker) = take_one(&mut cores) else { break };
                let mut port = self.ports.get(worker as usize);
                let dispatch = port.as_mut().and_then(WorkerPort::next_dispatch);
                match dispatch {
                    Some(dispatch) => *place = Some((worker, dispatch)),
                    None => self.step(thread, worker),
                }
            }
            for (worker, dispatch) in found.iter_mut().filter_map(Option::take) {
                self.timed_now_and_then(to_look, || self.run(thread, worker, &dispatch));
            }
        }
    }

    fn run(&self, thread: usize, worker: u32, dispatch: &Dispatch) {
        let Some(beat) = self.beats.get(thread) else { return };
        beat.core(worker);
        if let Some(mut port) = self.ports.get(worker as usize) {
            worker::run(&mut port, dispatch);
        }
        beat.no_core();
    }

    /// Steps a core, and times it if it is the kernel's turn.
    #[inline]
    pub(super) fn step_and_look(&self, thread: usize, worker: u32, to_look: &mut u32) {
        self.timed_now_and_then(to_look, || self.step(thread, worker));
    }

    #[inline(always)]
    fn timed_now_and_then(&self, to_look: &mut u32, step: impl FnOnce()) {
        *to_look -= 1;
        if *to_look == 0 {
            let start_ns = clock::now_ns();
            step();
            *to_look = self.kernels.add(clock::now_ns() - start_ns);
        } else {
            step();
        }
    }

    // In the loops over cores, which then save registers once for all of them.
    #[inline(always)]
    pub(super) fn step(&self, thread: usize, worker: u32) {
        let Some(beat) = self.beats.get(thread) else { return };
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
