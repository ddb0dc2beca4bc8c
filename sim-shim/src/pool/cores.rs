//! The cores of a pool's run: how an OS thread steps one, how long their kernels are just now, and who would run some.

use std::sync::Arc;

use pto_abi::handshake::Dispatch;
use pto_abi::sync::{AtomicU32, Ordering};
use pto_aicore_kernels::worker::{self, WorkerPort};
use pto_aicpu_fw::Launch;

use super::offers::{Offers, Share};
use crate::clock;
use crate::core_port::CorePort;
use crate::supervisor::Beat;

/// From this time for one kernel on, the clock's and the core's own time included (an empty one then takes 40 ns), handing a
/// core to another thread gains more than it costs.
const MEDIUM_KERNEL_NS: u64 = 100;
/// From this time on, nobody schedules while he runs a kernel: passing the role on costs less than a kernel.
const LONG_KERNEL_NS: u64 = 2_000;
/// Kernels between two that are timed, while they are short: what that costs each of them, a look at the clock in 64, does
/// not show beside it.
const SHORT_KERNELS_A_LOOK: u32 = 64;
/// The same while they are of medium length.
const MEDIUM_KERNELS_A_LOOK: u32 = 32;
/// A kernel counts as no longer than this: it may have been the operating system's pause.
const LONGEST_NS: u64 = 8 * LONG_KERNEL_NS;

/// How long kernels are just now, as a moving mean. In a line of its own, which all threads read; while kernels are
/// short, one writes it now and then.
#[derive(Default)]
#[repr(align(64))]
struct KernelLength {
    mean_ns: AtomicU32,
    last_ns: AtomicU32,
}

impl KernelLength {
    #[inline]
    fn mean_ns(&self) -> u64 {
        self.mean_ns.load(Ordering::Relaxed).into()
    }

    /// One more kernel was timed; after how many of them the thread looks again. Of two that follow each other the shorter
    /// one counts: the other may have been interrupted.
    fn add(&self, took_ns: u64) -> u32 {
        // Relaxed, and not one operation: of two threads that add at once, one may count for nothing.
        let took = u32::try_from(took_ns.min(LONGEST_NS)).unwrap_or(u32::MAX);
        let shorter_ns = took.min(self.last_ns.swap(took, Ordering::Relaxed));
        let mean_ns = (3 * self.mean_ns() + u64::from(shorter_ns)) / 4;
        self.mean_ns.store(u32::try_from(mean_ns).unwrap_or(u32::MAX), Ordering::Relaxed);
        match took_ns {
            ..MEDIUM_KERNEL_NS => SHORT_KERNELS_A_LOOK,
            MEDIUM_KERNEL_NS..LONG_KERNEL_NS => MEDIUM_KERNELS_A_LOOK,
            LONG_KERNEL_NS.. => 1,
        }
    }
}

/// What a thread is lent at once, in time: enough that it does not ask again at once, and little enough that nobody waits
/// long for what it has not begun.
const LENT_NS: u64 = 2_000;
/// The same in tasks, at most.
const MOST_LENT: usize = 16;

/// Every core of a run.
pub(super) struct Cores {
    pub(super) offers: Offers,
    ports: Vec<CorePort<'static>>,
    beats: Arc<[Beat]>,
    /// Whether all cores are stepped by one thread, so that nobody asks how long kernels are.
    is_alone: bool,
    kernels: KernelLength,
    /// The thread that schedules.
    scheduler: AtomicU32,
    /// Kernels until it times one.
    to_look: AtomicU32,
}

