//! Operators from Python: the table of them, arrays, and the call that runs one. `pto_runtime/ops.py` makes functions of the table.

use std::sync::Arc;

use pto_native::stitch::{OperatorArray as NativeArray, OperatorInput, OperatorStream};
use pto_operators::{AttributeValue, DType, Operator, OperatorSchema, Tensor, TensorType};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyDict, PyList, PyString, PyTuple};

use crate::array::Bytes;
use crate::dlpack;
use crate::failure::{invalid, raised_from, unknown};
use crate::program_stream::{ProgramStream, Tensor as PyTensor};
use crate::py_resource::PyResource;
use crate::running::{unlocked, until_done};

/// An array on a device, and the stream of its commands.
#[derive(Clone)]
struct StreamArray {
    stream: Arc<OperatorStream>,
    array: NativeArray,
}

/// An array on a device.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct OperatorArray(PyResource<StreamArray>);

fn named(name: &str) -> PyResult<DType> {
    DType::from_name(name)
        .ok_or_else(|| unknown("element type", name, &DType::ALL.map(DType::name).join(", ")))
}

/// Waits for the stream, and looks for signals meanwhile.
fn await_end(py: Python<'_>, stream: &OperatorStream) -> PyResult<()> {
    until_done(py, |goes_on| stream.stream().synchronize_while(None, goes_on))
}

impl OperatorArray {
    fn new(stream: &Arc<OperatorStream>, array: NativeArray) -> Self {
        Self(PyResource::new(StreamArray { stream: Arc::clone(stream), array }))
    }

    fn host(&self, py: Python<'_>) -> PyResult<Tensor> {
        let StreamArray { stream, array } = self.0.get()?;
        await_end(py, stream)?;
        unlocked(py, || stream.to_host(array))
    }
}

#[pymethods]
impl OperatorArray {
    #[getter]
    fn dtype(&self) -> PyResult<&'static str> {
        Ok(self.0.get()?.array.ty().dtype.name())
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.get()?.array.ty().shape)
    }

    #[getter]
    fn nbytes(&self) -> PyResult<usize> {
        Ok(self.0.get()?.array.ty().bytes())
    }

    /// Waits for the array; its elements as they are on the device, row-major.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyByteArray>> {
        Ok(PyByteArray::new(py, self.host(py)?.bytes()))
    }

    /// Elements from `first` on, in these extents, without a copy.
    fn part(&self, first: usize, shape: Vec<usize>) -> PyResult<Self> {
        let StreamArray { stream, array } = self.0.get()?;
        Ok(Self::new(stream, array.part(first, &shape).map_err(raised_from)?))
    }

    /// The tensor that the array is; an error where it is only a part of one.
    fn tensor(&self) -> PyResult<PyTensor> {
        let array = &self.0.get()?.array;
        let (tensor, first) = array.tensor();
        let wanted = array.ty().stored_shape();
        let is_whole = tensor.look(|found| first == 0 && *found.shape() == wanted);
        if !is_whole.map_err(raised_from)? {
            return Err(invalid(
                "the array is a part of a tensor, or has other extents than the tensor; use ops.array(x) for a copy",
            ));
        }
        Ok(PyTensor::new(Arc::clone(tensor)))
    }

    /// Waits for the array; a capsule of DLPack with a copy of it.
    fn dlpack<'py>(&self, py: Python<'py>, knows_versions: bool) -> PyResult<Bound<'py, PyAny>> {
        dlpack::export(py, &self.host(py)?, knows_versions)
    }

    /// A new array of the same stream with these elements.
    fn beside(
        &self,
        py: Python<'_>,
        array: &Bound<'_, PyAny>,
        dtype: &str,
        shape: Vec<usize>,
    ) -> PyResult<Self> {
        let stream = Arc::clone(&self.0.get()?.stream);
        uploaded(py, &stream, array, dtype, &shape)
    }

    /// Waits for everything that was asked of the stream, and says what went wrong.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        let stream = &self.0.get()?.stream;
        await_end(py, stream)?;
        unlocked(py, || stream.synchronize())
    }
}

