//! How the OS threads of a pool run the cores whose doorbells were rung.
//!
//! | kernels | the thread that schedules | the others |
//! |---|---|---|
//! | short | runs what it rings, at once | leave its cache lines alone |
//! | medium | the same, and hands some to a thread that asks | run what they are handed |
//! | long | leaves what it has rung until it has given the schedulers up | run, share, and schedule when they have nothing |

use std::thread;
use std::time::Duration;

use pto_abi::wait::{Backoff, SpinPolicy};

use super::cores::take_one;
use super::cpus::CpuMigration;
use super::doorbell_bits::DoorbellBits;
use super::handoffs::Share;
use super::pool_run::PoolRun;
use crate::wait;

/// How long an idle thread sleeps between two looks.
const SLEEP: Duration = Duration::from_micros(50);
/// Of a thread that expects something soon: after about 2 us it yields between two looks. It does not park, because its sleep would not be ended for it.
const SPIN_THEN_YIELD: SpinPolicy = SpinPolicy { spins: 20, yields: u32::MAX };

/// The cores, as one thread of the pool runs them.
pub(super) struct PoolWorker<'r, B> {
    pub(super) run: &'r PoolRun<B>,
    me: usize,
    // Cores whose doorbells were rung, and that were not run yet, because kernels are long.
    own: [u64; 2],
    kernels_to_sample: u32,
    backoff: Backoff,
    awake: Backoff,
    migration: CpuMigration,
    /// Calls the threads that have no part in the run yet; `None`: they have been called.
    call_late_workers: Option<&'r dyn Fn()>,
}

impl<'r, B> PoolWorker<'r, B> {
    pub(super) fn new(run: &'r PoolRun<B>, me: usize, call_late_workers: &'r dyn Fn()) -> Self {
        let policy = match run.has_transfers() {
            true => wait::FOR_TRANSFERS,
            false => wait::policy_for(run.os_threads),
        };
        let (backoff, awake) = (Backoff::new(policy), Backoff::new(SPIN_THEN_YIELD));
        let (migration, call_late_workers) = (CpuMigration::default(), Some(call_late_workers));
        Self {
            run,
            me,
            own: [0; 2],
            kernels_to_sample: 1,
            backoff,
            awake,
            migration,
            call_late_workers,
        }
    }

    /// One more turn of the thread: reports its progress and its CPU, which it leaves if another thread was there before; and calls the other threads when
    /// kernels are long enough for them.
    #[inline]
    pub(super) fn begin_turn(&mut self) {
        self.run.cores.beat(self.me);
        self.migration.look(&self.run.cores.cpus, self.me);
        if self.run.cores.is_worth_sharing() {
            self.call_late_workers();
        }
    }

    /// Kernels are long enough for the other threads: calls those that have no part in the run yet.
    #[inline]
    fn call_late_workers(&mut self) {
        if let Some(call_late_workers) = self.call_late_workers.take() {
            call_late_workers();
        }
    }

    /// Helps others where there are any, and the transfers; goes to sleep for a while when there is nothing to do for long.
    pub(super) fn rest(&mut self, worked: bool) {
        if self.work_elsewhere(worked) {
            self.backoff.reset();
        } else if self.backoff.wait(thread::yield_now) {
            self.sleep();
        }
    }

    /// Sleeps for a while. Kernels of medium length would wait for a sleeper longer than they take, so the thread does not ask for any meanwhile. When it wakes up
    /// it looks as often as before, because it is given some as soon as it asks. Long kernels are given only now and then, so it goes on asking for them.
    fn sleep(&mut self) {
        let cores = &self.run.cores;
        let is_medium = cores.has_idle_threads() && !cores.is_long();
        if is_medium {
            cores.handoffs.decline(self.me);
            self.backoff.reset();
        }
        thread::park_timeout(SLEEP);
    }

    /// As `rest`, of a thread that expects something soon ([`SPIN_THEN_YIELD`]): the thread that is about to submit something may wait for a CPU.
    pub(super) fn spin(&mut self, worked: bool) {
        if self.work_elsewhere(worked) {
            self.awake.reset();
        } else {
            self.awake.wait(thread::yield_now);
        }
    }

    /// Works for others and for the transfers; whether there was something to do here or there.
    fn work_elsewhere(&mut self, mut worked: bool) -> bool {
        if self.run.os_threads > 1 {
            worked |= self.help(worked);
        }
        worked || self.run.help_transfers()
    }

    /// Runs the cores that were rung, or keeps them until the thread schedules no more. Whether there are any.
    #[inline]
    pub(super) fn run_dispatched(&mut self, doorbells: &DoorbellBits) -> bool {
        let mut cores = doorbells.take();
        if cores == [0; 2] {
            return false;
        }
        if self.run.os_threads == 1 {
            while let Some(worker) = take_one(&mut cores) {
                self.run.cores.step(self.me, worker);
            }
        } else if self.run.cores.is_long() {
            self.own = [self.own[0] | cores[0], self.own[1] | cores[1]];
        } else {
            self.run_and_share(cores);
        }
        true
    }

    /// Runs what was kept.
    pub(super) fn run_deferred(&mut self) -> bool {
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
            self.own = self.run.cores.handoffs.give(self.me, self.own, Share::All);
        }
    }

    /// Runs what a busier thread has given away; asks for it when there was nothing else to do.
    fn help(&mut self, has_worked: bool) -> bool {
        let handoffs = &self.run.cores.handoffs;
        let cores = handoffs.take(self.me);
        if cores != [0; 2] {
            if self.run.cores.is_long() {
                self.run_and_share(cores);
            } else {
                // The next ones are to be there when these are done.
                handoffs.ask(self.me);
                self.run.cores.step_handed_off(self.me, cores, &mut self.kernels_to_sample);
            }
            return true;
        }
        if has_worked {
            handoffs.decline(self.me);
            return false;
        }
        let cores = handoffs.take_back(self.me);
        if cores != [0; 2] {
            self.run_and_share(cores);
            return true;
        }
        handoffs.ask(self.me);
        false
    }

    /// Runs cores; threads that ask for some get half of those that are left, if kernels are worth it.
    fn run_and_share(&mut self, mut cores: [u64; 2]) {
        while cores != [0; 2] {
            if self.run.cores.is_worth_sharing() {
                self.call_late_workers();
                cores = self.run.cores.handoffs.give(self.me, cores, Share::Half);
            }
            let Some(worker) = take_one(&mut cores) else { break };
            self.run.cores.step_and_sample(self.me, worker, &mut self.kernels_to_sample);
        }
    }
}
