//! The hands of a pool: how its OS threads run the cores that the scheduling rings.
//!
//! | kernels | the thread that schedules | the others |
//! |---|---|---|
//! | short | runs what it has rung, at once | leave its cache lines alone |
//! | medium | the same, and gives half of it to a thread that asks | run what they are given |
//! | long | leaves what it has rung until it has laid down the role | run, share, and schedule when they have nothing |

use std::time::Duration;

use pto_abi::sync::{AtomicU32, Ordering};
use pto_aicore_kernels::worker;

use super::PoolRun;
use super::offers::Share;
use super::role::Rung;
use crate::clock;
use crate::parker::{Backoff, Patience};

/// From this time for one kernel on, handing a core to another thread (0.1 us: the lines of the core, twice) gains
/// more than it costs.
const MEDIUM_KERNEL_NS: u64 = 150;
/// From this time on, nobody schedules while he runs a kernel: passing the role on costs less than a kernel.
const LONG_KERNEL_NS: u64 = 2_000;
/// Kernels between two that are timed, while they are short: what that costs each of them, a look at the clock in 64, does
/// not show beside it.
const SHORT_KERNELS_A_LOOK: u32 = 64;
/// The same while they are of medium length.
const MEDIUM_KERNELS_A_LOOK: u32 = 8;
/// A kernel counts as no longer than this: it may have been the operating system's pause.
const LONGEST_NS: u64 = 8 * LONG_KERNEL_NS;

/// How long an idle thread sleeps between two looks.
const NAP: Duration = Duration::from_micros(50);

/// How long kernels are just now, as a moving mean. In a line of its own, which all threads read; while kernels are
/// short, one writes it now and then.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct KernelLength {
    mean_ns: AtomicU32,
}

impl KernelLength {
    #[inline]
    fn is_worth_sharing(&self) -> bool {
        u64::from(self.mean_ns.load(Ordering::Relaxed)) >= MEDIUM_KERNEL_NS
    }

    /// Whether threads take turns at scheduling.
    #[inline]
    pub(super) fn is_long(&self) -> bool {
        u64::from(self.mean_ns.load(Ordering::Relaxed)) >= LONG_KERNEL_NS
    }

    /// One more kernel was timed; after how many of them the thread looks again.
    fn add(&self, took_ns: u64) -> u32 {
        // Relaxed, and not one operation: of two threads that add at once, one may count for nothing.
        let mean_ns = u64::from(self.mean_ns.load(Ordering::Relaxed));
        let mean_ns = (3 * mean_ns + took_ns.min(LONGEST_NS)) / 4;
        self.mean_ns.store(u32::try_from(mean_ns).unwrap_or(u32::MAX), Ordering::Relaxed);
        match took_ns {
            ..MEDIUM_KERNEL_NS => SHORT_KERNELS_A_LOOK,
            MEDIUM_KERNEL_NS..LONG_KERNEL_NS => MEDIUM_KERNELS_A_LOOK,
            LONG_KERNEL_NS.. => 1,
        }
    }
}

/// The cores, as one thread of the pool runs them.
pub(super) struct Hands<'r, B> {
    pub(super) run: &'r PoolRun<B>,
    me: usize,
    // Rung, and not run yet, because kernels are long.
    own: [u64; 2],
    kernels_to_look: u32,
    backoff: Backoff,
}

impl<'r, B> Hands<'r, B> {
    pub(super) fn new(run: &'r PoolRun<B>, me: usize) -> Self {
        let backoff = Backoff::new(Patience::for_threads(run.os_threads));
        Self { run, me, own: [0; 2], kernels_to_look: 1, backoff }
    }

    /// One more turn of the thread.
    #[inline]
    pub(super) fn beat(&self) {
        self.run.beats[self.me].turn();
    }

    /// Helps others where there are any; goes to sleep for a while when there is nothing to do for long.
    pub(super) fn rest(&mut self, mut worked: bool) {
        if self.run.os_threads > 1 {
            worked |= self.help(worked);
        }
        if worked {
            self.backoff.reset();
        } else if self.backoff.is_exhausted() {
            std::thread::park_timeout(NAP);
        }
    }