fn uploaded(
    py: Python<'_>,
    stream: &Arc<OperatorStream>,
    array: &Bound<'_, PyAny>,
    dtype: &str,
    shape: &[usize],
) -> PyResult<OperatorArray> {
    let bytes = Bytes::of(array)?.copied()?;
    let tensor = Tensor::from_bytes(TensorType::new(named(dtype)?, shape), bytes);
    let tensor =
        tensor.map_err(|found| invalid(format!("{found} bytes are not {dtype}{shape:?}")))?;
    let made = unlocked(py, || stream.to_device(tensor))?;
    Ok(OperatorArray::new(stream, made))
}

/// Copies a contiguous array to the device of a stream.
#[pyfunction]
pub(crate) fn operator_array(
    py: Python<'_>,
    stream: &ProgramStream,
    array: &Bound<'_, PyAny>,
    dtype: &str,
    shape: Vec<usize>,
) -> PyResult<OperatorArray> {
    uploaded(py, &stream.operators()?, array, dtype, &shape)
}

/// A tensor of a stream as an array, without a copy.
#[pyfunction]
#[pyo3(signature = (stream, tensor, dtype = None))]
pub(crate) fn operator_array_of(
    stream: &ProgramStream,
    tensor: &PyTensor,
    dtype: Option<&str>,
) -> PyResult<OperatorArray> {
    let stream = stream.operators()?;
    let dtype = dtype.map(named).transpose()?;
    let array = stream.array_of(tensor.shared()?, dtype).map_err(raised_from)?;
    Ok(OperatorArray::new(&stream, array))
}

/// Copies what a capsule of DLPack has to the device of a stream.
#[pyfunction]
pub(crate) fn operator_array_of_dlpack(
    py: Python<'_>,
    stream: &ProgramStream,
    capsule: &Bound<'_, PyAny>,
) -> PyResult<OperatorArray> {
    let stream = stream.operators()?;
    let tensor = dlpack::import(capsule)?;
    let made = unlocked(py, || stream.to_device(tensor))?;
    Ok(OperatorArray::new(&stream, made))
}

/// The operators: name, function, what it computes, names of inputs, how many there have to be, whether more may follow, and the attributes: name, what it is for,
/// what a caller gives, defaults in a list of one, or of none.
#[pyfunction]
pub(crate) fn operator_table(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let rows = OperatorSchema::all().iter().map(|row| {
        let attributes = row.attributes.iter().map(|one| {
            let default = one.default.as_ref().map(|value| shown(py, value)).transpose()?;
            let default = PyList::new(py, default)?;
            (one.name, one.about, &one.form, default).into_pyobject(py)
        });
        let attributes = PyList::new(py, attributes.collect::<PyResult<Vec<_>>>()?)?;
        let inputs = PyTuple::new(py, row.inputs)?;
        (row.name, &row.function, &row.about, inputs, row.required, row.takes_more, attributes)
            .into_pyobject(py)
    });
    PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)
}

/// An attribute as an object of Python.
fn shown<'py>(py: Python<'py>, value: &AttributeValue) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        AttributeValue::Nothing => py.None().into_bound(py),
        AttributeValue::Flag(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        AttributeValue::Integer(number) => {
            // Attributes of files have 64 bits.
            match i64::try_from(*number) {
                Ok(number) => number.into_pyobject(py)?.into_any(),
                Err(_) => u64::try_from(*number).unwrap_or(u64::MAX).into_pyobject(py)?.into_any(),
            }
        }
        AttributeValue::Number(number) => number.into_pyobject(py)?.into_any(),
        AttributeValue::Text(text) => PyString::new(py, text).into_any(),
        AttributeValue::List(values) => {
            let values: Vec<_> =
                values.iter().map(|one| shown(py, one)).collect::<PyResult<_>>()?;
            PyList::new(py, values)?.into_any()
        }
        AttributeValue::Named(values) => {
            let named = PyDict::new(py);
            for (name, value) in values {
                named.set_item(name, shown(py, value)?)?;
            }
            named.into_any()
        }
    })
}

