//! A crew: threads that do jobs of one sort. There are as many threads as jobs at once, up to a limit, and idle threads sleep.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::error::SessionError;
use super::performer::Performer;
use super::work::{Job, Report};

/// A crew.
pub(super) struct Crew {
    name: &'static str,
    most: usize,
    board: Arc<Board>,
    performer: Performer,
    reports: Sender<Report>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Board {
    jobs: Mutex<Jobs>,
    changed: Condvar,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    idle: usize,
    is_closed: bool,
}

impl Board {
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job; `None`: there will be none.
    fn next(&self) -> Option<Job> {
        let mut jobs = self.jobs();
        jobs.idle += 1;
        while jobs.waiting.is_empty() && !jobs.is_closed {
            jobs = self.changed.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
        jobs.idle -= 1;
        jobs.waiting.pop_front()
    }
}

impl Crew {
    /// A crew of at most `most` threads, with one of them already there.
    pub(super) fn new(
        name: &'static str,
        most: usize,
        performer: Performer,
        reports: Sender<Report>,
    ) -> Result<Self, SessionError> {
        let board = Arc::default();
        let mut crew = Self { name, most, board, performer, reports, threads: Vec::new() };
        crew.hire().map_err(|cause| SessionError::Thread { what: name, cause: Arc::new(cause) })?;
        Ok(crew)
    }

    /// One thread more.
    fn hire(&mut self) -> std::io::Result<()> {
        let (board, performer) = (Arc::clone(&self.board), self.performer.clone());
        let reports = self.reports.clone();
        let serve = move || {
            while let Some(job) = board.next() {
                // The service ends after its crews.
                reports.send(performer.perform(job)).unwrap_or_default();
                performer.shared.driver.bell.ring();
            }
        };
        let named = std::thread::Builder::new().name(format!("pto-{}", self.name));
        self.threads.push(named.spawn(serve)?);
        Ok(())
    }

    /// Gives it a job.
    pub(super) fn give(&mut self, job: Job) {
        let is_short = {
            let mut jobs = self.board.jobs();
            jobs.waiting.push_back(job);
            jobs.waiting.len() > jobs.idle
        };
        self.board.changed.notify_one();
        if is_short && self.threads.len() < self.most {
            // Where the process gets no further thread, those that there are do the same work.
            self.hire().unwrap_or_default();
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.board.jobs().is_closed = true;
        self.board.changed.notify_all();
        for thread in self.threads.drain(..) {
            thread.join().unwrap_or_default();
        }
    }
}
