//! `KernelStream`: launches kernels of a session and copies; `HostBuffer`; `Event`; `Recording`: what was captured.

use std::sync::Arc;
use std::time::Duration;

use pto_host::session::HostBuffer as Buffer;
use pto_native::stitch::{SharedEvent, SharedKernelStream, SharedNotify, SharedRecording};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::array::Bytes;
use crate::failure::{invalid, raised_from};
use crate::program_stream::Tensor;
use crate::running::until_done;

/// A stream of a session that launches kernels.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct KernelStream(pub(crate) Arc<SharedKernelStream>);

/// An event of a session.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct Event(pub(crate) Arc<SharedEvent>);

#[pymethods]
impl Event {
    /// Whether its last record is complete. One that was never recorded is complete, and one that was reset is not.
    fn is_complete(&self) -> bool {
        self.0.is_complete()
    }

    /// When its last record became complete, in seconds since the session was opened; `None`: it is not.
    fn time(&self) -> Option<f64> {
        self.0.time().map(|time| time.as_secs_f64())
    }
}

/// A flag on the device: one stream raises it, and one waits for it and lowers it.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct Notify(pub(crate) Arc<SharedNotify>);

#[pymethods]
impl Notify {
    /// Where its word is on the device: 1 means raised. A kernel may raise it as well.
    #[getter]
    fn address(&self) -> u64 {
        self.0.address()
    }
}

/// What was captured of kernel streams.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct Recording(Arc<SharedRecording>);

/// Bytes of the host, for copies of kernel streams. They are read and written when a copy's turn comes, of a recording in each launch.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct HostBuffer(Buffer);

#[pymethods]
impl HostBuffer {
    /// `nbytes` zeros.
    #[new]
    fn new(nbytes: usize) -> PyResult<Self> {
        Buffer::new(nbytes).map(Self).map_err(raised_from)
    }

    #[getter]
    fn nbytes(&self) -> u64 {
        self.0.bytes()
    }

    /// Writes the bytes of an array, which has as many.
    fn write(&self, array: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = Bytes::of(array)?;
        let has = self.0.bytes();
        if bytes.length as u64 != has {
            return Err(invalid(format!(
                "an array of {} bytes for a buffer of {has}",
                bytes.length
            )));
        }
        // SAFETY: the array lives and nobody writes it while this thread has the interpreter.
        let written = self.0.write(unsafe { bytes.read() });
        written.ok_or_else(|| invalid("the buffer is smaller"))
    }

    /// A copy of the bytes.
    fn read<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_vec())
    }

    fn __repr__(&self) -> String {
        format!("<HostBuffer of {} bytes>", self.0.bytes())
    }
}

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

    /// Copies a `HostBuffer` to a tensor, or to an address.
    fn copy_to_device(&self, to: &Bound<'_, PyAny>, buffer: &HostBuffer) -> PyResult<()> {
        self.0.copy_to_device(word(to)?, buffer.0.clone()).map_err(raised_from)
    }

    /// Copies from a tensor, or from an address, to a `HostBuffer`.
    fn copy_from_device(&self, from_: &Bound<'_, PyAny>, buffer: &HostBuffer) -> PyResult<()> {
        self.0.copy_from_device(word(from_)?, &buffer.0).map_err(raised_from)
    }

    /// Copies bytes on the device.
    fn copy(&self, from_: &Bound<'_, PyAny>, to: &Bound<'_, PyAny>, nbytes: u64) -> PyResult<()> {
        self.0.copy_on_device(word(from_)?, word(to)?, nbytes).map_err(raised_from)
    }

    /// Fills bytes of the device.
    fn fill(&self, to: &Bound<'_, PyAny>, byte: u8, nbytes: u64) -> PyResult<()> {
        self.0.fill(word(to)?, byte, nbytes).map_err(raised_from)
    }

    /// Reduces bytes of the device into others: `how` is "sum", "max" or "min", `dtype` an element type such as "f32".
    fn reduce(
        &self,
        how: &str,
        dtype: &str,
        from_: &Bound<'_, PyAny>,
        to: &Bound<'_, PyAny>,
        nbytes: u64,
    ) -> PyResult<()> {
        let places = (word(from_)?, word(to)?);
        self.0.reduce((how, dtype), places, nbytes).map_err(raised_from)
    }

    /// Calls a function on a thread of the session; the stream waits for its return. Each launch of a recording calls it. What it raises fails the command.
    fn call(&self, function: Py<PyAny>) -> PyResult<()> {
        let call = move || {
            Python::attach(|py| {
                if let Err(error) = function.call0(py) {
                    std::panic::panic_any(error.to_string());
                }
            });
        };
        self.0.call(call).map_err(raised_from)
    }

    /// Writes a word of 64 bits of the device.
    fn write_value(&self, at: &Bound<'_, PyAny>, value: u64) -> PyResult<()> {
        self.0.write_value(word(at)?, value).map_err(raised_from)
    }

    /// Waits until a word of 64 bits of the device is as `test` says: "equal", "at least" (both with a sign), "and" (a bit in common) or "nor" (some bit is set in neither).
    #[pyo3(signature = (at, value, test = "equal"))]
    fn wait_value(&self, at: &Bound<'_, PyAny>, value: u64, test: &str) -> PyResult<()> {
        self.0.wait_value(word(at)?, test, value).map_err(raised_from)
    }

    /// Raises a flag.
    fn notify(&self, notify: &Notify) -> PyResult<()> {
        self.0.notify(&notify.0).map_err(raised_from)
    }

    /// Waits until a flag is raised, and lowers it.
    fn wait_notify(&self, notify: &Notify) -> PyResult<()> {
        self.0.wait_notify(&notify.0).map_err(raised_from)
    }

    /// Resets an event when everything before it is over.
    fn reset(&self, event: &Event) -> PyResult<()> {
        self.0.reset(&event.0).map_err(raised_from)
    }

    /// Whether everything is over that was asked. It waits for nothing, and tells no failure.
    fn query(&self) -> PyResult<bool> {
        self.0.query().map_err(raised_from)
    }

    /// Drops the commands that have not begun. Who waits for the stream is told so.
    fn abort(&self) {
        self.0.abort();
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

    /// Ends the capture: what was asked meanwhile, on this stream and on those that joined by events.
    fn end_capture(&self) -> PyResult<Recording> {
        Ok(Recording(self.0.end_capture().map_err(raised_from)?))
    }

    /// Launches a recording: as one command if it consists of launches, and as one command after the other otherwise. `bindings` are pairs: what was an argument while the stream was captured, and what stands in its place now. Hold the
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
        until_done(py, |goes_on| self.0.synchronize_while(limit, goes_on))
    }

    fn __repr__(&self) -> String {
        format!("<KernelStream {:?}>", self.0)
    }
}
