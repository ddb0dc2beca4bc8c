//! Decides who does the jobs of a service: a crew of threads, or the service itself, immediately.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, channel};

use super::crew::Crew;
use super::error::SessionError;
use super::performer::Performer;
use super::work::{Job, Report, Worker};

/// The hands of a service.
pub(super) enum Hands {
    /// Threads for the cores, for copies, for functions of the host.
    Crews(Box<Crews>),
    /// The caller's own.
    Own { performer: Performer, reports: VecDeque<Report> },
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
        Self::Own { performer, reports: VecDeque::new() }
    }

    /// Has a job done.
    pub(super) fn give(&mut self, job: Job) {
        match self {
            Self::Own { performer, reports } => reports.push_back(performer.perform(job)),
            Self::Crews(crews) => match job.worker() {
                Worker::Cores => crews.cores.give(job),
                Worker::Copies => crews.copies.give(job),
                Worker::Functions => crews.functions.give(job),
            },
        }
    }

    /// What has become of a job that is over.
    pub(super) fn report(&mut self) -> Option<Report> {
        match self {
            Self::Own { reports, .. } => reports.pop_front(),
            Self::Crews(crews) => crews.reports.try_recv().ok(),
        }
    }
}