impl Cores {
    pub(super) fn of_launch(launch: &Launch<'static>, beats: Arc<[Beat]>) -> Self {
        Self {
            offers: Offers::new(beats.len()),
            ports: CorePort::of_launch(launch),
            is_alone: beats.len() == 1,
            beats,
            kernels: KernelLength::default(),
            scheduler: AtomicU32::new(0),
            to_look: AtomicU32::new(1),
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
        self.scheduler.store(thread, Ordering::Relaxed);
    }

    /// Whether giving a core to another thread is worth it.
    #[inline]
    pub(super) fn is_worth_sharing(&self) -> bool {
        self.kernels.mean_ns() >= MEDIUM_KERNEL_NS
    }

    /// Whether threads take turns at scheduling.
    #[inline]
    pub(super) fn is_long(&self) -> bool {
        self.kernels.mean_ns() >= LONG_KERNEL_NS
    }

    /// Whether the thread that schedules runs every core as soon as it has rung it.
    #[inline]
    pub(super) fn run_at_once(&self) -> bool {
        self.is_alone || !self.is_long()
    }

    /// Whether there are other threads.
    #[inline]
    pub(super) fn has_borrowers(&self) -> bool {
        !self.is_alone
    }

    /// How many dispatches another thread would run.
    #[inline]
    pub(super) fn asked_for(&self) -> usize {
        if !self.is_worth_sharing() || !self.offers.is_asked(self.scheduler()) {
            return 0;
        }
        let count = LENT_NS / self.kernels.mean_ns().max(1);
        usize::try_from(count).unwrap_or(MOST_LENT).clamp(1, MOST_LENT)
    }

    /// Gives cores that were rung to a thread that asks; those that nobody takes any more.
    pub(super) fn lend(&self, cores: [u64; 2]) -> [u64; 2] {
        self.offers.give(self.scheduler(), cores, Share::All)
    }

    #[inline]
    fn scheduler(&self) -> usize {
        self.scheduler.load(Ordering::Relaxed) as usize
    }

    /// Steps a core on the thread that schedules.
    #[inline(always)]
    pub(super) fn step_rung(&self, worker: u32) {
        if self.is_alone {
            return self.step(0, worker);
        }
        let thread = self.scheduler();
        let mut to_look = self.to_look.load(Ordering::Relaxed);
        self.step_and_look(thread, worker, &mut to_look);
        self.to_look.store(to_look, Ordering::Relaxed);
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

/// Takes one core out of a set.
pub(super) fn take_one(cores: &mut [u64; 2]) -> Option<u32> {
    let (word, first) = if cores[0] == 0 { (1, 64) } else { (0, 0) };
    let bit = cores[word].trailing_zeros();
    cores[word] &= cores[word].checked_sub(1)?;
    Some(first + bit)
}

#[cfg(test)]
mod tests {
    use super::{KernelLength, LONG_KERNEL_NS, MEDIUM_KERNEL_NS, SHORT_KERNELS_A_LOOK};

    #[test]
    fn long_kernels_are_seen_at_the_second_and_a_pause_is_none() {
        let kernels = KernelLength::default();
        assert_eq!(kernels.add(40), SHORT_KERNELS_A_LOOK);
        assert!(kernels.mean_ns() < MEDIUM_KERNEL_NS);
        assert_eq!(kernels.add(4_000_000), 1, "the next one is looked at as well");
        assert_eq!(kernels.add(40), SHORT_KERNELS_A_LOOK);
        assert!(kernels.mean_ns() < MEDIUM_KERNEL_NS, "it was a pause");
        kernels.add(4_000_000);
        kernels.add(4_000_000);
        assert!(kernels.mean_ns() >= LONG_KERNEL_NS, "two of them are not");
    }

    #[test]
    fn medium_kernels_are_shared_and_do_not_move_the_role() {
        let kernels = KernelLength::default();
        for _ in 0..20 {
            kernels.add(2 * MEDIUM_KERNEL_NS);
        }
        assert!((MEDIUM_KERNEL_NS..LONG_KERNEL_NS).contains(&kernels.mean_ns()));
        for _ in 0..20 {
            kernels.add(LONG_KERNEL_NS + 10);
        }
        assert!(kernels.mean_ns() >= LONG_KERNEL_NS);
    }
}
