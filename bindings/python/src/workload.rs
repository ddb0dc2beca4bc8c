//! `CheckedWorkload`: a workload that was read from text and checked, and its run on this machine, in program order, on the
//! `v9` clock. [`CheckedWorkload::run`] is the only function that runs a program of `pto_wsp`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use pto_workload::clock::{Bindings, Foreign, ForeignCall, TaskTime, run_observed};
use pto_workload::tile::ParamKind;
use pto_workload::tree::{Checked, Task, TaskArgument, TreeNode, Workload, children};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::memory::Memory;

/// A workload that was checked.
#[pyclass(frozen, module = "pto_runtime._native")]
pub(crate) struct CheckedWorkload {
    pub(crate) checked: Checked,
    /// The tasks that the run which is under way has done, or the last one.
    done: AtomicU64,
}

/// A task: kernel, axes, lane, begin, end.
type Event = (String, Vec<i64>, u64, u64, u64);

/// Cycles, tasks, concurrent tasks, tasks beyond the window, tasks.
type Outcome = (u64, u64, u64, u64, Vec<Event>);

/// What the run of a workload is given, by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct WorkloadArgs<'py> {
    tensors: BTreeMap<String, Bound<'py, PyAny>>,
    pub(crate) sizes: BTreeMap<String, u64>,
    pub(crate) symbols: BTreeMap<String, u64>,
    pub(crate) arrays: BTreeMap<String, Vec<i32>>,
    /// Calls of a kernel that one dispatch has at most; 0: the device chooses.
    pub(crate) grain: u64,
    foreign: BTreeMap<String, Py<PyAny>>,
}

/// The memory of a tensor that a run is given.
pub(crate) struct TensorMemory {
    /// The number of the tensor.
    pub(crate) number: usize,
    pub(crate) memory: Memory,
    pub(crate) is_written: bool,
}

impl WorkloadArgs<'_> {
    /// The memory of the tensors of a workload, as far as it is given.
    pub(crate) fn operands(&self, workload: &Workload) -> PyResult<Vec<TensorMemory>> {
        let written = written(workload);
        let mut operands = Vec::new();
        for (number, tensor) in workload.tensors.iter().enumerate() {
            if let Some(array) = self.tensors.get(&tensor.name) {
                let is_written = written.contains(&number);
                let memory = Memory::of(array, tensor, is_written)?;
                operands.push(TensorMemory { number, memory, is_written });
            }
        }
        Ok(operands)
    }
}

/// A function of Python that runs a kernel.
struct PythonBody(Py<PyAny>);

impl Foreign for PythonBody {
    fn run(&self, call: &ForeignCall) -> Result<u64, String> {
        let strides: Vec<i64> = call.strides.iter().flatten().copied().collect();
        let arguments = (call.arguments, call.axis_arguments, call.addresses, strides);
        Python::attach(|py| self.0.call1(py, arguments)?.extract(py))
            .map_err(|error: PyErr| error.to_string())
    }
}

#[pymethods]
impl CheckedWorkload {
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        let parsed = Workload::parse(text);
        let parsed = parsed.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let checked = parsed.check();
        let checked = checked.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self { checked, done: AtomicU64::new(0) })
    }

    /// The textual form.
    #[getter]
    fn text(&self) -> String {
        self.checked.workload().to_string()
    }

    /// The tasks that the run which is under way has done, or the last one.
    #[getter]
    fn tasks_done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// What is allowed and may not be meant.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        let name = &self.checked.workload().name;
        let warnings = self.checked.warnings().iter();
        warnings
            .map(|warning| format!("Workload {name}{}: {}", warning.path, warning.message))
            .collect()
    }

    /// Runs it. Returns cycles, tasks, tasks that ran concurrently with another one, tasks beyond the window, and the tasks themselves
    /// where they are `traced`.
    fn run(&self, py: Python<'_>, given: WorkloadArgs<'_>, traced: bool) -> PyResult<Outcome> {
        let workload = self.checked.workload();
        let operands = given.operands(workload)?;
        let bodies: Vec<(String, PythonBody)> =
            given.foreign.into_iter().map(|(name, body)| (name, PythonBody(body))).collect();
        let (sizes, symbols, arrays) = (&given.sizes, &given.symbols, &given.arrays);
        self.done.store(0, Ordering::Relaxed);
        let outcome = py.detach(|| {
            let mut bindings = Bindings::new();
            for TensorMemory { number, memory, .. } in &operands {
                // SAFETY: `given` holds the arrays until the run has ended. A program that writes an array while a run
                // uses it has a race of its own, which the documentation of `Program.execute` forbids.
                let bound = unsafe { memory.bound() };
                bindings = bindings.tensor(&workload.tensors[*number].name, bound);
            }
            for (name, size) in sizes {
                bindings = bindings.size(name, *size);
            }
            for (name, value) in symbols {
                bindings = bindings.symbol(name, *value);
            }
            for (name, elements) in arrays {
                bindings = bindings.array(name, elements);
            }
            for (name, body) in &bodies {
                bindings = bindings.foreign(name, body);
            }
            let mut events = Vec::new();
            let (mut parallel, mut last_end) = (0, 0);
            let report = run_observed(&self.checked, &bindings, &mut |task: TaskTime| {
                self.done.fetch_add(1, Ordering::Relaxed);
                parallel += u64::from(task.start < last_end);
                last_end = last_end.max(task.end);
                if traced {
                    let (kernel, axes) = (task.kernel.to_owned(), task.axes.to_vec());
                    events.push((kernel, axes, task.lane, task.start, task.end));
                }
            });
            report.map(|report| {
                (report.total_cycles, report.tasks, parallel, report.overflows, events)
            })
        });
        outcome.map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }
}

/// The tensors that tasks write, or other ranks.
fn written(workload: &Workload) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut nodes = vec![&workload.root];
    while let Some(node) = nodes.pop() {
        if let TreeNode::Task(task) | TreeNode::Send { task, .. } = node {
            found.extend(written_by(workload, task));
        }
        if let TreeNode::Exchange(exchange) = node {
            found.insert(exchange.tensor);
        }
        nodes.extend(children(node));
    }
    found
}

fn written_by<'w>(workload: &'w Workload, task: &'w Task) -> impl Iterator<Item = usize> + 'w {
    let params = workload.kernels[task.kernel].params();
    params.iter().zip(&task.arguments).filter_map(|(param, argument)| {
        match (param.kind, argument) {
            (ParamKind::Tensor { direction, .. }, TaskArgument::View(view)) => {
                direction.is_written().then_some(view.tensor)
            }
            _ => None,
        }
    })
}
