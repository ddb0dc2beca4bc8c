//! `KernelStream`: launches kernels of a session; `Event`; `Recording`: what was captured.

use std::sync::Arc;
use std::time::Duration;

use pto_native::stitch::{SharedEvent, SharedKernelStream, SharedRecording};
use pyo3::prelude::*;

use crate::failure::{invalid, raised_from};
use crate::program_stream::Tensor;
use crate::running::until_done;

/// A stream of a session that launches kernels.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct KernelStream(pub(crate) Arc<SharedKernelStream>);

/// An event of a session.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct Event(pub(crate) Arc<SharedEvent>);

/// What was captured of kernel streams.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct Recording(Arc<SharedRecording>);

/// The word of an argument: an integer, or a tensor, whose address it is.
fn word(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    match value.cast::<Tensor>() {
        Ok(tensor) => tensor.get().address(),
        Err(_) => value.extract().map_err(|_| {
            invalid(format!("an argument is a tensor, or an integer of 64 bits, and not {value}"))
        }),
    }
}

#[pymethods]
impl KernelStream {
    /// Launches a kernel of the device, by its func id. Arguments are tensors, whose addresses the kernel gets, and integers; a float is given by its bits.
    #[pyo3(signature = (func_id, args, *, blocks = 1))]
    fn launch(&self, func_id: u32, args: Vec<Bound<'_, PyAny>>, blocks: u32) -> PyResult<()> {
        let args: Vec<u64> = args.iter().map(word).collect::<PyResult<_>>()?;
        self.0.launch(func_id, blocks, &args).map_err(raised_from)
    }

    /// Records an event when everything before it is over.
    fn record(&self, event: &Event) -> PyResult<()> {
        self.0.record(&event.0).map_err(raised_from)
    }

    /// Waits for the last record of an event. A stream that waits for an event of a capture takes part in the capture.
    fn wait(&self, event: &Event) -> PyResult<()> {
        self.0.wait(&event.0).map_err(raised_from)
    }

    /// From here on, what the stream is asked is written down and not done.
    fn begin_capture(&self) -> PyResult<()> {
        self.0.begin_capture().map_err(raised_from)
    }

    /// Ends the capture: what was launched meanwhile, on this stream and on those that joined by events.
    fn end_capture(&self) -> PyResult<Recording> {
        Ok(Recording(self.0.end_capture().map_err(raised_from)?))
    }

    /// Launches a recording as one command. `bindings` are pairs: what was an argument while the stream was captured, and what stands in its place now. Hold the
    /// tensors until the launch is over.
    #[pyo3(signature = (recording, bindings = Vec::new()))]
    fn launch_recording(
        &self,
        recording: &Recording,
        bindings: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
    ) -> PyResult<()> {
        let pair = |(from, to): &(Bound<'_, PyAny>, Bound<'_, PyAny>)| Ok((word(from)?, word(to)?));
        let bindings: Vec<_> = bindings.iter().map(pair).collect::<PyResult<_>>()?;
        self.0.launch_recording(&recording.0, &bindings).map_err(raised_from)
    }

    /// Waits until everything is over that was asked, at most for `timeout` seconds.
    #[pyo3(signature = (timeout = None))]
    fn synchronize(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let limit = timeout.map(Duration::try_from_secs_f64).transpose();
        let limit = limit.map_err(|error| invalid(format!("timeout: {error}")))?;
        until_done(py, limit, |limit| self.0.synchronize(Some(limit)))
    }

    fn __repr__(&self) -> String {
        format!("<KernelStream {:?}>", self.0)
    }
}
