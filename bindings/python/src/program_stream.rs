//! `ProgramStream`: runs programs on tensors; `Tensor`: one on the device.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pto_host::workloads::tile::DType;
use pto_native::Failure;
use pto_native::stitch::{Number, Request, SharedStream, SharedTensor};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict, PyTuple};

use crate::array::Bytes;
use crate::failure::{invalid, raised_from, unknown};
use crate::program::LoadedProgram;
use crate::running::until_done;

/// A tensor on the device. When nobody holds it any more, its memory goes to the next tensor of its stream.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct Tensor(Arc<SharedTensor>);

#[pymethods]
impl Tensor {
    #[getter]
    fn dtype(&self) -> PyResult<&'static str> {
        Ok(self.0.dtype().map_err(raised_from)?.name())
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.shape().map_err(raised_from)?)
    }

    #[getter]
    fn layout(&self) -> PyResult<String> {
        self.0.layout().map_err(raised_from)
    }

    /// Bytes that it takes on the device.
    #[getter]
    fn nbytes(&self) -> PyResult<u64> {
        self.0.bytes().map_err(raised_from)
    }

    /// Whether it should be on the chip, and found no room there.
    #[getter]
    fn is_bounced(&self) -> PyResult<bool> {
        self.0.is_bounced().map_err(raised_from)
    }

    /// Whether it is there: no run was given it.
    #[getter]
    fn is_here(&self) -> bool {
        self.0.is_here()
    }

    fn __repr__(&self) -> String {
        let told = || -> Result<String, Failure> {
            let (dtype, shape) = (self.0.dtype()?, self.0.shape()?);
            Ok(format!("<Tensor {dtype}{shape:?} ({})>", self.0.layout()?))
        };
        told().unwrap_or_else(|gone| format!("<Tensor: {gone}>"))
    }
}

/// A stream of a session that runs programs.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct ProgramStream(pub(crate) Arc<SharedStream>);

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
    /// Runs a program, and returns at once: its outputs by name. `tensors` are lent, `give` are gone behind the call; those of them that the
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
        let mut request = Request::default();
        for (name, tensor) in &tensors {
            request.lend(name, Arc::clone(&tensor.get().0));
        }
        for (name, tensor) in give.iter().flatten() {
            if tensors.contains_key(name) {
                return Err(invalid(format!("{name} is lent and given; do one of them")));
            }
            request.give(name, Arc::clone(&tensor.get().0));
        }
        for (name, value) in numbers.iter().flatten() {
            let number = match value.extract::<u64>() {
                Ok(integer) => Number::Integer(integer),
                Err(_) => Number::Real(value.extract::<f32>()?),
            };
            request.number(name, number);
        }
        let ran = py.detach(|| self.0.run(&program.0, &request));
        let outputs = PyDict::new(py);
        for (name, tensor) in ran.map_err(raised_from)? {
            outputs.set_item(name, Bound::new(py, Tensor(tensor))?)?;
        }
        Ok(outputs)
    }

    /// Copies a contiguous array to the device, and converts it there if the layout asks for that. `dtype="bf16"` takes an array of uint16.
    #[pyo3(signature = (array, layout = "row-major", *, dtype = None))]
    fn to_device(
        &self,
        array: &Bound<'_, PyAny>,
        layout: &str,
        dtype: Option<&str>,
    ) -> PyResult<Tensor> {
        // SAFETY: the array lives as long as the call, and with the GIL held nobody writes it.
        let bytes = unsafe { Bytes::of(array)?.read() };
        let shape: Vec<u64> = array.getattr("shape")?.extract()?;
        let dtype = dtype_of(array, dtype)?;
        let made = self.0.to_device((dtype, &shape), bytes, layout);
        Ok(Tensor(made.map_err(raised_from)?))
    }

    /// A tensor of zeros.
    #[pyo3(signature = (dtype, shape, layout = "row-major"))]
    fn zeros(&self, dtype: &str, shape: Vec<u64>, layout: &str) -> PyResult<Tensor> {
        let made = self.0.zeros((named(dtype)?, &shape), layout);
        Ok(Tensor(made.map_err(raised_from)?))
    }

    /// Waits for a tensor, and gives its elements as a new array; bf16 as uint16.
    fn to_host<'py>(&self, py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
        self.await_end(py, None)?;
        let read = py.detach(|| self.0.to_host(&tensor.0)).map_err(raised_from)?;
        let elements = PyByteArray::new(py, read.bytes());
        let numpy = py.import("numpy")?;
        let flat = numpy.call_method1("frombuffer", (elements, numpy_name(read.dtype())))?;
        flat.call_method1("reshape", (PyTuple::new(py, read.shape())?,))
    }

    /// The tensor in a layout: the same one where it has the layout, otherwise a new one that is converted on the device.
    fn to_layout(&self, tensor: &Tensor, layout: &str) -> PyResult<Tensor> {
        Ok(Tensor(self.0.to_layout(&tensor.0, layout).map_err(raised_from)?))
    }

    /// A new tensor of another element type.
    fn to_dtype(&self, tensor: &Tensor, dtype: &str) -> PyResult<Tensor> {
        Ok(Tensor(self.0.to_dtype(&tensor.0, named(dtype)?).map_err(raised_from)?))
    }

    /// Takes a tensor over from another stream: this one waits for what the other one was asked so far.
    fn take_over(&self, tensor: &Tensor, source: &Self) -> PyResult<Tensor> {
        Ok(Tensor(self.0.take_over(&tensor.0, &source.0).map_err(raised_from)?))
    }

    /// Submits the runs that wait for others to share their launch.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.flush()).map_err(raised_from)
    }

    /// Waits until everything is over that was asked, at most for `timeout` seconds.
    #[pyo3(signature = (timeout = None))]
    fn synchronize(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let limit = timeout.map(Duration::try_from_secs_f64).transpose();
        self.await_end(py, limit.map_err(|error| invalid(format!("timeout: {error}")))?)
    }

    /// Drops the runs that have not begun; whoever waits is told so.
    fn abort(&self) {
        self.0.abort();
    }

    fn __repr__(&self) -> String {
        format!("<ProgramStream {:?}>", self.0)
    }
}

impl ProgramStream {
    /// Waits, and looks for signals meanwhile.
    fn await_end(&self, py: Python<'_>, limit: Option<Duration>) -> PyResult<()> {
        until_done(py, |goes_on| self.0.synchronize_while(limit, goes_on))
    }
}

impl Tensor {
    /// Where its first byte is.
    pub(crate) fn address(&self) -> PyResult<u64> {
        self.0.address().map_err(raised_from)
    }
}
