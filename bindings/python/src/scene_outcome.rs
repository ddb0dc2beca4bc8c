//! `FieldOutcome`: what became of a run of a program of the field.

use pto_field::Outcome;
use pyo3::prelude::*;

use crate::report::Report;

/// See the file.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct FieldOutcome(Outcome);

impl FieldOutcome {
    pub(crate) fn new(outcome: Outcome) -> Self {
        Self(outcome)
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
