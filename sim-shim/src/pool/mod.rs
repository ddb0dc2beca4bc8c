//! Hosting mode `pool`: a few OS threads step all instances and cores; one suffices.
//!
//! All AICPU instances are stepped by one OS thread at a time, which has the role of the scheduler (`role`): nothing that
//! they share is atomic, by type, and doorbells are bits in memory of their own. While a builder program runs, the
//! schedulers are stepped from its publishes, so that a task runs while its line is in the cache. The first
//! thread begins a run alone, and calls the others (`guests`) when kernels take long enough. Every thread that takes part runs
//! cores (`hands`): those that it rang, and those that a busier thread has given it (`offers`). Where kernels are
//! long, whoever has nothing to run takes the role.

mod attention;
mod cores;
mod guests;
mod hands;
mod lengths;
mod offers;
mod places;
mod pool_run;
mod role;
mod rung;

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
use cores::Cores;
use guests::{Guest, Guests};
use hands::Hands;
use lengths::{Learned, Limits};
use places::Mover;
use pool_run::PoolRun;
use role::Role;

/// The pool's OS threads; started with the first run.
pub(crate) struct Pool<B> {
    os_threads: NonZeroUsize,
    memory: Memory,
    builders: Arc<B>,
    doorbell: Arc<Doorbell>,
    engine: Option<Arc<dyn TransferEngine>>,
    threads: Vec<PoolThread<B>>,
    /// Of the kernels of the last run: those of the next one may be as long.
    learned: Learned,
    is_lost: bool,
    /// Why there are fewer threads than there should be.
    thread_error: Option<io::Error>,
}

struct PoolThread<B> {
    jobs: Sender<Arc<Job<B>>>,
    handle: JoinHandle<()>,
}

impl<B> PoolThread<B> {
    fn as_guest(&self) -> Guest<Arc<Job<B>>> {
        Guest { jobs: self.jobs.clone(), thread: self.handle.thread().clone() }
    }
}

/// What the threads are sent: a run, and the role of its scheduler.
struct Job<B> {
    run: PoolRun<B>,
    role: Mutex<Box<dyn Role<B>>>,
    guests: Guests<Arc<Job<B>>>,
}

impl<B> Job<B> {
    /// Gives the threads that have no part in the run yet one. They count as asking for work from now on, and find it when they come.
    fn call_guests(self: &Arc<Self>) {
        let ask = |guest| self.run.cores.offers.ask(guest);
        self.guests.call(self, |count| {
            self.run.finish.expect(count);
            (self.run.os_threads - count..self.run.os_threads).for_each(ask);
        });
    }
}

impl<B: BuilderSet> Pool<B> {
    pub(crate) fn new(os_threads: NonZeroUsize, memory: Memory, builders: Arc<B>) -> Self {
        let doorbell = Arc::default();
        let (engine, threads) = (None, Vec::new());
        let (learned, is_lost, thread_error) = (Learned::Nothing, false, None);
        Self {
            os_threads,
            memory,
            builders,
            doorbell,
            engine,
            threads,
            learned,
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
        let limits = if os_threads > 1 { Limits::of_this_machine() } else { Limits::USUAL };
        let cores = Arc::new(Cores::of_launch(launch, os_threads, (limits, self.learned)));
        let role = Mutex::new(role::of_launch(launch, &cores));
        let engine = self.engine.clone();
        let of_pool = (Arc::clone(&self.builders), Arc::clone(&self.doorbell), engine);
        let run = PoolRun::new(launch.clone(), of_pool, (Arc::clone(&cores), os_threads), &finish);
        let Some((first, others)) = self.threads.split_first() else {
            supervisor::raise_panic(launch);
            return true;
        };
        let others = others.iter().take(os_threads - 1).map(PoolThread::as_guest).collect();
        let guests = Guests::new(first.handle.thread().clone(), others);
        let job = Arc::new(Job { run, role, guests });
        if self.learned == Learned::LongEnough || self.engine.is_some() {
            job.call_guests();
        }
        // A thread of the pool ends only when its sender is dropped.
        first.jobs.send(job).unwrap_or_default();
        let watched = (&*finish, &*cores.beats());
        self.is_lost |= !supervisor::supervise(launch, 1, watched, supervisor::Clock::Real);
        self.learned = cores.learned();
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
    jobs: &Receiver<Arc<Job<B>>>,
    _memory: &Memory,
) {
    // Another run may follow at once; the caller is at work then as well. The first thread begins it alone.
    let at_work = if me == 0 { 2 } else { threads + 1 };
    let next = || expect_soon(at_work, || jobs.try_recv().ok()).or_else(|| jobs.recv().ok());
    let mut mover = Mover::default();
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
            mover.leave_to_caller(&run.cores.places, me);
        }
    }
}

/// Schedules and runs cores until the run is over. The first thread always takes the role when it is free: with short
/// kernels it stays where it is.
fn take_part<B: BuilderSet>(job: &Arc<Job<B>>, me: usize) {
    let Job { run, role, guests } = &**job;
    let call_guests = || job.call_guests();
    let mut hands = Hands::new(run, me, &call_guests);
    while !run.is_over() {
        hands.begin_turn();
        let mut worked = false;
        if me == 0 || run.cores.is_long() {
            // Who finds it taken has something else to do; who finds it poisoned, a run that is over.
            if let Ok(mut role) = role.try_lock() {
                run.cores.schedule_by(me);
                worked |= role.turn(&mut hands);
            }
        }
        worked |= hands.run_kept();
        hands.rest(worked);
    }
    guests.wake_present();
}