    /// Runs the cores that were rung, or keeps them until the thread schedules no more. Whether there are any.
    #[inline]
    pub(super) fn run_rung(&mut self, rung: &Rung) -> bool {
        let cores = rung.take();
        if cores == [0; 2] {
            return false;
        }
        if self.run.os_threads == 1 {
            for (first, mut bits) in [(0, cores[0]), (64, cores[1])] {
                while bits != 0 {
                    self.step_core(first + bits.trailing_zeros());
                    bits &= bits - 1;
                }
            }
        } else if self.run.kernels.is_long() {
            self.own = [self.own[0] | cores[0], self.own[1] | cores[1]];
        } else {
            self.run_and_share(cores);
        }
        true
    }

    /// Runs what was kept.
    pub(super) fn run_kept(&mut self) -> bool {
        let cores = core::mem::take(&mut self.own);
        if cores == [0; 2] {
            return false;
        }
        self.run_and_share(cores);
        true
    }

    /// Gives all that was kept to a thread that asks: this one is busy with a builder program.
    pub(super) fn give_kept(&mut self) {
        if self.own != [0; 2] {
            self.own = self.run.offers.give(self.me, self.own, Share::All);
        }
    }

    /// Runs what a busier thread has given away; asks for it when there was nothing else to do.
    fn help(&mut self, has_worked: bool) -> bool {
        let cores = self.run.offers.take(self.me);
        if cores != [0; 2] {
            self.run_and_share(cores);
            return true;
        }
        if has_worked {
            self.run.offers.decline(self.me);
        } else {
            self.run.offers.ask(self.me);
        }
        false
    }

    /// Runs cores; threads that ask for some get half of those that are left, if kernels are worth it.
    fn run_and_share(&mut self, mut cores: [u64; 2]) {
        for word in 0..2 {
            while cores[word] != 0 {
                if self.run.kernels.is_worth_sharing() {
                    cores = self.run.offers.give(self.me, cores, Share::Half);
                }
                let bit = cores[word].trailing_zeros();
                cores[word] &= cores[word].wrapping_sub(1);
                self.step_and_look(if word == 0 { bit } else { 64 + bit });
            }
        }
    }

    #[inline]
    fn step_and_look(&mut self, worker: u32) {
        self.kernels_to_look -= 1;
        if self.kernels_to_look == 0 {
            self.step_timed(worker);
        } else {
            self.step_core(worker);
        }
    }

    #[inline(never)]
    fn step_timed(&mut self, worker: u32) {
        let start_ns = clock::now_ns();
        self.step_core(worker);
        self.kernels_to_look = self.run.kernels.add(clock::now_ns() - start_ns);
    }

    // In the loops over cores, which then save registers once for all of them.
    #[inline(always)]
    fn step_core(&mut self, worker: u32) {
        let beat = &self.run.beats[self.me];
        beat.core(worker);
        if let Some(mut port) = self.run.cores.get(worker as usize) {
            worker::step(&mut port);
        }
        beat.no_core();
    }
}

#[cfg(test)]
mod tests {
    use super::{KernelLength, LONG_KERNEL_NS, MEDIUM_KERNEL_NS, SHORT_KERNELS_A_LOOK};

    #[test]
    fn long_kernels_are_seen_at_once_and_a_pause_is_forgotten() {
        let kernels = KernelLength::default();
        assert_eq!(kernels.add(40), SHORT_KERNELS_A_LOOK);
        assert!(!kernels.is_worth_sharing());
        assert_eq!(kernels.add(4_000_000), 1, "the next one is looked at as well");
        assert!(kernels.is_long());
        let looks = (0..).take_while(|_| {
            kernels.add(40);
            kernels.is_worth_sharing()
        });
        assert!(looks.count() < 20, "it was a pause");
    }

    #[test]
    fn medium_kernels_are_shared_and_do_not_move_the_role() {
        let kernels = KernelLength::default();
        for _ in 0..20 {
            kernels.add(2 * MEDIUM_KERNEL_NS);
        }
        assert!(kernels.is_worth_sharing() && !kernels.is_long());
        for _ in 0..20 {
            kernels.add(LONG_KERNEL_NS + 10);
        }
        assert!(kernels.is_long());
    }
}
