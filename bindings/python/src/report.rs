//! `Report` and `Trace`: what a run says of itself.

use std::path::PathBuf;

use pto_host::abi::CoreKind;
use pto_host::abi::numbers::Counted;
use pto_host::timeline::{Trace as Timeline, analysis::Analysis, file, html, report, svg};
use pto_host::whole_file::write_whole;
use pyo3::prelude::*;

use crate::failure::invalid;

/// What happened in a run.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct Report(pto_host::RunReport);

impl Report {
    pub(crate) fn new(report: pto_host::RunReport) -> Self {
        Self(report)
    }
}

#[pymethods]
impl Report {
    #[getter]
    fn tasks(&self) -> u64 {
        self.0.tasks
    }

    #[getter]
    fn edges(&self) -> u64 {
        self.0.edges
    }

    #[getter]
    fn edges_satisfied(&self) -> u64 {
        self.0.edges_satisfied
    }

    /// Seconds from the launch to the last instance's return.
    #[getter]
    fn makespan(&self) -> f64 {
        self.0.makespan.as_secs_f64()
    }

    #[getter]
    fn runtime(&self) -> &'static str {
        self.0.variant.name()
    }

    /// Kernels of the tasks: as many as a chain has, or one.
    #[getter]
    fn kernels(&self) -> u64 {
        self.0.kernels
    }

    /// Parts run by the cores of a kind: (aic, aiv).
    #[getter]
    fn parts_run(&self) -> (u64, u64) {
        (self.0.parts_run[0], self.0.parts_run[1])
    }

    /// Seconds from the first ready task to the last completion; None if the run was neither traced nor hosted in virtual time.
    #[getter]
    fn graph(&self) -> Option<f64> {
        self.0.graph().map(|time| time.as_secs_f64())
    }

    /// Part of the makespan that the cores of a kind spent in kernels: (aic, aiv).
    #[getter]
    fn utilisation(&self) -> (f64, f64) {
        (self.0.utilisation(CoreKind::AIC), self.0.utilisation(CoreKind::AIV))
    }

    #[getter]
    fn tasks_per_second(&self) -> f64 {
        self.0.tasks_per_second()
    }

    /// What the firmware logged: lines.
    #[getter]
    fn logs(&self) -> Vec<String> {
        self.0.logs.iter().map(ToString::to_string).collect()
    }

    /// The timeline, if the run was recorded (`trace=True`).
    #[getter]
    fn trace(&self) -> Option<Trace> {
        self.0.trace.as_deref().map(|trace| Trace(trace.clone()))
    }

    fn __repr__(&self) -> String {
        let (tasks, edges) = (Counted(self.0.tasks, "task"), Counted(self.0.edges, "edge"));
        format!("<Report: {tasks}, {edges}, {:?}>", self.0.makespan)
    }
}

/// Slot, kernel, core, start, end.
type TaskRow = (usize, String, Option<String>, Option<f64>, Option<f64>);

/// A recorded run.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct Trace(Timeline);

impl Trace {
    fn analysis(&self) -> PyResult<Analysis> {
        Analysis::of(&self.0).map_err(|error| invalid(error.to_string()))
    }

    #[expect(clippy::cast_precision_loss, reason = "times for people")]
    fn row(&self, slot: usize, task: &pto_host::timeline::Task) -> TaskRow {
        let seconds = |time: u64| time as f64 / 1e9;
        let core = task.core.map(|core| self.0.core_name(core));
        let (start, end) = (task.at.started.map(seconds), task.at.finished.map(seconds));
        (slot, self.0.kernel(task.func_id), core, start, end)
    }
}

#[pymethods]
impl Trace {
    /// From the first ready task to the last completion, or to the fault that ended the run, in seconds.
    #[getter]
    #[expect(clippy::cast_precision_loss, reason = "a time for people")]
    fn graph(&self) -> f64 {
        self.0.graph_ns() as f64 / 1e9
    }

    /// From the launch to the last instance's return, in seconds.
    #[getter]
    #[expect(clippy::cast_precision_loss, reason = "a time for people")]
    fn makespan(&self) -> Option<f64> {
        self.0.makespan_ns.map(|makespan_ns| makespan_ns as f64 / 1e9)
    }

    /// One row a task: (slot, kernel, core, start, end); times in seconds, None where they were not recorded.
    #[getter]
    fn tasks(&self) -> Vec<TaskRow> {
        self.0.tasks.iter().enumerate().map(|(slot, task)| self.row(slot, task)).collect()
    }

    /// One row for each kernel that a core ran, in the form of `tasks`: a chain has a row for each of its kernels, a task of several
    /// parts one for each part.
    #[getter]
    fn kernels(&self) -> Vec<TaskRow> {
        self.0.runs().map(|run| self.row(run.task as usize, run.run)).collect()
    }

    /// The edges: (producer, consumer).
    #[getter]
    fn edges(&self) -> Vec<(u32, u32)> {
        self.0.edges.iter().map(|edge| (edge.producer, edge.consumer)).collect()
    }

    /// Events that did not fit the rings.
    #[getter]
    fn dropped(&self) -> u64 {
        self.0.dropped()
    }

    /// Facts of the run: device, runtime, builder, ...
    #[getter]
    fn run(&self) -> Vec<(String, String)> {
        self.0.run.iter().map(|(name, fact)| (name.clone(), fact.clone())).collect()
    }

    /// Writes it for `pto view`, `pto analyze` and Perfetto.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        Ok(py.detach(|| write_whole(&path, |to| file::write(&self.0, to)))?)
    }

    /// What the makespan was made of, as text.
    fn analyze(&self) -> PyResult<String> {
        Ok(report::text(&self.0, &self.analysis()?))
    }

    /// A picture.
    fn svg(&self) -> PyResult<String> {
        Ok(svg::picture(&self.0, &self.analysis()?))
    }

    /// An interactive page that works offline.
    fn html(&self) -> PyResult<String> {
        Ok(html::page(&self.0, &self.analysis()?))
    }

    /// The picture in a notebook.
    fn _repr_svg_(&self) -> PyResult<String> {
        self.svg()
    }
}
