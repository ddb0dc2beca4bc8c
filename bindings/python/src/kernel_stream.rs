//! `KernelStream`: launches kernels of a session and copies; `HostBuffer`; `Event`; `Recording`: what was captured.

use std::sync::Arc;
use std::time::Duration;

use pto_host::abi::GmAddr;
use pto_host::session::{
    Event as StreamEvent, HostBuffer as Buffer, Notify as Flag, SessionError, Stream, Submitted,
};
use pto_native::Failure;
use pto_native::stitch::{self, TensorRecording, element_type, reduction, value_test};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::array::Bytes;
use crate::callbacks;
use crate::failure::{invalid, raised_from};
use crate::graph::ScalarWord;
use crate::program_stream::Tensor;
use crate::py_resource::PyResource;
use crate::running::{unlocked, until_done};

/// A stream of a session that launches kernels.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct KernelStream(pub(crate) PyResource<Arc<Stream>>);

/// An event of a session.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct Event(pub(crate) PyResource<StreamEvent>);

#[pymethods]
impl Event {
    /// Whether its last record is complete. One that was never recorded is complete, and one that was reset is not.
    fn is_complete(&self) -> PyResult<bool> {
        Ok(self.0.get()?.is_complete())
    }

    /// When its last record became complete, in seconds since the session was opened; `None`: it is not.
    fn time(&self) -> PyResult<Option<f64>> {
        Ok(self.0.get()?.time().map(|time| time.as_secs_f64()))
    }
}

/// A flag on the device: one stream raises it, and one waits for it and lowers it.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct Notify(pub(crate) PyResource<Flag>);

#[pymethods]
impl Notify {
    /// Where its word is on the device: 1 means raised. A kernel may raise it as well.
    #[getter]
    fn address(&self) -> PyResult<u64> {
        Ok(self.0.get()?.address().0)
    }
}

/// What was captured of kernel streams.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct Recording(PyResource<TensorRecording>);

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
        // SAFETY: the array lives, and no other thread writes it while this one has the interpreter.
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

/// An argument that is no tensor.
fn number(value: &Bound<'_, PyAny>) -> PyResult<GmAddr> {
    value.extract().map(GmAddr).map_err(|_| {
        invalid(format!("an argument is a tensor, or an integer of 64 bits, and not {value}"))
    })
}

impl KernelStream {
    /// The word of an argument: an integer, or a tensor, whose address it is. While the stream is captured, the recording will hold the tensor.
    fn word(&self, value: &Bound<'_, PyAny>) -> PyResult<GmAddr> {
        match value.cast::<Tensor>() {
            Ok(tensor) => tensor.get().shared()?.address_for(self.0.get()?).map_err(raised_from),
            Err(_) => number(value),
        }
    }

    /// The word of an argument of a kernel, which may be a float.
    fn kernel_word(&self, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        match value.cast::<Tensor>() {
            Ok(_) => self.word(value).map(|address| address.0),
            Err(_) => value.extract().map(|ScalarWord(word)| word),
        }
    }

    /// Submits a command, which may wait for room in the ring.
    fn submit(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&Stream) -> Result<Submitted, SessionError> + Send,
    ) -> PyResult<()> {
        self.ask(py, call).map(drop)
    }

    /// Asks the stream for something while other threads have the GIL.
    fn ask<R: Send, E: Into<Failure> + Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&Stream) -> Result<R, E> + Send,
    ) -> PyResult<R> {
        let stream = self.0.get()?;
        unlocked(py, || call(stream))
    }
}

#[pymethods]
impl KernelStream {
    /// Launches a kernel of the device, by its func id. Arguments are tensors, whose addresses the kernel gets, integers, and floats, of which
    /// it gets the bits of an f32.
    #[pyo3(signature = (func_id, args, *, blocks = 1))]
    fn launch(
        &self,
        py: Python<'_>,
        func_id: u32,
        args: Vec<Bound<'_, PyAny>>,
        blocks: u32,
    ) -> PyResult<()> {
        let args: Vec<u64> =
            args.iter().map(|arg| self.kernel_word(arg)).collect::<PyResult<_>>()?;
        let func_id = stitch::func_id(func_id).map_err(raised_from)?;
        self.submit(py, |stream| stream.launch_blocks(func_id, blocks, &args))
    }

    /// Copies a `HostBuffer` to a tensor, or to an address.
    fn copy_to_device(
        &self,
        py: Python<'_>,
        to: &Bound<'_, PyAny>,
        buffer: &HostBuffer,
    ) -> PyResult<()> {
        let to = self.word(to)?;
        self.submit(py, |stream| stream.copy_to_device(to, buffer.0.clone()))
    }

    /// Copies from a tensor, or from an address, to a `HostBuffer`.
    fn copy_from_device(
        &self,
        py: Python<'_>,
        from_: &Bound<'_, PyAny>,
        buffer: &HostBuffer,
    ) -> PyResult<()> {
        let from = self.word(from_)?;
        self.submit(py, |stream| stream.copy_from_device(from, &buffer.0))
    }

    /// Copies bytes on the device.
    fn copy(
        &self,
        py: Python<'_>,
        from_: &Bound<'_, PyAny>,
        to: &Bound<'_, PyAny>,
        nbytes: u64,
    ) -> PyResult<()> {
        let (from, to) = (self.word(from_)?, self.word(to)?);
        self.submit(py, |stream| stream.copy_on_device(from, to, nbytes))
    }

    /// Fills bytes of the device.
    fn fill(&self, py: Python<'_>, to: &Bound<'_, PyAny>, byte: u8, nbytes: u64) -> PyResult<()> {
        let to = self.word(to)?;
        self.submit(py, |stream| stream.fill(to, byte, nbytes))
    }

