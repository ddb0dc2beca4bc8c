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
/// Batches of rung cores between two samples of how long kernels are.
const BATCHES_A_SAMPLE: u32 = 16;
/// Kernels of which a sample is the mean.
const KERNELS_A_SAMPLE: u32 = 4;

/// How long an idle thread sleeps between two looks.
const NAP: Duration = Duration::from_micros(50);

/// How long kernels are just now. In a line of its own, which all threads read and hardly anybody writes.
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

    fn set(&self, mean_ns: u64) {
        self.mean_ns.store(u32::try_from(mean_ns).unwrap_or(u32::MAX), Ordering::Relaxed);
    }
}

/// The kernels of one sample, and the one before it. Two in a row have to say that kernels are long: one may be the
/// pause that the operating system made.
#[derive(Default)]
struct Sample {
    left: u32,
    sum_ns: u64,
    previous_ns: u64,
}

impl Sample {
    /// Takes the time of a kernel; the verdict, once there are enough of them.
    fn add(&mut self, took_ns: u64) -> Option<u64> {
        self.sum_ns += took_ns;
        self.left -= 1;
        if self.left > 0 {
            return None;
        }
        let mean_ns = core::mem::take(&mut self.sum_ns) / u64::from(KERNELS_A_SAMPLE);
        let previous_ns = core::mem::replace(&mut self.previous_ns, mean_ns);
        if mean_ns >= MEDIUM_KERNEL_NS && previous_ns < MEDIUM_KERNEL_NS {
            self.left = KERNELS_A_SAMPLE;
        }
        Some(mean_ns.min(previous_ns))
    }
}

/// The cores, as one thread of the pool runs them.
pub(super) struct Hands<'r, B> {
    pub(super) run: &'r PoolRun<B>,
    me: usize,
    // Rung, and not run yet, because kernels are long.
    own: [u64; 2],
    batches: u32,
    sample: Sample,
    backoff: Backoff,
}

impl<'r, B> Hands<'r, B> {
    pub(super) fn new(run: &'r PoolRun<B>, me: usize) -> Self {
        let backoff = Backoff::new(Patience::for_threads(run.os_threads));
        Self { run, me, own: [0; 2], batches: 0, sample: Sample::default(), backoff }
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
        self.batches = self.batches.wrapping_add(1);
        if self.batches % BATCHES_A_SAMPLE == 1 && self.sample.left == 0 {
            self.sample.left = KERNELS_A_SAMPLE;
        }
        for word in 0..2 {
            while cores[word] != 0 {
                if self.run.kernels.is_worth_sharing() {
                    cores = self.run.offers.give(self.me, cores, Share::Half);
                }
                let bit = cores[word].trailing_zeros();
                cores[word] &= cores[word].wrapping_sub(1);
                self.step_sampled(if word == 0 { bit } else { 64 + bit });
            }
        }
    }

    #[inline]
    fn step_sampled(&mut self, worker: u32) {
        if self.sample.left == 0 {
            self.step_core(worker);
            return;
        }
        let start = clock::now_ns();
        self.step_core(worker);
        if let Some(mean_ns) = self.sample.add(clock::now_ns() - start) {
            self.run.kernels.set(mean_ns);
        }
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
    use super::{KERNELS_A_SAMPLE, KernelLength, LONG_KERNEL_NS, Sample};

    fn add(sample: &mut Sample, took_ns: u64) -> Option<u64> {
        let verdicts: Vec<_> = (0..KERNELS_A_SAMPLE).map(|_| sample.add(took_ns)).collect();
        assert!(verdicts[..verdicts.len() - 1].iter().all(Option::is_none));
        verdicts.last().copied().flatten()
    }

    #[test]
    fn one_pause_does_not_make_kernels_long() {
        let kernels = KernelLength::default();
        let mut sample = Sample { left: KERNELS_A_SAMPLE, ..Sample::default() };
        kernels.set(add(&mut sample, 40).unwrap());
        assert_eq!(sample.left, 0);
        sample.left = KERNELS_A_SAMPLE;
        kernels.set(add(&mut sample, 4_000_000).unwrap());
        assert!(!kernels.is_worth_sharing(), "it was one");
        assert_eq!(sample.left, KERNELS_A_SAMPLE, "and is looked at again at once");
        kernels.set(add(&mut sample, 40).unwrap());
        assert!(!kernels.is_worth_sharing());
    }

    #[test]
    fn two_samples_in_a_row_do() {
        let kernels = KernelLength::default();
        let mut sample = Sample { left: KERNELS_A_SAMPLE, ..Sample::default() };
        kernels.set(add(&mut sample, LONG_KERNEL_NS).unwrap());
        kernels.set(add(&mut sample, LONG_KERNEL_NS).unwrap());
        assert!(kernels.is_worth_sharing() && kernels.is_long());
        sample.left = KERNELS_A_SAMPLE;
        kernels.set(add(&mut sample, LONG_KERNEL_NS - 1).unwrap());
        assert!(kernels.is_worth_sharing() && !kernels.is_long());
    }
}
