//! `ProgramStream`: runs programs on tensors; `Tensor`: one on the device.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pto_host::stitch::{ProgramStream as Stream, Tensor as DeviceTensor};
use pto_host::workloads::tile::DType;

use pto_native::stitch::{Number, OperatorStream, RunRequest, SharedTensor};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict, PyTuple};

use crate::array::Bytes;
use crate::failure::{invalid, raised_from, unknown};
use crate::program::LoadedProgram;
use crate::py_resource::PyResource;
use crate::running::{unlocked, until_done};

/// A tensor on the device. When its last owner is gone, its memory goes to the next tensor of its stream.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct Tensor(PyResource<Arc<SharedTensor>>);

#[pymethods]
impl Tensor {
    #[getter]
    fn dtype(&self) -> PyResult<&'static str> {
        self.look(|tensor| tensor.dtype().name())
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.look(|tensor| tensor.shape().to_vec())?)
    }

    #[getter]
    fn layout(&self) -> PyResult<String> {
        self.look(|tensor| tensor.layout().to_string())
    }

    /// Bytes that it takes on the device.
    #[getter]
    fn nbytes(&self) -> PyResult<u64> {
        self.look(DeviceTensor::bytes)
    }

    /// Whether it should be on the chip, and found no room there.
    #[getter]
    fn is_bounced(&self) -> PyResult<bool> {
        self.look(DeviceTensor::is_bounced)
    }

    /// Whether it is there: no run was given it.
    #[getter]
    fn is_here(&self) -> PyResult<bool> {
        Ok(self.0.get()?.is_here())
    }

    fn __repr__(&self) -> String {
        let Ok(tensor) = self.0.get() else { return "<Tensor of another process>".to_owned() };
        let described = tensor.look(|tensor| {
            let (dtype, shape) = (tensor.dtype(), tensor.shape());
            format!("<Tensor {dtype}{shape:?} ({})>", tensor.layout())
        });
        described.unwrap_or_else(|gone| format!("<Tensor: {gone}>"))
    }
}

/// A stream of a session that runs programs.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct ProgramStream(
    pub(crate) PyResource<Arc<Stream>>,
    /// Operators on it, once one was asked for.
    OnceLock<PyResource<Arc<OperatorStream>>>,
);

/// The element type of an array, or the one that is asked for and takes as many bytes.
fn dtype_of(array: &Bound<'_, PyAny>, asked: Option<&str>) -> PyResult<DType> {
    let interface = array.getattr("__array_interface__")?;
    let text: String = interface.get_item("typestr")?.extract()?;
    let (order, code) = text.split_at_checked(1).unwrap_or_default();
    let found = match code {
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        _ => return Err(invalid(format!("a device has no elements of type {text}"))),
    };
    if order == ">" {
        return Err(invalid(
            "the array has its bytes in the other order; give array.astype('<..')",
        ));
    }
    match asked.map(named).transpose()? {
        None => Ok(found),
        Some(asked) if asked.bytes() == found.bytes() => Ok(asked),
        Some(asked) => Err(invalid(format!(
            "an element of type {asked} takes {} bytes, and one of the array {}",
            asked.bytes(),
            found.bytes()
        ))),
    }
}

fn named(name: &str) -> PyResult<DType> {
    DType::from_name(name).ok_or_else(|| {
        let known: Vec<_> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
        unknown("element type", name, &known.join(", "))
    })
}

/// What NumPy calls an element type; bfloat16 are the 16 bits that they are.
fn numpy_name(dtype: DType) -> String {
    match dtype {
        DType::BF16 => "uint16".to_owned(),
        _ => {
            let name = dtype.name();
            let long = [("f", "float"), ("i", "int"), ("u", "uint")];
            let found = long.iter().find_map(|(short, long)| {
                name.strip_prefix(short).map(|bits| format!("{long}{bits}"))
            });
            found.unwrap_or_else(|| name.to_owned())
        }
    }
}

