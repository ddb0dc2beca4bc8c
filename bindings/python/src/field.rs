//! `FieldRuntime`: `class Runtime` of sources in C++, from orchestration to finalisation.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pto_host::abi::RuntimeVariant;
use pto_native::{Failure, FailureKind, SharedDevice, field};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::array::Bytes;
use crate::device::Device;
use crate::failure::{raised_from, unknown};
use crate::options::RunSettings;
use crate::py_resource::PyResource;
use crate::report::Report;
use crate::running::interruptible;

/// A `Runtime` object for one orchestration and its run.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct FieldRuntime {
    variant: RuntimeVariant,
    held: Mutex<Option<PyResource<Prepared>>>,
}

struct Prepared {
    runtime: field::FieldRuntime,
    /// The device, which the runtime's memory is of.
    _device: Arc<SharedDevice>,
    /// What the orchestration has addresses of.
    arrays: Vec<Py<PyAny>>,
}

fn finalised() -> PyErr {
    raised_from(Failure::new(FailureKind::INVALID_HANDLE, "the runtime is finalised"))
}

impl FieldRuntime {
    fn on<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Prepared) -> Result<R, Failure> + Send,
    ) -> PyResult<R> {
        py.detach(|| {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            act(held.as_mut().ok_or_else(finalised)?.get_mut()?).map_err(raised_from)
        })
    }
}

#[pymethods]
impl FieldRuntime {
    #[new]
    #[pyo3(signature = (device, runtime = "host_build_graph", **options))]
    fn new(
        py: Python<'_>,
        device: &Bound<'_, Device>,
        runtime: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let variant = RuntimeVariant::from_name(runtime).ok_or_else(|| {
            let names: Vec<_> = RuntimeVariant::ALL.iter().map(|one| one.name()).collect();
            unknown("runtime", runtime, &names.join(" or "))
        })?;
        let device = device.get().open_one()?;
        let options = RunSettings::from_keywords(options)?.options;
        let made = py.detach(|| field::FieldRuntime::new(&device, &options));
        let runtime = made.map_err(raised_from)?;
        let _device = Arc::clone(&device);
        let held = PyResource::new(Prepared { runtime, _device, arrays: Vec::new() });
        Ok(Self { variant, held: Mutex::new(Some(held)) })
    }

    /// Calls an orchestration function with `[address of each array, bytes of each, elements of the first]`.
    fn orchestrate(
        &self,
        py: Python<'_>,
        path: PathBuf,
        function: String,
        arrays: &Bound<'_, PyList>,
    ) -> PyResult<()> {
        let mut words = Vec::with_capacity(2 * arrays.len() + 1);
        let mut kept = Vec::with_capacity(arrays.len());
        for array in arrays {
            words.push(Bytes::of(&array)?.address as u64);
            kept.push(array.unbind());
        }
        for array in arrays {
            words.push(Bytes::of(&array)?.length as u64);
        }
        if let Ok(first) = arrays.get_item(0) {
            words.push(first.getattr("size")?.extract()?);
        }
        self.on(py, move |held| {
            held.arrays.extend(kept);
            // SAFETY: the addresses are those of arrays that are kept until the runtime is finalised.
            unsafe { held.runtime.orchestrate(&path, &function, &mut words) }
        })
    }

    /// Runs what the orchestration has prepared; the GIL is free meanwhile.
    #[pyo3(signature = (**options))]
    fn run(&self, py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Report> {
        let asked = RunSettings::from_keywords(options)?;
        let variant = self.variant;
        let ended = interruptible(py, asked.progress.as_ref(), |control| {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            let held = held.as_mut().ok_or_else(finalised)?.get_mut()?;
            if let Some(mode) = asked.build_mode {
                held.runtime.set_build_mode(mode);
            }
            held.runtime.run(variant, &asked.options, control).map_err(raised_from)
        })?;
        Ok(Report::new(ended?))
    }

    /// Copies back what was recorded, and frees what was allocated; a second call does nothing.
    fn finalize(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some(mut held) = held else { return Ok(()) };
            // SAFETY: the arrays that the orchestration had addresses of are in `held`.
            unsafe { held.get_mut()?.runtime.finalize() }.map_err(raised_from)
        })
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Py<PyAny>,
        _error: Py<PyAny>,
        _trace: Py<PyAny>,
    ) -> PyResult<()> {
        self.finalize(py)
    }
}
