//! What a model says of its inputs and outputs.

use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pto_host::workloads::program::{Format, Program, TensorDescription};
use pto_host::workloads::tile::DType;

use super::model::{from_file, from_memory};
use crate::common::argument::{In, Out, Text};
use crate::common::entry::{api, values};
use crate::common::notes::Pointee;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::{Handle, Kind, Table};
use crate::device::model;

static DESCRIPTIONS: Table<Description> = Table::new(Kind::ModelDescription);

/// Dimensions of `aclmdlIODims`.
const MAX_DIMS: usize = 128;
/// Bytes of the name in `aclmdlIODims`, with the zero.
const NAME_BYTES: usize = 128;

/// `aclmdlIODims`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Dims {
    name: [u8; NAME_BYTES],
    count: usize,
    dims: [i64; MAX_DIMS],
}

impl Pointee for Dims {}

const _: () = assert!(size_of::<Dims>() == 1160);

/// A description; empty until a model is described. Its texts live as long as it does.
#[derive(Default)]
struct Description(Mutex<Vec<Arc<Sides>>>);

/// Inputs and outputs of one model. A description keeps those of earlier models, because programs may hold their names.
struct Sides {
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
}

/// One input or output.
struct Tensor {
    described: TensorDescription,
    name: CString,
}

/// Which side of a model.
#[derive(Clone, Copy)]
enum Side {
    Inputs,
    Outputs,
}

values! {
    fn aclmdlCreateDesc() -> Handle, 0, { Ok(DESCRIPTIONS.open(Description::default())) }

    fn aclmdlGetNumInputs(description: Handle) -> usize, 0, { Ok(sides(description)?.inputs.len()) }

    fn aclmdlGetNumOutputs(description: Handle) -> usize, 0, { Ok(sides(description)?.outputs.len()) }

    fn aclmdlGetInputSizeByIndex(description: Handle, index: usize) -> usize, 0, { bytes(description, Side::Inputs, index) }

    fn aclmdlGetOutputSizeByIndex(description: Handle, index: usize) -> usize, 0, { bytes(description, Side::Outputs, index) }

    fn aclmdlGetInputNameByIndex(description: Handle, index: usize) -> *const c_char, ptr::null(), {
        name(description, Side::Inputs, index)
    }

    fn aclmdlGetOutputNameByIndex(description: Handle, index: usize) -> *const c_char, ptr::null(), {
        name(description, Side::Outputs, index)
    }

    fn aclmdlGetInputFormat(description: Handle, index: usize) -> i32, -1, { format(description, Side::Inputs, index) }

    fn aclmdlGetOutputFormat(description: Handle, index: usize) -> i32, -1, { format(description, Side::Outputs, index) }

    fn aclmdlGetInputDataType(description: Handle, index: usize) -> i32, -1, { data_type(description, Side::Inputs, index) }

    fn aclmdlGetOutputDataType(description: Handle, index: usize) -> i32, -1, { data_type(description, Side::Outputs, index) }
}

api! {
    fn aclmdlDestroyDesc(description: Handle) {
        checked(description)?;
        DESCRIPTIONS.take(description).map(drop)
    }

    fn aclmdlGetDesc(description: Handle, model: u32) {
        let description = checked(description)?;
        description.describe(model::get(model)?.program())
    }

    fn aclmdlGetDescFromFile(description: Handle, path: Text) {
        checked(description)?.describe(&from_file(&path)?)
    }

    fn aclmdlGetDescFromMem(description: Handle, bytes: In<u8>, count: usize) {
        checked(description)?.describe(&from_memory(&bytes, count)?)
    }

    fn aclmdlGetInputDims(description: Handle, index: usize, dims: Out<Dims>) {
        put_dims(description, Side::Inputs, index, dims)
    }

    fn aclmdlGetInputDimsV2(description: Handle, index: usize, dims: Out<Dims>) {
        put_dims(description, Side::Inputs, index, dims)
    }

    fn aclmdlGetOutputDims(description: Handle, index: usize, dims: Out<Dims>) {
        put_dims(description, Side::Outputs, index, dims)
    }

    fn aclmdlGetCurOutputDims(description: Handle, index: usize, dims: Out<Dims>) {
        put_dims(description, Side::Outputs, index, dims)
    }

    fn aclmdlGetInputIndexByName(description: Handle, name: Text, index: Out<usize>) {
        put_index(description, Side::Inputs, &name, index)
    }

    fn aclmdlGetOutputIndexByName(description: Handle, name: Text, index: Out<usize>) {
        put_index(description, Side::Outputs, &name, index)
    }
}

