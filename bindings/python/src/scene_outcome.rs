//! `FieldOutcome`: the result of a run of a program of the field.

use pto_field::{Architecture, RunLog, RunOutcome};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::report::Report;

/// See the file.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct FieldOutcome(RunOutcome);

impl FieldOutcome {
    pub(crate) fn new(outcome: RunOutcome) -> Self {
        Self(outcome)
    }

    fn kept(&self, has: impl Fn(&RunLog) -> bool) -> Option<&RunLog> {
        self.0.run_log.as_ref().filter(|run_log| has(run_log))
    }
}

#[pymethods]
impl FieldOutcome {
    /// 0, or the negative of the field's error code.
    #[getter]
    fn code(&self) -> i32 {
        self.0.code
    }

    /// The lines by which tests of the field know the error.
    #[getter]
    fn lines(&self) -> Vec<String> {
        self.0.lines()
    }

    /// What is no error, and worth knowing.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.0.notes.clone()
    }

    /// The program's messages: level and text.
    #[getter]
    fn log(&self) -> Vec<(i32, String)> {
        self.0.log.iter().map(|line| (line.level, line.text.clone())).collect()
    }

    /// What the engine reports; None where the run failed.
    #[getter]
    fn report(&self) -> Option<Report> {
        self.0.report.clone().map(Report::new)
    }

    /// `deps.json`; None: the graph was not kept.
    fn deps_json(&self) -> Option<String> {
        self.kept(|run_log| run_log.keeps().graph).map(RunLog::deps_json)
    }

    /// `scope_stats.jsonl`; None: the graph was not kept.
    fn scope_stats_jsonl(&self) -> Option<String> {
        let is_fatal = self.0.error.is_some();
        self.kept(|run_log| run_log.keeps().graph)
            .map(|run_log| run_log.scope_stats_jsonl(is_fatal))
    }

    /// `chip_swimlane_records.json`; None: it was not kept when kernels ran.
    fn swimlane_json(&self, level: u32) -> Option<String> {
        self.kept(|run_log| run_log.keeps().spans).map(|run_log| run_log.swimlane_json(level))
    }

    /// `pmu.csv`, and sentences about its counters; None: it was not kept when kernels ran.
    fn pmu(&self, is_a5: bool) -> Option<(String, Vec<String>)> {
        let architecture = if is_a5 { Architecture::A5 } else { Architecture::A2a3 };
        let run_log = self.kept(|run_log| run_log.keeps().spans)?;
        Some((run_log.pmu_csv(architecture), run_log.pmu_notes(architecture)))
    }

    /// `args_dump.json` and `args.bin`; None: no arguments were kept.
    fn args_dump<'py>(&self, py: Python<'py>) -> Option<(String, Bound<'py, PyBytes>)> {
        let run_log = self.kept(|run_log| !run_log.dumped().entries.is_empty())?;
        Some((run_log.args_dump_json(), PyBytes::new(py, &run_log.dumped().bytes)))
    }

    /// How many tasks were submitted.
    #[getter]
    fn tasks(&self) -> u64 {
        self.0.tasks
    }

    /// When the tasks of each timing slot began and ended, in nanoseconds; None: nothing ran in the slot.
    #[getter]
    fn timing(&self) -> Vec<Option<(u64, u64)>> {
        self.0.timing.clone()
    }
}
