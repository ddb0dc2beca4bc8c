//! Decides who does the jobs of a service: a crew of threads, or the service itself, immediately.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, channel};

use super::copy_times::CopyTimes;
use super::crew::Crew;
use super::error::SessionError;
use super::performer::Performer;
use super::work::{Job, Report, Worker};

/// The hands of a service.
pub(super) enum Hands {
    /// Threads for the cores, for copies, for functions of the host.
    Crews(Box<Crews>),
    /// The caller's own.
    Own(Box<Own>),
}

/// The caller's hands, and what they have done.
pub(super) struct Own {
    performer: Performer,
    reports: VecDeque<Report>,
    /// Of copies that take virtual time.
    times: Option<CopyTimes>,
    /// Copies that are not over yet: when they are, and what has become of them.
    copies: Vec<(u64, Report)>,
}

impl Own {
    fn give(&mut self, job: Job) {
        match (job, &mut self.times) {
            (Job::Copy(stream, copy, from_ns), Some(times)) => {
                let over_ns = times.book(copy.way(), copy.bytes(), from_ns);
                let result = self.performer.copy(&copy);
                self.copies.push((over_ns, Report::Copied(stream, result, over_ns)));
            }
            (job, _) => self.reports.push_back(self.performer.perform(job)),
        }
    }

    /// The copy that is over first.
    fn first_copy(&self) -> Option<(u64, usize)> {
        let copies = self.copies.iter().enumerate();
        copies.map(|(at, (over_ns, _))| (*over_ns, at)).min()
    }

    fn report(&mut self, now_ns: u64) -> Option<Report> {
        let first = self.first_copy().filter(|(over_ns, _)| *over_ns <= now_ns);
        let report = self.reports.pop_front();
        report.or_else(|| first.map(|(_, at)| self.copies.remove(at).1))
    }
}

/// Threads, and what they report.
pub(super) struct Crews {
    cores: Crew,
    copies: Crew,
    functions: Crew,
    reports: Receiver<Report>,
}

impl Hands {
    pub(super) fn crews(performer: &Performer) -> Result<Self, SessionError> {
        let (sender, reports) = channel();
        let crew = |name, most| Crew::new(name, most, performer.clone(), sender.clone());
        let options = &performer.shared.options;
        Ok(Self::Crews(Box::new(Crews {
            cores: crew("cores", 1)?,
            copies: crew("copies", options.copy_workers)?,
            functions: crew("functions", options.host_functions)?,
            reports,
        })))
    }

    pub(super) fn own(performer: Performer) -> Self {
        let shared = &performer.shared;
        let times = |costs| CopyTimes::new(costs, shared.options.copy_workers);
        let times = shared.copy_costs.map(times);
        Self::Own(Box::new(Own { performer, reports: VecDeque::new(), times, copies: Vec::new() }))
    }

    /// Has a job done.
    pub(super) fn give(&mut self, job: Job) {
        match self {
            Self::Own(own) => own.give(job),
            Self::Crews(crews) => match job.worker() {
                Worker::Cores => crews.cores.give(job),
                Worker::Copies => crews.copies.give(job),
                Worker::Functions => crews.functions.give(job),
            },
        }
    }

    /// When the first of the copies is over that take virtual time.
    pub(super) fn next_copy_ns(&self) -> Option<u64> {
        match self {
            Self::Own(own) => own.first_copy().map(|(over_ns, _)| over_ns),
            Self::Crews(_) => None,
        }
    }

    /// What has become of a job that is over now.
    pub(super) fn report(&mut self, now_ns: u64) -> Option<Report> {
        match self {
            Self::Own(own) => own.report(now_ns),
            Self::Crews(crews) => crews.reports.try_recv().ok(),
        }
    }
}