/// An attribute of an object of Python. `depth`: lists in it, at most.
fn attribute(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<AttributeValue> {
    if value.is_none() {
        return Ok(AttributeValue::Nothing);
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(AttributeValue::Flag(flag.is_true()));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(AttributeValue::Text(text.to_cow()?.into_owned()));
    }
    if value.hasattr("__index__")? && value.getattr("shape").is_err() {
        return integer(value).map(AttributeValue::Integer);
    }
    if depth > 0 {
        if let Ok(named) = value.cast::<PyDict>() {
            let pairs = named.iter().map(|(name, value)| {
                Ok((name.extract::<String>()?, attribute(&value, depth - 1)?))
            });
            return pairs.collect::<PyResult<_>>().map(AttributeValue::Named);
        }
        if value.cast::<PyList>().is_ok() || value.cast::<PyTuple>().is_ok() {
            let values = value.try_iter()?.map(|one| attribute(&one?, depth - 1));
            return values.collect::<PyResult<_>>().map(AttributeValue::List);
        }
        // Arrays and scalars of NumPy.
        if value.hasattr("__array_interface__")? && value.hasattr("tolist")? {
            return attribute(&value.call_method0("tolist")?, depth - 1);
        }
    }
    if let Ok(number) = value.extract::<f64>() {
        return Ok(AttributeValue::Number(number));
    }
    let kind = value.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "an attribute is a number, a text, None, or a list or dict of them, and not {kind}"
    )))
}

fn integer(value: &Bound<'_, PyAny>) -> PyResult<i128> {
    let index = value.call_method0("__index__")?;
    if let Ok(small) = index.extract::<i64>() {
        return Ok(small.into());
    }
    index
        .extract::<u64>()
        .map(i128::from)
        .map_err(|_| PyValueError::new_err(format!("{index} is an integer of more than 64 bits")))
}

/// A number of Python beside arrays of a type.
enum Number {
    Flag(bool),
    Integer(i128),
    Real(f64),
}

impl Number {
    /// The bits of the element of this type that it is.
    fn bits(&self, dtype: DType) -> Result<u64, String> {
        let shown = match self {
            Self::Flag(true) => "True".to_owned(),
            Self::Flag(false) => "False".to_owned(),
            Self::Integer(number) => number.to_string(),
            Self::Real(number) => format!("{number:?}"),
        };
        let refused = || {
            format!(
                "is {shown}, which is no element of type {dtype}; cast the array, or give another number"
            )
        };
        let wide = match self {
            Self::Flag(flag) if dtype == DType::Bool => Tensor::scalar(i64::from(*flag)),
            Self::Integer(number) if dtype.is_unsigned() => {
                Tensor::scalar(u64::try_from(*number).map_err(|_| refused())?)
            }
            Self::Integer(number) if dtype.is_integer() => {
                Tensor::scalar(i64::try_from(*number).map_err(|_| refused())?)
            }
            #[expect(clippy::cast_precision_loss, reason = "the nearest number is meant")]
            Self::Integer(number) if dtype.is_float() => Tensor::scalar(*number as f64),
            Self::Real(number) if dtype.is_float() => Tensor::scalar(*number),
            _ => return Err(refused()),
        };
        let cast = Operator::Cast { to: dtype }.evaluate(&[Some(&wide)]);
        let cast = cast.ok().and_then(|made| made.into_iter().next()).ok_or_else(refused)?;
        // What does not fit is another number after it.
        let is_kept = match wide.to_integers() {
            Some(before) if dtype.is_integer() => cast.to_integers() == Some(before),
            Some(_) => true,
            None => wide.to_doubles()[0].is_finite() == cast.to_doubles()[0].is_finite(),
        };
        if !is_kept {
            return Err(refused());
        }
        let mut bits = [0; 8];
        bits[..cast.bytes().len()].copy_from_slice(cast.bytes());
        Ok(u64::from_ne_bytes(bits))
    }
}

/// What a caller gives as an input.
enum Given<'py> {
    Array(Bound<'py, OperatorArray>),
    Number(Number),
}

