//! What became of a run.

use std::sync::atomic::Ordering;

use pto_host::RunReport;

use crate::build::{Build, LogLine};
use crate::codes::FieldError;
use crate::run_log::RunLog;

/// See the file.
pub struct RunOutcome {
    /// 0, or the negative of the error's code: what "run failed with code -N" says.
    pub code: i32,
    /// Why it failed.
    pub error: Option<FieldError>,
    /// What the engine reports; `None` where the run failed.
    pub report: Option<RunReport>,
    /// The program's messages.
    pub log: Vec<LogLine>,
    /// What is no error, and worth knowing.
    pub notes: Vec<String>,
    /// Tasks that were submitted.
    pub tasks: u64,
    /// When the tasks of each timing slot began and ended, in nanoseconds of this machine.
    pub timing: Vec<Option<(u64, u64)>>,
    /// What the run did, if [`CallOptions::keeps`](crate::CallOptions::keeps) asks for it.
    pub run_log: Option<RunLog>,
}

impl RunOutcome {
    /// The outcome of a run in which nothing was submitted.
    pub(crate) fn refused(error: FieldError) -> Self {
        Self {
            code: code_of(Some(&error)),
            error: Some(error),
            report: None,
            log: Vec::new(),
            notes: Vec::new(),
            tasks: 0,
            timing: Vec::new(),
            run_log: None,
        }
    }

    pub(crate) fn of(
        error: Option<FieldError>,
        report: Option<RunReport>,
        build: &mut Build,
    ) -> Self {
        let trace = report.as_ref().and_then(|report| report.trace.as_deref());
        let run_log = build.take_run_log(trace);
        let times = build.shared.timing.iter().map(|[begin, end]| {
            let (begin, end) = (begin.load(Ordering::Relaxed), end.load(Ordering::Relaxed));
            (begin <= end).then_some((begin, end))
        });
        Self {
            code: code_of(error.as_ref()),
            error,
            report,
            log: build.log.clone(),
            notes: build.notes.clone(),
            tasks: build.ids.next(),
            timing: times.collect(),
            run_log,
        }
    }

    /// The lines by which their tests know how the run ended.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.error.as_ref().map_or_else(Vec::new, FieldError::lines)
    }
}

fn code_of(error: Option<&FieldError>) -> i32 {
    error.map_or(0, |error| i32::try_from(error.code.0).map_or(i32::MIN, |code| -code))
}
