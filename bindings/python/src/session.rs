//! `Session`: a device that stays up, with programs in its memory.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pto_host::stitch::Stitcher;
use pto_native::{Failure, FailureKind, stitch};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::failure::raised_from;
use crate::kernel_stream::{Event, KernelStream, Notify};
use crate::program::{LoadedProgram, Program, read};
use crate::program_stream::ProgramStream;
use crate::py_resource::{PyResource, Unlocked, locked};
use crate::running::unlocked;

/// A device that stays up.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct Session(Mutex<Option<PyResource<Stitcher>>>);

impl Session {
    pub(crate) fn new(session: Stitcher) -> Self {
        Self(Mutex::new(Some(PyResource::new(session))))
    }

    fn open_one(&self) -> PyResult<Unlocked<Stitcher>> {
        let held = locked(&self.0);
        let closed =
            || raised_from(Failure::new(FailureKind::INVALID_HANDLE, "the session is closed"));
        held.as_ref().ok_or_else(closed)?.share()
    }
}

#[pymethods]
impl Session {
    /// Puts a program, or the program of a file, into the memory of the device.
    fn load(&self, py: Python<'_>, program: &Bound<'_, PyAny>) -> PyResult<LoadedProgram> {
        let session = self.open_one()?;
        let content = match program.cast::<Program>() {
            Ok(program) => program.get().content.clone(),
            Err(_) => read(&program.extract::<PathBuf>()?)?,
        };
        Ok(LoadedProgram(PyResource::new(unlocked(py, || stitch::load(&session, content))?)))
    }

    /// Opens a stream in which up to `overlap` programs overlap task by task.
    #[pyo3(signature = (*, overlap = 1))]
    fn stream(&self, py: Python<'_>, overlap: usize) -> PyResult<ProgramStream> {
        let session = self.open_one()?;
        let stream = unlocked(py, || session.overlapping_stream(overlap))?;
        Ok(ProgramStream::new(stream))
    }

    /// Opens a stream that launches kernels.
    fn kernel_stream(&self, py: Python<'_>) -> PyResult<KernelStream> {
        let session = self.open_one()?;
        let stream = unlocked(py, || session.session().stream())?;
        Ok(KernelStream(PyResource::new(Arc::new(stream))))
    }

    /// An event that was never recorded.
    fn event(&self, py: Python<'_>) -> PyResult<Event> {
        let session = self.open_one()?;
        Ok(Event(PyResource::new(unlocked(py, || session.session().event())?)))
    }

    /// A flag on the device, which is not raised.
    fn notify(&self, py: Python<'_>) -> PyResult<Notify> {
        let session = self.open_one()?;
        Ok(Notify(PyResource::new(unlocked(py, || session.session().notify())?)))
    }

    /// What was copied, converted, bounced and allocated since the device was opened, by name.
    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = PyDict::new(py);
        for (name, value) in self.open_one()?.counters().all() {
            counters.set_item(name, value)?;
        }
        Ok(counters)
    }

    /// Drops what has not begun, forgets failures, and makes streams that have stopped take programs again.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        let session = self.open_one()?;
        unlocked(py, || session.session().reset())
    }

    /// Waits for what was submitted, and closes the session. Streams that are held keep the device.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let held = locked(&self.0).take();
        let Some(held) = held else { return Ok(()) };
        let session = held.into_inner()?;
        unlocked(py, move || session.session().synchronize())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        match self.close(py) {
            // The exception that is on its way says more; the end of a child of fork is one.
            Err(_) if !kind.is_none() => Ok(()),
            closed => closed,
        }
    }

    fn __repr__(&self) -> String {
        match self.open_one() {
            Ok(session) => format!("<{:?}>", session.session()),
            Err(_) => "<Session, closed>".to_owned(),
        }
    }
}
