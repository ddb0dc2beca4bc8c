//! `Graph`: tasks and edges, built on the host.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pto_host::abi::numbers::Counted;
use pto_host::abi::{CoreKind, GmAddr};
use pto_host::graph::TaskSpec;
use pto_native::{GraphDraft, checked};
use pyo3::prelude::*;

use crate::failure::{raised, unknown};

/// A graph that is being built.
#[pyclass(frozen, module = "pto_runtime")]
#[derive(Default)]
pub(crate) struct Graph(Mutex<GraphDraft>);

/// A core type as users write it: "aic", "aiv", 0 or 1.
#[derive(FromPyObject)]
pub(crate) enum CoreType {
    Name(String),
    Number(i64),
}

impl CoreType {
    pub(crate) fn number(&self) -> PyResult<i64> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Name(name) => match CoreKind::from_name(name) {
                Some(kind) => Ok(kind.get().into()),
                None => Err(unknown("core type", name, "\"aic\" or \"aiv\"")),
            },
        }
    }
}

impl Graph {
    pub(crate) fn draft(&self) -> MutexGuard<'_, GraphDraft> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Graph {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Adds a task; its id counts from 0. It waits for the tasks in `after`.
    #[pyo3(signature = (func_id, core_type, args, after = Vec::new()))]
    fn add_task(
        &self,
        func_id: i64,
        core_type: CoreType,
        args: Vec<u64>,
        after: Vec<i64>,
    ) -> PyResult<u32> {
        let known = checked(func_id, core_type.number()?);
        let (func_id, kind) = known.map_err(|failure| raised(&failure))?;
        let mut draft = self.draft();
        for producer in &after {
            draft.number(*producer).map_err(|failure| raised(&failure))?;
        }
        let spec = TaskSpec { func_id, kind, args: &args, kernel: GmAddr::NULL };
        let task = draft.add_task(spec).map_err(|failure| raised(&failure))?;
        for producer in after {
            let added = draft.add_edge(producer, task.into());
            added.map_err(|failure| raised(&failure))?;
        }
        Ok(task)
    }

    /// Makes `consumer` wait for `producer`.
    fn add_edge(&self, producer: i64, consumer: i64) -> PyResult<()> {
        self.draft().add_edge(producer, consumer).map_err(|failure| raised(&failure))
    }

    #[getter]
    fn task_count(&self) -> usize {
        self.draft().tasks().len()
    }

    #[getter]
    fn edge_count(&self) -> usize {
        self.draft().edges().len()
    }

    fn __repr__(&self) -> String {
        let draft = self.draft();
        let (tasks, edges) = (draft.tasks().len(), draft.edges().len());
        format!(
            "<Graph of {} and {}>",
            Counted(tasks as u64, "task"),
            Counted(edges as u64, "edge")
        )
    }
}
