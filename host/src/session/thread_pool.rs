//! A pool of threads for jobs of one sort. It has as many threads as there were jobs at once, up to a limit; idle threads sleep.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::error::SessionError;
use super::job_runner::JobRunner;
use super::work::{Job, Report};

/// A pool of threads.
pub(super) struct ThreadPool {
    name: &'static str,
    max_threads: usize,
    queue: Arc<JobQueue>,
    runner: JobRunner,
    reports: Sender<Report>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct JobQueue {
    jobs: Mutex<Jobs>,
    changed: Condvar,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    idle: usize,
    is_closed: bool,
}

impl JobQueue {
    fn lock(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next job; `None`: the pool is closed.
    fn next(&self) -> Option<Job> {
        let mut jobs = self.lock();
        jobs.idle += 1;
        while jobs.waiting.is_empty() && !jobs.is_closed {
            jobs = self.changed.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
        jobs.idle -= 1;
        jobs.waiting.pop_front()
    }
}

impl ThreadPool {
    /// A pool of at most `max_threads` threads, one of which starts now.
    pub(super) fn new(
        name: &'static str,
        max_threads: usize,
        runner: JobRunner,
        reports: Sender<Report>,
    ) -> Result<Self, SessionError> {
        let queue = Arc::default();
        let mut pool = Self { name, max_threads, queue, runner, reports, threads: Vec::new() };
        pool.spawn_worker()
            .map_err(|cause| SessionError::Thread { what: name, cause: Arc::new(cause) })?;
        Ok(pool)
    }

    /// Starts one thread more.
    fn spawn_worker(&mut self) -> std::io::Result<()> {
        let (queue, runner) = (Arc::clone(&self.queue), self.runner.clone());
        let reports = self.reports.clone();
        let serve = move || {
            while let Some(job) = queue.next() {
                // The service ends after its pools.
                reports.send(runner.perform(job)).unwrap_or_default();
                runner.shared.driver.bell.ring();
            }
        };
        let named = std::thread::Builder::new().name(format!("pto-{}", self.name));
        self.threads.push(named.spawn(serve)?);
        Ok(())
    }

    /// Queues a job, and starts a thread for it if none is idle.
    pub(super) fn start(&mut self, job: Job) {
        let is_short = {
            let mut jobs = self.queue.lock();
            jobs.waiting.push_back(job);
            jobs.waiting.len() > jobs.idle
        };
        self.queue.changed.notify_one();
        if is_short && self.threads.len() < self.max_threads {
            // If the process gets no further thread, the present ones run the job.
            self.spawn_worker().unwrap_or_default();
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.queue.lock().is_closed = true;
        self.queue.changed.notify_all();
        for thread in self.threads.drain(..) {
            thread.join().unwrap_or_default();
        }
    }
}