    /// Reduces bytes of the device into others: `how` is "sum", "max" or "min", `dtype` an element type such as "f32".
    fn reduce(
        &self,
        py: Python<'_>,
        how: &str,
        dtype: &str,
        from_: &Bound<'_, PyAny>,
        to: &Bound<'_, PyAny>,
        nbytes: u64,
    ) -> PyResult<()> {
        let (from, to) = (self.word(from_)?, self.word(to)?);
        let how = reduction(how).and_then(|how| Ok((how, element_type(dtype)?)));
        let how = how.map_err(raised_from)?;
        self.submit(py, |stream| stream.reduce(how, from, to, nbytes))
    }

    /// Calls a function on a thread of the session; the stream waits for its return. Each launch of a recording calls it. What it raises fails the command.
    fn call(&self, py: Python<'_>, function: Py<PyAny>) -> PyResult<()> {
        let call = move || {
            if let Err(why) = callbacks::call(&function) {
                // Without the panic hook, which would report a panic of the library.
                std::panic::resume_unwind(Box::new(why));
            }
        };
        self.submit(py, |stream| stream.call_each(call))
    }

    /// Writes a word of 64 bits of the device.
    fn write_value(&self, py: Python<'_>, at: &Bound<'_, PyAny>, value: u64) -> PyResult<()> {
        let at = self.word(at)?;
        self.submit(py, |stream| stream.write_value(at, value))
    }

    /// Waits until a word of 64 bits of the device is as `test` says: "equal", "at least" (both with a sign), "and" (a bit in common) or "nor" (some bit is set in neither).
    #[pyo3(signature = (at, value, test = "equal"))]
    fn wait_value(
        &self,
        py: Python<'_>,
        at: &Bound<'_, PyAny>,
        value: u64,
        test: &str,
    ) -> PyResult<()> {
        let at = self.word(at)?;
        let test = value_test(test).map_err(raised_from)?;
        self.submit(py, |stream| stream.wait_value(at, test, value))
    }

    /// Raises a flag.
    fn notify(&self, py: Python<'_>, notify: &Notify) -> PyResult<()> {
        let notify = notify.0.get()?;
        self.submit(py, |stream| stream.notify(notify))
    }

    /// Waits until a flag is raised, and lowers it.
    fn wait_notify(&self, py: Python<'_>, notify: &Notify) -> PyResult<()> {
        let notify = notify.0.get()?;
        self.submit(py, |stream| stream.wait_notify(notify))
    }

    /// Resets an event when everything before it is over.
    fn reset(&self, py: Python<'_>, event: &Event) -> PyResult<()> {
        let event = event.0.get()?;
        self.submit(py, |stream| stream.reset(event))
    }

    /// Whether everything is over that was asked. It waits for nothing, and reports no failure.
    fn query(&self, py: Python<'_>) -> PyResult<bool> {
        self.ask(py, Stream::query)
    }

    /// Drops the commands that have not begun. A wait for the stream raises that.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        let stream = self.0.get()?;
        py.detach(|| stream.abort());
        Ok(())
    }

    /// Records an event when everything before it is over.
    fn record(&self, py: Python<'_>, event: &Event) -> PyResult<()> {
        let event = event.0.get()?;
        self.submit(py, |stream| stream.record(event))
    }

    /// Waits for the last record of an event. A stream that waits for an event of a capture takes part in the capture.
    fn wait(&self, py: Python<'_>, event: &Event) -> PyResult<()> {
        let event = event.0.get()?;
        self.submit(py, |stream| stream.wait(event))
    }

    /// From here on, what the stream is asked is written down and not done.
    fn begin_capture(&self, py: Python<'_>) -> PyResult<()> {
        self.ask(py, Stream::begin_capture)
    }

    /// Ends the capture: what was asked meanwhile, on this stream and on those that joined by events. The recording holds the tensors that were named.
    fn end_capture(&self, py: Python<'_>) -> PyResult<Recording> {
        Ok(Recording(PyResource::new(self.ask(py, TensorRecording::end)?)))
    }

    /// Launches a recording: as one command if it consists of launches, and as one command after the other otherwise. `bindings` are pairs: what was an argument while the stream was captured, and what replaces it now. Hold the
    /// recording, and the tensors of `bindings`, until the launch is over.
    #[pyo3(signature = (recording, bindings = Vec::new()))]
    fn launch_recording(
        &self,
        py: Python<'_>,
        recording: &Recording,
        bindings: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
    ) -> PyResult<()> {
        // What is replaced may have been given away since.
        let replaced = |value: &Bound<'_, PyAny>| match value.cast::<Tensor>() {
            Ok(tensor) => Ok(tensor.get().shared()?.first_byte()),
            Err(_) => number(value),
        };
        let pair = |(from, to): &(Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Ok((replaced(from)?, self.word(to)?))
        };
        let bindings: Vec<_> = bindings.iter().map(pair).collect::<PyResult<_>>()?;
        let recording = recording.0.get()?;
        self.ask(py, |stream| recording.launch(stream, &bindings))
    }

    /// Waits until everything is over that was asked, at most for `timeout` seconds.
    #[pyo3(signature = (timeout = None))]
    fn synchronize(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let limit = timeout.map(Duration::try_from_secs_f64).transpose();
        let limit = limit.map_err(|error| invalid(format!("timeout: {error}")))?;
        let stream = self.0.get()?;
        until_done(py, |goes_on| stream.synchronize_while(limit, goes_on))
    }

    fn __repr__(&self) -> String {
        match self.0.get() {
            Ok(stream) => format!("<KernelStream {}>", stream.id()),
            Err(_) => "<KernelStream of another process>".to_owned(),
        }
    }
}
