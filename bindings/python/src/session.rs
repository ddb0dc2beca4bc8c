//! `Session`: a device that stays up, with programs in its memory.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pto_native::stitch::SharedSession;
use pto_native::{Failure, FailureKind};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::failure::{raised, raised_from};
use crate::kernel_stream::{Event, KernelStream, Notify};
use crate::program::{LoadedProgram, Program, read};
use crate::program_stream::ProgramStream;

/// A device that stays up.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct Session(Mutex<Option<Arc<SharedSession>>>);

impl Session {
    pub(crate) fn new(session: Arc<SharedSession>) -> Self {
        Self(Mutex::new(Some(session)))
    }

    fn open_one(&self) -> PyResult<Arc<SharedSession>> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.clone().ok_or_else(|| {
            raised(&Failure::new(FailureKind::INVALID_HANDLE, "the session is closed"))
        })
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
        let loaded = py.detach(|| session.load(content));
        Ok(LoadedProgram(loaded.map_err(raised_from)?))
    }

    /// Opens a stream in which up to `overlap` programs overlap task by task.
    #[pyo3(signature = (*, overlap = 1))]
    fn stream(&self, py: Python<'_>, overlap: usize) -> PyResult<ProgramStream> {
        let session = self.open_one()?;
        let stream = py.detach(|| session.stream(overlap));
        Ok(ProgramStream(stream.map_err(raised_from)?))
    }

    /// Opens a stream that launches kernels.
    fn kernel_stream(&self, py: Python<'_>) -> PyResult<KernelStream> {
        let session = self.open_one()?;
        let stream = py.detach(|| session.kernel_stream());
        Ok(KernelStream(stream.map_err(raised_from)?))
    }

    /// An event that was never recorded.
    fn event(&self) -> PyResult<Event> {
        Ok(Event(self.open_one()?.event().map_err(raised_from)?))
    }

    /// A flag on the device, which is not raised.
    fn notify(&self) -> PyResult<Notify> {
        Ok(Notify(self.open_one()?.notify().map_err(raised_from)?))
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
        py.detach(|| session.reset()).map_err(raised_from)
    }

    /// Waits for what was submitted, and closes the session. Streams that are held keep the device.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let ended = py.detach(|| held.map_or(Ok(()), |session| session.synchronize()));
        ended.map_err(raised_from)
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
            // The exception that is on its way says more.
            Err(_) if !kind.is_none() => Ok(()),
            closed => closed,
        }
    }

    fn __repr__(&self) -> String {
        match self.open_one() {
            Ok(session) => format!("<{session:?}>"),
            Err(_) => "<Session, closed>".to_owned(),
        }
    }
}
