//! One run of a graph, and the check of its result.

use std::time::Duration;

use pto_examples::host::Verdict;
use pto_host::RunReport;

/// One run and its check.
pub(crate) struct Round {
    pub(crate) report: RunReport,
    /// `None`: kernels were left out.
    pub(crate) verdict: Option<Verdict>,
    /// What else the program says of it: names, and their values.
    pub(crate) facts: Vec<(String, String)>,
    /// What it took on this machine.
    pub(crate) wall: Duration,
}

impl Round {
    /// Whether a fault was injected into it.
    pub(crate) fn was_disturbed(&self) -> bool {
        self.report.virtual_report.as_ref().is_some_and(|report| report.injections > 0)
    }

    /// Whether it went as it must.
    pub(crate) fn passed(&self) -> bool {
        let violations = self.report.virtual_report.as_ref().map_or(0, |run| run.violation_count);
        violations == 0 && self.verdict.as_ref().is_none_or(Verdict::passed)
    }
}
