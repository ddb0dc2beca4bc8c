//! Decides what runs the jobs of a service: thread pools, or the service itself, immediately.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, channel};

use super::copy_times::CopyTimes;
use super::error::SessionError;
use super::job_runner::JobRunner;
use super::thread_pool::ThreadPool;
use super::work::{Job, Report, Worker};

/// What runs the jobs of a service.
pub(super) enum Executors {
    /// Thread pools for the cores, for copies, for functions of the host.
    Pools(Box<ThreadPools>),
    /// The calling thread.
    Inline(Box<InlineExecutor>),
}

/// Runs jobs on the calling thread, and holds their reports.
pub(super) struct InlineExecutor {
    runner: JobRunner,
    reports: VecDeque<Report>,
    /// When copies end, in virtual time.
    times: Option<CopyTimes>,
    /// Copies that are not over yet: when they end, and their reports.
    copies: Vec<(u64, Report)>,
}

impl InlineExecutor {
    fn start(&mut self, job: Job) {
        match (job, &mut self.times) {
            (Job::Copy(stream, copy, from_ns), Some(times)) => {
                let over_ns = times.book(copy.traffic_kind(), copy.bytes(), from_ns);
                let result = self.runner.copy(&copy);
                self.copies.push((over_ns, Report::Copied(stream, result, over_ns)));
            }
            (job, _) => self.reports.push_back(self.runner.perform(job)),
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

/// Thread pools, and the channel of their reports.
pub(super) struct ThreadPools {
    cores: ThreadPool,
    copies: ThreadPool,
    functions: ThreadPool,
    reports: Receiver<Report>,
}

impl Executors {
    pub(super) fn pools(runner: &JobRunner) -> Result<Self, SessionError> {
        let (sender, reports) = channel();
        let pool =
            |name, max_threads| ThreadPool::new(name, max_threads, runner.clone(), sender.clone());
        let options = &runner.shared.options;
        Ok(Self::Pools(Box::new(ThreadPools {
            cores: pool("cores", 1)?,
            copies: pool("copies", options.copy_workers)?,
            functions: pool("functions", options.host_functions)?,
            reports,
        })))
    }

    pub(super) fn inline(runner: JobRunner) -> Self {
        let shared = &runner.shared;
        let times = |costs| CopyTimes::new(costs, shared.options.copy_workers);
        let times = shared.copy_costs.map(times);
        Self::Inline(Box::new(InlineExecutor {
            runner,
            reports: VecDeque::new(),
            times,
            copies: Vec::new(),
        }))
    }

    /// Starts a job.
    pub(super) fn start(&mut self, job: Job) {
        match self {
            Self::Inline(inline) => inline.start(job),
            Self::Pools(pools) => match job.worker() {
                Worker::Cores => pools.cores.start(job),
                Worker::Copies => pools.copies.start(job),
                Worker::Functions => pools.functions.start(job),
            },
        }
    }

    /// When the first copy ends that takes virtual time.
    pub(super) fn next_copy_ns(&self) -> Option<u64> {
        match self {
            Self::Inline(inline) => inline.first_copy().map(|(over_ns, _)| over_ns),
            Self::Pools(_) => None,
        }
    }

    /// The report of a job that is over now.
    pub(super) fn report(&mut self, now_ns: u64) -> Option<Report> {
        match self {
            Self::Inline(inline) => inline.report(now_ns),
            Self::Pools(pools) => pools.reports.try_recv().ok(),
        }
    }
}