#[pymethods]
impl ProgramStream {
    /// Runs a program, and returns at once: its outputs by name. `tensors` are lent, `give` are gone after the call; those of them that the
    /// program updates are among the outputs. `numbers` are sizes and symbols.
    #[pyo3(signature = (program, tensors, *, give = None, numbers = None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        program: &LoadedProgram,
        tensors: BTreeMap<String, Bound<'py, Tensor>>,
        give: Option<BTreeMap<String, Bound<'py, Tensor>>>,
        numbers: Option<BTreeMap<String, Bound<'py, PyAny>>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut request = RunRequest::default();
        for (name, tensor) in &tensors {
            request.lend(name, Arc::clone(tensor.get().0.get()?));
        }
        for (name, tensor) in give.iter().flatten() {
            if tensors.contains_key(name) {
                return Err(invalid(format!("{name} is lent and given; do one of them")));
            }
            request.give(name, Arc::clone(tensor.get().0.get()?));
        }
        for (name, value) in numbers.iter().flatten() {
            let number = match value.extract::<u64>() {
                Ok(integer) => Number::Integer(integer),
                Err(_) => Number::Real(value.extract::<f32>()?),
            };
            request.number(name, number);
        }
        let (stream, program) = (self.0.get()?, program.0.get()?);
        // The request may be the last to hold a tensor: it goes without the GIL as well.
        let ran = unlocked(py, move || request.run(stream, program))?;
        let outputs = PyDict::new(py);
        for (name, tensor) in ran {
            outputs.set_item(name, Bound::new(py, Tensor::new(tensor))?)?;
        }
        Ok(outputs)
    }

    /// Copies a contiguous array to the device, and converts it there if the layout asks for that. `dtype="bf16"` takes an array of uint16.
    #[pyo3(signature = (array, layout = "row-major", *, dtype = None))]
    fn to_device(
        &self,
        py: Python<'_>,
        array: &Bound<'_, PyAny>,
        layout: &str,
        dtype: Option<&str>,
    ) -> PyResult<Tensor> {
        let stream = self.0.get()?;
        let elements = Bytes::of(array)?.copied()?;
        let shape: Vec<u64> = array.getattr("shape")?.extract()?;
        let dtype = dtype_of(array, dtype)?;
        let made =
            unlocked(py, || SharedTensor::to_device(stream, (dtype, &shape), elements, layout))?;
        Ok(Tensor::new(made))
    }

    /// A tensor of zeros.
    #[pyo3(signature = (dtype, shape, layout = "row-major"))]
    fn zeros(
        &self,
        py: Python<'_>,
        dtype: &str,
        shape: Vec<u64>,
        layout: &str,
    ) -> PyResult<Tensor> {
        let (stream, dtype) = (self.0.get()?, named(dtype)?);
        Ok(Tensor::new(unlocked(py, || SharedTensor::zeros(stream, (dtype, &shape), layout))?))
    }

    /// Waits for a tensor, and gives its elements as a new array; bf16 as uint16.
    fn to_host<'py>(&self, py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
        self.await_end(py, None)?;
        let (stream, tensor) = (self.0.get()?, tensor.0.get()?);
        let read = unlocked(py, || tensor.to_host(stream))?;
        let elements = PyByteArray::new(py, read.bytes());
        let numpy = py.import("numpy")?;
        let flat = numpy.call_method1("frombuffer", (elements, numpy_name(read.dtype())))?;
        flat.call_method1("reshape", (PyTuple::new(py, read.shape())?,))
    }

    /// The tensor in a layout: the same one where it has the layout, otherwise a new one that is converted on the device.
    fn to_layout(&self, py: Python<'_>, tensor: &Tensor, layout: &str) -> PyResult<Tensor> {
        let (stream, tensor) = (self.0.get()?, tensor.0.get()?);
        Ok(Tensor::new(unlocked(py, || tensor.to_layout(stream, layout))?))
    }

    /// A new tensor of another element type.
    fn to_dtype(&self, py: Python<'_>, tensor: &Tensor, dtype: &str) -> PyResult<Tensor> {
        let (stream, tensor, dtype) = (self.0.get()?, tensor.0.get()?, named(dtype)?);
        Ok(Tensor::new(unlocked(py, || tensor.to_dtype(stream, dtype))?))
    }

    /// Takes a tensor over from another stream: this one waits for what the other one was asked so far.
    fn take_over(&self, py: Python<'_>, tensor: &Tensor, source: &Self) -> PyResult<Tensor> {
        let (stream, tensor, source) = (self.0.get()?, tensor.0.get()?, source.0.get()?);
        Ok(Tensor::new(unlocked(py, || tensor.hand_over(source, stream))?))
    }

    /// Submits the runs that wait for others to share their launch.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let stream = self.0.get()?;
        unlocked(py, || stream.flush())
    }

    /// Waits until everything is over that was asked, at most for `timeout` seconds.
    #[pyo3(signature = (timeout = None))]
    fn synchronize(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let limit = timeout.map(Duration::try_from_secs_f64).transpose();
        self.await_end(py, limit.map_err(|error| invalid(format!("timeout: {error}")))?)
    }

    /// Drops the runs that have not begun; a wait for the stream raises that.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        let stream = self.0.get()?;
        py.detach(|| stream.abort());
        Ok(())
    }

    fn __repr__(&self) -> String {
        match self.0.get() {
            Ok(stream) => format!("<ProgramStream {}>", stream.id()),
            Err(_) => "<ProgramStream of another process>".to_owned(),
        }
    }
}

impl ProgramStream {
    pub(crate) fn new(stream: Stream) -> Self {
        Self(PyResource::new(Arc::new(stream)), OnceLock::new())
    }

    /// Operators on the stream.
    pub(crate) fn operators(&self) -> PyResult<Arc<OperatorStream>> {
        let stream = self.0.get()?;
        let made = || PyResource::new(Arc::new(OperatorStream::new(stream)));
        self.1.get_or_init(made).get().map(Arc::clone)
    }

    /// Waits, and looks for signals meanwhile.
    fn await_end(&self, py: Python<'_>, limit: Option<Duration>) -> PyResult<()> {
        let stream = self.0.get()?;
        until_done(py, |goes_on| stream.synchronize_while(limit, goes_on))
    }
}

impl Tensor {
    fn look<R>(&self, look: impl FnOnce(&DeviceTensor) -> R) -> PyResult<R> {
        self.0.get()?.look(look).map_err(raised_from)
    }

    pub(crate) fn new(tensor: Arc<SharedTensor>) -> Self {
        Self(PyResource::new(tensor))
    }

    /// What it shares with the device.
    pub(crate) fn shared(&self) -> PyResult<&Arc<SharedTensor>> {
        self.0.get()
    }
}
