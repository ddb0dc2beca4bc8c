//! `DeviceWorkload`: a workload that was compiled for devices. The plan is compiled once; each run gives it tensors, sizes and symbols.

use std::collections::BTreeMap;

use pto_host::workload::{ArrayBinding, WorkloadBindings, WorkloadError, WorkloadRun};
use pto_host::workloads::plan::{Compiled, SymbolUse, compile};
use pto_host::{DeviceBuffer, KernelFn, RunControl, RunOptions, RunReport, WhenFull};
use pto_native::Failure;
use pto_workload::tree::Workload;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::device::Device;
use crate::device_tensors::HostTensors;
use crate::foreign_kernel;
use crate::options::RunSettings;
use crate::report::Report;
use crate::running::interruptible;
use crate::workload::{CheckedWorkload, WorkloadArgs};

/// A workload that was compiled.
#[pyclass(frozen, module = "pto_runtime._native")]
pub(crate) struct DeviceWorkload {
    workload: Workload,
    compiled: Compiled,
    /// Kernels with bodies in C++.
    functions: Vec<(String, KernelFn)>,
}

/// Why a run has no report.
enum RunFailure {
    Failure(Failure),
    Workload(WorkloadError),
}

impl<E: Into<WorkloadError>> From<E> for RunFailure {
    fn from(error: E) -> Self {
        Self::Workload(error.into())
    }
}

impl From<RunFailure> for PyErr {
    fn from(ended: RunFailure) -> Self {
        match ended {
            RunFailure::Failure(failure) => PyRuntimeError::new_err(failure.message),
            RunFailure::Workload(error) => PyRuntimeError::new_err(error.to_string()),
        }
    }
}

#[pymethods]
impl DeviceWorkload {
    /// `functions` are the addresses of what [`foreign_kernel`] lets a compiled body export.
    #[new]
    fn new(checked: &CheckedWorkload, functions: BTreeMap<String, usize>) -> PyResult<Self> {
        let compiled = compile(&checked.checked);
        let compiled = compiled.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let entry = |(name, address)| {
            // SAFETY: the package gives addresses of such functions only, in libraries that stay loaded.
            let entry = unsafe { foreign_kernel::entry_at(address) };
            entry.map(|entry| (name, entry)).ok_or_else(|| PyValueError::new_err("a null address"))
        };
        let functions = functions.into_iter().map(entry).collect::<PyResult<_>>()?;
        Ok(Self { workload: checked.checked.workload().clone(), compiled, functions })
    }

    /// Words of 32 bits of the plan.
    #[getter]
    fn plan_words(&self) -> usize {
        self.compiled.words().len()
    }

    /// Runs it on a device; gives the report, and the cycles of the `v9` clock that its kernels have reported, in sum.
    #[pyo3(signature = (device, given, **options))]
    fn run(
        &self,
        py: Python<'_>,
        device: &Device,
        given: WorkloadArgs<'_>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<(Report, u64)> {
        let device = device.open_one()?;
        let asked = RunSettings::from_keywords(options)?;
        let mut options = asked.options;
        if let Some(trace) = &mut options.trace {
            trace.when_full = WhenFull::Wait;
        }
        let operands = given.operands(&self.workload)?;
        // SAFETY: `given` holds the arrays until the run has ended, and the documentation of `Program.execute` forbids to use
        // them meanwhile.
        let tensors = unsafe { HostTensors::of(&self.workload, &operands)? };
        let (sizes, symbols, arrays) = (&given.sizes, &given.symbols, &given.arrays);
        let mut bindings = WorkloadBindings::new().grain(given.grain);
        for (name, body) in &self.functions {
            bindings = bindings.function(name, *body);
        }
        for (name, used) in self.compiled.symbols() {
            let values = if matches!(used, SymbolUse::Size(_)) { sizes } else { symbols };
            if let Some(value) = values.get(name) {
                bindings = match used {
                    SymbolUse::Size(_) => bindings.size(name, *value),
                    SymbolUse::Number | SymbolUse::Float => bindings.symbol(name, *value),
                };
            }
        }
        let arrays: Vec<(&String, &Vec<i32>)> =
            arrays.iter().filter(|(name, _)| self.compiled.arrays().contains(name)).collect();
        // The tensors hold cells, which stay on the thread of the run.
        let tensors = OneThread(tensors);
        let ended = interruptible(py, asked.progress.as_ref(), |control| {
            let shared = device.with(|device| {
                self.run_on(device, tensors.into_inner(), bindings, &arrays, &options, control)
            });
            shared.map_err(RunFailure::Failure)?
        })?;
        let (report, cycles) = ended?;
        Ok((Report::new(report), cycles))
    }
}

impl DeviceWorkload {
    fn run_on(
        &self,
        device: &mut pto_host::Device,
        tensors: HostTensors,
        bindings: WorkloadBindings,
        arrays: &[(&String, &Vec<i32>)],
        options: &RunOptions,
        control: &RunControl,
    ) -> Result<(RunReport, u64), RunFailure> {
        let tensors = tensors.upload(device)?;
        let mut bindings = tensors.bind(bindings);
        let mut buffers: Vec<DeviceBuffer<i32>> = Vec::new();
        for (name, elements) in arrays {
            // An empty array has an address, and no elements.
            let buffer = match elements.as_slice() {
                [] => device.zeroed(1)?,
                elements => device.upload(elements)?,
            };
            let array = ArrayBinding { address: buffer.address(), length: elements.len() as u64 };
            bindings = bindings.array(name, array);
            buffers.push(buffer);
        }
        let run = WorkloadRun::bind(device, self.compiled.clone(), &bindings)?;
        let report = run.run_named(device, options, control);
        // Tasks before a fault have been done, as in program order.
        tensors.download()?;
        Ok((report?, run.kernel_cycles()?))
    }
}

/// Moves a value to the thread of a run, which alone uses it.
struct OneThread<T>(T);

impl<T> OneThread<T> {
    fn into_inner(self) -> T {
        self.0
    }
}

// SAFETY: the value is moved, and only the thread that gets it uses it; what its cells point to is used by that thread only while
// the caller waits for it.
unsafe impl<T> Send for OneThread<T> {}
