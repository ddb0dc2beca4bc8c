//! Hosting mode `pool`: a few OS threads step all instances and cores; one suffices.
//!
//! All AICPU instances are stepped by one OS thread at a time, which holds the schedulers (`schedulers`): nothing that
//! they share is atomic, by type, and doorbells are bits in memory of their own. While a builder program runs, the
//! schedulers are stepped from its publishes, so that a task runs while its line is in the cache. The first
//! thread begins a run alone, and calls the others (`late_workers`) when kernels take long enough. Every thread that takes part runs
//! cores (`worker`): those that it rang, and those that a busier thread has given it (`handoffs`). Where kernels are
//! long, a thread that has nothing to run takes the schedulers.

mod cores;
mod cpus;
mod doorbell_bits;
mod durations;
mod handoffs;
mod late_workers;
mod pool_run;
mod sampler;
mod schedulers;
mod worker;

use std::io;
use std::num::NonZeroUsize;
use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use pto_aicpu_fw::Launch;
use pto_graph::BuilderSet;

use crate::doorbell::Doorbell;
use crate::group::TransferEngine;
use crate::host::{Host, Memory};
use crate::logging;
use crate::supervisor::{self, Finish};
use crate::wait::{each_has_a_cpu, expect_soon};
use cores::RunCores;
use cpus::CpuMigration;
use durations::{DurationClass, DurationLimits};
use late_workers::{LateWorker, LateWorkers};
use pool_run::PoolRun;
use schedulers::RunSchedulers;
use worker::PoolWorker;

/// The pool's OS threads; started with the first run.
pub(crate) struct Pool<B> {
    os_threads: NonZeroUsize,
    memory: Memory,
    builders: Arc<B>,
    doorbell: Arc<Doorbell>,
    engine: Option<Arc<dyn TransferEngine>>,
    threads: Vec<PoolThread<B>>,
    /// The duration class of the last run's kernels. The next run may have kernels of the same length.
    duration_class: DurationClass,
    is_lost: bool,
    /// Why there are fewer threads than there should be.
    thread_error: Option<io::Error>,
}

struct PoolThread<B> {
    jobs: Sender<Arc<PoolRunJob<B>>>,
    handle: JoinHandle<()>,
}

impl<B> PoolThread<B> {
    fn as_late_worker(&self) -> LateWorker<Arc<PoolRunJob<B>>> {
        LateWorker { jobs: self.jobs.clone(), thread: self.handle.thread().clone() }
    }
}

/// What the threads are sent: a run, and its schedulers.
struct PoolRunJob<B> {
    run: PoolRun<B>,
    schedulers: Mutex<Box<dyn RunSchedulers<B>>>,
    late_workers: LateWorkers<Arc<PoolRunJob<B>>>,
}

impl<B> PoolRunJob<B> {
    /// Gives the threads that have no part in the run yet one. They count as asking for work from now on, and find it when they come.
    fn call_late_workers(self: &Arc<Self>) {
        let ask = |late_worker| self.run.cores.handoffs.ask(late_worker);
        self.late_workers.call(self, |count| {
            self.run.finish.expect(count);
            (self.run.os_threads - count..self.run.os_threads).for_each(ask);
        });
    }
}

impl<B: BuilderSet> Pool<B> {
    pub(crate) fn new(os_threads: NonZeroUsize, memory: Memory, builders: Arc<B>) -> Self {
        let doorbell = Arc::default();
        let (engine, threads) = (None, Vec::new());
        let (duration_class, is_lost, thread_error) = (DurationClass::Unknown, false, None);
        Self {
            os_threads,
            memory,
            builders,
            doorbell,
            engine,
            threads,
            duration_class,
            is_lost,
            thread_error,
        }
    }

    /// Starts what is missing. Where the process gets no further thread, fewer do the same work.
    fn start_threads(&mut self) {
        while self.threads.len() < self.os_threads.get() {
            let (jobs, receiver) = channel();
            let me = self.threads.len();
            let memory = Arc::clone(&self.memory);
            let threads = self.os_threads.get();
            let serve = move || serve((me, threads), &receiver, &memory);
            match std::thread::Builder::new().name(format!("pto-pool-{me}")).spawn(serve) {
                Ok(handle) => self.threads.push(PoolThread { jobs, handle }),
                Err(error) => {
                    self.thread_error = Some(error);
                    break;
                }
            }
        }
    }
}

