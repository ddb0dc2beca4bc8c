//! What a model says of its inputs and outputs.

use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;

use super::model::{from_file, from_memory};
use crate::common::argument::{In, Out, Text};
use crate::common::entry::{api, values};
use crate::common::notes::Pointee;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::device::model;
use crate::device::model_description::{self, ModelDescription, ModelSide, Sides};

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

values! {
    fn aclmdlCreateDesc() -> Handle, 0, { Ok(model_description::create()) }

    fn aclmdlGetNumInputs(description: Handle) -> usize, 0, { Ok(sides(description)?.of(ModelSide::Inputs).len()) }

    fn aclmdlGetNumOutputs(description: Handle) -> usize, 0, { Ok(sides(description)?.of(ModelSide::Outputs).len()) }

    fn aclmdlGetInputSizeByIndex(description: Handle, index: usize) -> usize, 0, { bytes(description, ModelSide::Inputs, index) }

    fn aclmdlGetOutputSizeByIndex(description: Handle, index: usize) -> usize, 0, { bytes(description, ModelSide::Outputs, index) }

    fn aclmdlGetInputNameByIndex(description: Handle, index: usize) -> *const c_char, ptr::null(), {
        name(description, ModelSide::Inputs, index)
    }

    fn aclmdlGetOutputNameByIndex(description: Handle, index: usize) -> *const c_char, ptr::null(), {
        name(description, ModelSide::Outputs, index)
    }

    fn aclmdlGetInputFormat(description: Handle, index: usize) -> i32, -1, { format(description, ModelSide::Inputs, index) }

    fn aclmdlGetOutputFormat(description: Handle, index: usize) -> i32, -1, { format(description, ModelSide::Outputs, index) }

    fn aclmdlGetInputDataType(description: Handle, index: usize) -> i32, -1, { data_type(description, ModelSide::Inputs, index) }

    fn aclmdlGetOutputDataType(description: Handle, index: usize) -> i32, -1, { data_type(description, ModelSide::Outputs, index) }
}

api! {
    fn aclmdlDestroyDesc(description: Handle) {
        model_description::destroy(named(description)?)
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
        put_dims(description, ModelSide::Inputs, index, dims)
    }

    fn aclmdlGetInputDimsV2(description: Handle, index: usize, dims: Out<Dims>) {
        put_dims(description, ModelSide::Inputs, index, dims)
    }

    fn aclmdlGetOutputDims(description: Handle, index: usize, dims: Out<Dims>) {
        put_dims(description, ModelSide::Outputs, index, dims)
    }

    fn aclmdlGetCurOutputDims(description: Handle, index: usize, dims: Out<Dims>) {
        put_dims(description, ModelSide::Outputs, index, dims)
    }

    fn aclmdlGetInputIndexByName(description: Handle, name: Text, index: Out<usize>) {
        put_index(description, ModelSide::Inputs, &name, index)
    }

    fn aclmdlGetOutputIndexByName(description: Handle, name: Text, index: Out<usize>) {
        put_index(description, ModelSide::Outputs, &name, index)
    }
}

fn named(description: Handle) -> Answer<Handle> {
    require(description != 0, || {
        Refusal::argument("modelDesc is null; call aclmdlCreateDesc first")
    })?;
    Ok(description)
}

fn checked(description: Handle) -> Answer<Arc<ModelDescription>> {
    model_description::get(named(description)?)
}

fn sides(description: Handle) -> Answer<Arc<Sides>> {
    model_description::sides(named(description)?)
}

fn bytes(description: Handle, side: ModelSide, index: usize) -> Answer<usize> {
    Ok(sides(description)?.tensor(side, index)?.bytes())
}

fn name(description: Handle, side: ModelSide, index: usize) -> Answer<*const c_char> {
    // The description keeps the text.
    Ok(sides(description)?.tensor(side, index)?.name.as_ptr())
}

fn format(description: Handle, side: ModelSide, index: usize) -> Answer<i32> {
    Ok(sides(description)?.tensor(side, index)?.format())
}

fn data_type(description: Handle, side: ModelSide, index: usize) -> Answer<i32> {
    Ok(sides(description)?.tensor(side, index)?.data_type())
}

fn put_dims(description: Handle, side: ModelSide, index: usize, output: Out<Dims>) -> Answer {
    let output = output.required("dims")?;
    let sides = sides(description)?;
    let tensor = sides.tensor(side, index)?;
    let mut dims = Dims { name: [0; NAME_BYTES], count: tensor.shape.len(), dims: [0; MAX_DIMS] };
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
    for (to, extent) in dims.dims.iter_mut().zip(&tensor.shape) {
        *to = i64::try_from(*extent).unwrap_or(i64::MAX);
    }
    output.set(dims);
    Ok(())
}

fn put_index(description: Handle, side: ModelSide, name: &Text, index: Out<usize>) -> Answer {
    let output = index.required("index")?;
    let name = name.read("name")?;
    let sides = sides(description)?;
    let tensors = sides.of(side);
    let found = tensors.iter().position(|tensor| tensor.described.name == name);
    output.set(found.ok_or_else(|| {
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
