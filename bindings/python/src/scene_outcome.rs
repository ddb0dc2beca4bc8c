//! `FieldOutcome`: what became of a run of a program of the field.

use pto_field::{Architecture, Diary, Outcome};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::report::Report;

/// See the file.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct FieldOutcome(Outcome);

impl FieldOutcome {
    pub(crate) fn new(outcome: Outcome) -> Self {
        Self(outcome)
    }

    fn kept(&self, has: impl Fn(&Diary) -> bool) -> Option<&Diary> {
        self.0.diary.as_ref().filter(|diary| has(diary))
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
        self.kept(|diary| diary.keeps().graph).map(Diary::deps_json)
    }

    /// `scope_stats.jsonl`; None: the graph was not kept.
    fn scope_stats_jsonl(&self) -> Option<String> {
        let is_fatal = self.0.error.is_some();
        self.kept(|diary| diary.keeps().graph).map(|diary| diary.scope_stats_jsonl(is_fatal))
    }

    /// `chip_swimlane_records.json`; None: it was not kept when kernels ran.
    fn swimlane_json(&self, level: u32) -> Option<String> {
        self.kept(|diary| diary.keeps().spans).map(|diary| diary.swimlane_json(level))
    }

    /// `pmu.csv`, and sentences about its counters; None: it was not kept when kernels ran.
    fn pmu(&self, is_a5: bool) -> Option<(String, Vec<String>)> {
        let architecture = if is_a5 { Architecture::A5 } else { Architecture::A2a3 };
        let diary = self.kept(|diary| diary.keeps().spans)?;
        Some((diary.pmu_csv(architecture), diary.pmu_notes(architecture)))
    }

    /// `args_dump.json` and `args.bin`; None: no arguments were kept.
    fn args_dump<'py>(&self, py: Python<'py>) -> Option<(String, Bound<'py, PyBytes>)> {
        let diary = self.kept(|diary| !diary.dumped().entries.is_empty())?;
        Some((diary.args_dump_json(), PyBytes::new(py, &diary.dumped().bytes)))
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