impl<B> Drop for Pool<B> {
    fn drop(&mut self) {
        for PoolThread { jobs, handle } in self.threads.drain(..) {
            drop(jobs);
            // A thread that did not come back keeps the memory alive by itself.
            if !self.is_lost {
                handle.join().unwrap_or_default();
            }
        }
    }
}

impl<B: BuilderSet> Host for Pool<B> {
    fn run(&mut self, launch: &Launch<'static>) -> bool {
        self.start_threads();
        let os_threads = self.threads.len().min(launch.aicpu_instances as usize).max(1);
        // The first thread; it calls the others.
        let finish = Finish::of(1);
        let limits = if os_threads > 1 {
            DurationLimits::of_this_machine()
        } else {
            DurationLimits::DEFAULT
        };
        let cores =
            Arc::new(RunCores::of_launch(launch, os_threads, (limits, self.duration_class)));
        let schedulers = Mutex::new(schedulers::of_launch(launch, &cores));
        let engine = self.engine.clone();
        let of_pool = (Arc::clone(&self.builders), Arc::clone(&self.doorbell), engine);
        let run = PoolRun::new(launch.clone(), of_pool, (Arc::clone(&cores), os_threads), &finish);
        let Some((first, others)) = self.threads.split_first() else {
            supervisor::raise_panic(launch);
            return true;
        };
        let others = others.iter().take(os_threads - 1).map(PoolThread::as_late_worker).collect();
        let late_workers = LateWorkers::new(first.handle.thread().clone(), others);
        let job = Arc::new(PoolRunJob { run, schedulers, late_workers });
        if self.duration_class == DurationClass::Long || self.engine.is_some() {
            job.call_late_workers();
        }
        // A thread of the pool ends only when its sender is dropped.
        first.jobs.send(job).unwrap_or_default();
        let watched = (&*finish, &*cores.beats());
        self.is_lost |= !supervisor::supervise(launch, 1, watched, supervisor::Clock::Real);
        self.duration_class = cores.duration_class();
        !self.is_lost
    }

    fn take_thread_error(&mut self) -> Option<io::Error> {
        self.thread_error.take().filter(|_| self.threads.is_empty())
    }

    fn release(&mut self) -> bool {
        // The cores of a pool touch their lines only while a run steps them.
        !self.is_lost
    }

    fn hang(&mut self, doorbell: &Arc<Doorbell>) {
        self.doorbell = Arc::clone(doorbell);
    }

    fn attach(&mut self, engine: &Arc<dyn TransferEngine>) {
        self.engine = Some(Arc::clone(engine));
    }

    fn builders(&self) -> Vec<String> {
        crate::host::names_of(&*self.builders)
    }
}

/// One OS thread of the pool, for as long as the pool lives.
fn serve<B: BuilderSet>(
    (me, threads): (usize, usize),
    jobs: &Receiver<Arc<PoolRunJob<B>>>,
    _memory: &Memory,
) {
    // Another run may follow at once; the caller is at work then as well. The first thread begins it alone.
    let at_work = if me == 0 { 2 } else { threads + 1 };
    let next = || expect_soon(at_work, || jobs.try_recv().ok()).or_else(|| jobs.recv().ok());
    let mut migration = CpuMigration::default();
    while let Some(job) = next() {
        let run = &job.run;
        let turn = AssertUnwindSafe(|| take_part(&job, me));
        if std::panic::catch_unwind(turn).is_err() {
            supervisor::raise_panic(&run.launch);
            run.abandon();
        }
        logging::set_ring(None);
        run.finish.returned();
        if each_has_a_cpu(at_work) {
            migration.leave_to_caller(&run.cores.cpus, me);
        }
    }
}

/// Schedules and runs cores until the run is over. The first thread always takes the schedulers when they are free: with short
/// kernels it stays where it is.
fn take_part<B: BuilderSet>(job: &Arc<PoolRunJob<B>>, me: usize) {
    let PoolRunJob { run, schedulers, late_workers } = &**job;
    let call_late_workers = || job.call_late_workers();
    let mut worker = PoolWorker::new(run, me, &call_late_workers);
    while !run.is_over() {
        worker.begin_turn();
        let mut worked = false;
        if me == 0 || run.cores.is_long() {
            // A thread that finds them taken has something else to do; one that finds them poisoned, a run that is over.
            if let Ok(mut schedulers) = schedulers.try_lock() {
                run.cores.schedule_by(me);
                worked |= schedulers.turn(&mut worker);
            }
        }
        worked |= worker.run_deferred();
        worker.rest(worked);
    }
    late_workers.wake_present();
}