impl Description {
    fn list(&self) -> MutexGuard<'_, Vec<Arc<Sides>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn describe(&self, program: &Program) -> Answer {
        let side = |is_own: fn(_) -> bool| {
            let own = program.tensors().iter().filter(move |tensor| is_own(tensor.role));
            own.map(Tensor::of).collect::<Answer<Vec<_>>>()
        };
        let sides = Sides { inputs: side(model::is_input)?, outputs: side(model::is_output)? };
        self.list().push(Arc::new(sides));
        Ok(())
    }
}

impl Tensor {
    fn of(described: &TensorDescription) -> Answer<Self> {
        let name = CString::new(described.name.as_str()).map_err(|_| {
            Refusal::value(format!("the name of the tensor {:?} holds a zero", described.name))
        })?;
        Ok(Self { described: described.clone(), name })
    }
}

impl Sides {
    fn of(&self, side: Side) -> &[Tensor] {
        match side {
            Side::Inputs => &self.inputs,
            Side::Outputs => &self.outputs,
        }
    }

    fn tensor(&self, side: Side, index: usize) -> Answer<&Tensor> {
        let tensors = self.of(side);
        tensors.get(index).ok_or_else(|| {
            let name = side.name();
            Refusal::argument(format!(
                "there is no {name} {index}; the model has {}",
                tensors.len()
            ))
        })
    }
}

impl Side {
    const fn name(self) -> &'static str {
        match self {
            Self::Inputs => "input",
            Self::Outputs => "output",
        }
    }
}

fn checked(description: Handle) -> Answer<Arc<Description>> {
    require(description != 0, || {
        Refusal::argument("modelDesc is null; call aclmdlCreateDesc first")
    })?;
    DESCRIPTIONS.get(description)
}

/// The sides of the model that was described last.
fn sides(description: Handle) -> Answer<Arc<Sides>> {
    let last = checked(description)?.list().last().cloned();
    last.ok_or_else(|| Refusal::argument("modelDesc describes no model; call aclmdlGetDesc first"))
}

fn bytes(description: Handle, side: Side, index: usize) -> Answer<usize> {
    let bytes = sides(description)?.tensor(side, index)?.described.bytes();
    Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
}

fn name(description: Handle, side: Side, index: usize) -> Answer<*const c_char> {
    // The description keeps the text.
    Ok(sides(description)?.tensor(side, index)?.name.as_ptr())
}

/// `aclFormat`: the tiles of the device are FRACTAL_NZ, everything else is ND.
fn format(description: Handle, side: Side, index: usize) -> Answer<i32> {
    let sides = sides(description)?;
    let tensor = &sides.tensor(side, index)?.described;
    let is_nz = tensor.layout.format == Format::nz(tensor.dtype.bytes());
    Ok(if is_nz { 29 } else { 2 })
}

/// `aclDataType`.
fn data_type(description: Handle, side: Side, index: usize) -> Answer<i32> {
    Ok(match sides(description)?.tensor(side, index)?.described.dtype {
        DType::F32 => 0,
        DType::F16 => 1,
        DType::I8 => 2,
        DType::I32 => 3,
        DType::U8 => 4,
        DType::I16 => 6,
        DType::U16 => 7,
        DType::U32 => 8,
        DType::I64 => 9,
        DType::U64 => 10,
        DType::F64 => 11,
        DType::BF16 => 27,
    })
}

fn put_dims(description: Handle, side: Side, index: usize, place: Out<Dims>) -> Answer {
    let place = place.place("dims")?;
    let sides = sides(description)?;
    let tensor = sides.tensor(side, index)?;
    let mut dims =
        Dims { name: [0; NAME_BYTES], count: tensor.described.shape.len(), dims: [0; MAX_DIMS] };
    let name = tensor.name.to_bytes();
    require(name.len() < NAME_BYTES, || {
        Refusal::value(format!(
            "the name of {} {index} has {} bytes; aclmdlIODims takes {}",
            side.name(),
            name.len(),
            NAME_BYTES - 1
        ))
    })?;
    dims.name[..name.len()].copy_from_slice(name);
    for (to, extent) in dims.dims.iter_mut().zip(&tensor.described.shape) {
        *to = i64::try_from(*extent).unwrap_or(i64::MAX);
    }
    place.set(dims);
    Ok(())
}

fn put_index(description: Handle, side: Side, name: &Text, index: Out<usize>) -> Answer {
    let place = index.place("index")?;
    let name = name.read("name")?;
    let sides = sides(description)?;
    let tensors = sides.of(side);
    let found = tensors.iter().position(|tensor| tensor.described.name == name);
    place.set(found.ok_or_else(|| {
        let known: Vec<&str> =
            tensors.iter().map(|tensor| tensor.described.name.as_str()).collect();
        Refusal::argument(format!(
            "the model has no {} {name}; it has {}",
            side.name(),
            known.join(", ")
        ))
    })?);
    Ok(())
}