fn given<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Given<'py>>> {
    if value.is_none() {
        return Ok(None);
    }
    if let Ok(array) = value.cast::<OperatorArray>() {
        return Ok(Some(Given::Array(array.clone())));
    }
    let number = if let Ok(flag) = value.cast::<PyBool>() {
        Number::Flag(flag.is_true())
    } else if value.hasattr("__index__")? {
        Number::Integer(integer(value)?)
    } else if let Ok(number) = value.extract::<f64>() {
        Number::Real(number)
    } else {
        let kind = value.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "an input is an array or a number, and not {kind}"
        )));
    };
    Ok(Some(Given::Number(number)))
}

/// Runs an operator of the table, by its number in it, and returns at once: so many of its results, or those that every use has. `stream` is that of an operator without
/// arrays.
#[pyfunction]
#[pyo3(signature = (row, inputs, attributes, results = None, stream = None))]
pub(crate) fn run_operator(
    py: Python<'_>,
    row: usize,
    inputs: Vec<Bound<'_, PyAny>>,
    attributes: Vec<(String, Bound<'_, PyAny>)>,
    results: Option<usize>,
    stream: Option<&ProgramStream>,
) -> PyResult<Vec<OperatorArray>> {
    let row = OperatorSchema::all()
        .get(row)
        .ok_or_else(|| PyValueError::new_err("there is no such row of the table of operators"))?;
    /// Lists in lists of an attribute, at most.
    const DEPTH: usize = 4;
    let attributes: Vec<_> = attributes
        .into_iter()
        .map(|(name, value)| {
            let value = attribute(&value, DEPTH).map_err(|error| {
                let kind = error.get_type(py);
                let text = error.value(py).to_string();
                let rule = format!("operator {}, attribute {name}: {text}", row.name);
                PyErr::from_type(kind, rule)
            })?;
            Ok((name, value))
        })
        .collect::<PyResult<_>>()?;
    let operator = row.operator(&attributes).map_err(|error| invalid(error.to_string()))?;
    let given: Vec<Option<Given<'_>>> = inputs.iter().map(given).collect::<PyResult<_>>()?;
    let arrays = given.iter().flatten().filter_map(|input| match input {
        Given::Array(array) => Some(array.get()),
        Given::Number(_) => None,
    });
    let arrays: Vec<&StreamArray> = arrays.map(|array| array.0.get()).collect::<PyResult<_>>()?;
    let stream = match (arrays.first(), stream) {
        (Some(first), _) => Arc::clone(&first.stream),
        (None, Some(stream)) => stream.operators()?,
        (None, None) => {
            return Err(invalid(format!(
                "operator {}: none of the inputs is an array; make one with ops.array, or say stream=",
                row.name
            )));
        }
    };
    let types = || arrays.iter().map(|array| array.array.ty().dtype);
    // A number is of the type of the arrays beside it; a condition is none of them.
    let beside = types().find(|dtype| *dtype != DType::Bool).or_else(|| types().next());
    let mut native = Vec::with_capacity(given.len());
    for (at, input) in given.iter().enumerate() {
        let name = row.inputs.get(at).or(row.inputs.last()).copied().unwrap_or("?");
        native.push(match input {
            None => None,
            Some(Given::Array(array)) => {
                let array = array.get().0.get()?;
                if !Arc::ptr_eq(&array.stream, &stream) {
                    return Err(invalid(format!(
                        "operator {}, input {at} ({name}): the array is of another stream than the first one; use ops.array(x, stream)",
                        row.name
                    )));
                }
                Some(OperatorInput::Array(array.array.clone()))
            }
            Some(Given::Number(number)) => {
                let dtype = match name {
                    "indices" | "lengths" => DType::I64,
                    _ => beside.unwrap_or(DType::F32),
                };
                let bits = number.bits(dtype).map_err(|rule| {
                    invalid(format!("operator {}, input {at} ({name}): {rule}", row.name))
                })?;
                Some(OperatorInput::Number(dtype, bits))
            }
        });
    }
    while native.last().is_some_and(Option::is_none) {
        native.pop();
    }
    let results = results.unwrap_or_else(|| operator.usual_results());
    let made = unlocked(py, || stream.run(&operator, &native, results))?;
    Ok(made.into_iter().map(|array| OperatorArray::new(&stream, array)).collect())
}
