//! Tensors of an ONNX file: every way to write their elements, also in files of their own.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use pto_operators::{DType, Tensor, TensorType};

use crate::proto::TensorProto;

/// Element types of ONNX by their numbers.
const TYPES: &[(&str, Option<DType>)] = &[
    ("undefined", None),
    ("float", Some(DType::F32)),
    ("uint8", Some(DType::U8)),
    ("int8", Some(DType::I8)),
    ("uint16", Some(DType::U16)),
    ("int16", Some(DType::I16)),
    ("int32", Some(DType::I32)),
    ("int64", Some(DType::I64)),
    ("string", None),
    ("bool", Some(DType::Bool)),
    ("float16", Some(DType::F16)),
    ("double", Some(DType::F64)),
    ("uint32", Some(DType::U32)),
    ("uint64", Some(DType::U64)),
    ("complex64", None),
    ("complex128", None),
    ("bfloat16", Some(DType::BF16)),
    ("float8e4m3fn", None),
    ("float8e4m3fnuz", None),
    ("float8e5m2", None),
    ("float8e5m2fnuz", None),
    ("uint4", None),
    ("int4", None),
    ("float4e2m1", None),
    ("float8e8m0", None),
    ("uint2", None),
    ("int2", None),
    ("float6e2m3", None),
    ("float6e3m2", None),
];

/// The element type with this number in ONNX.
///
/// # Errors
/// There is no such type, or no operator here takes it; the sentence names it.
pub(crate) fn dtype_of(number: i64) -> Result<DType, String> {
    match usize::try_from(number).ok().and_then(|at| TYPES.get(at)) {
        Some((_, Some(dtype))) => Ok(*dtype),
        Some((name, None)) => Err(format!("elements of type {name} are not supported")),
        None => Err(format!("there is no element type {number} in ONNX")),
    }
}

/// The number of an element type in ONNX.
#[must_use]
pub fn number_of(dtype: DType) -> i32 {
    let found = TYPES.iter().position(|(_, known)| *known == Some(dtype));
    found.and_then(|at| i32::try_from(at).ok()).unwrap_or(0)
}

/// The largest tensor that a file is read for.
const MAX_BYTES: usize = 1 << 40;

/// The tensor of a file; `folder` has the files with its elements, where these stand in files of their own.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn tensor_of(proto: TensorProto, folder: Option<&Path>) -> Result<Tensor, String> {
    let dtype = dtype_of(i64::from(proto.data_type))?;
    if proto.segment.is_some() {
        return Err("it is a segment of a tensor, and segments are not supported".to_owned());
    }
    let extent = |dim: &i64| {
        usize::try_from(*dim)
            .map_err(|_| format!("it has an extent of {dim}; extents are 0 or more"))
    };
    let shape = proto.dims.iter().map(extent).collect::<Result<Vec<_>, _>>()?;
    let ty = TensorType::new(dtype, &shape);
    if ty.bytes() > MAX_BYTES || crate::tensor::has_large_extents(&shape) {
        return Err(format!("{ty} has more bytes than the {MAX_BYTES} that a tensor may have"));
    }
    let bytes = if proto.data_location == 1 {
        external(&proto, ty.bytes(), folder)?
    } else {
        elements(proto, dtype)?
    };
    let wanted = ty.bytes();
    let shown = ty.to_string();
    let tensor = Tensor::from_bytes(ty, bytes);
    let tensor = tensor
        .map_err(|found| format!("{shown} takes {wanted} bytes, and the file has {found} of it"))?;
    let is_bool = tensor.dtype() == DType::Bool;
    if is_bool && tensor.bytes().iter().any(|byte| *byte > 1) {
        return Err("it has elements of type bool that are neither 0 nor 1".to_owned());
    }
    Ok(tensor)
}

/// The elements in native byte order.
fn elements(proto: TensorProto, dtype: DType) -> Result<Vec<u8>, String> {
    let typed = [
        proto.float_data.len(),
        proto.int32_data.len(),
        proto.int64_data.len(),
        proto.double_data.len(),
        proto.uint64_data.len(),
        proto.string_data.len(),
    ];
    let fields = typed.iter().filter(|count| **count > 0).count();
    if let Some(raw) = proto.raw_data {
        if fields > 0 {
            return Err("it has raw_data and elements in another field".to_owned());
        }
        return Ok(native(raw, dtype.bytes()));
    }
    if fields > 1 {
        return Err("it has elements in more than one field".to_owned());
    }
    let narrow = |bytes: usize| -> Vec<u8> {
        proto.int32_data.iter().flat_map(|value| low_bytes(value.to_ne_bytes(), bytes)).collect()
    };
    let (bytes, field): (Vec<u8>, usize) = match dtype {
        DType::F32 => (proto.float_data.iter().flat_map(|value| value.to_ne_bytes()).collect(), 0),
        DType::F64 => (proto.double_data.iter().flat_map(|value| value.to_ne_bytes()).collect(), 3),
        DType::I64 => (proto.int64_data.iter().flat_map(|value| value.to_ne_bytes()).collect(), 2),
        DType::U64 => (proto.uint64_data.iter().flat_map(|value| value.to_ne_bytes()).collect(), 4),
        DType::U32 => {
            let whole = proto.uint64_data.iter().map(|value| {
                u32::try_from(*value).map_err(|_| format!("{value} does not fit uint32"))
            });
            let whole = whole.collect::<Result<Vec<_>, _>>()?;
            (whole.iter().flat_map(|value| value.to_ne_bytes()).collect(), 4)
        }
        DType::I32 => (narrow(4), 1),
        DType::I16 | DType::U16 | DType::F16 | DType::BF16 => (narrow(2), 1),
        DType::I8 | DType::U8 | DType::Bool => (narrow(1), 1),
    };
    if fields > 0 && typed[field] == 0 {
        return Err(format!("its elements stand in a field that is not for {dtype}"));
    }
    Ok(bytes)
}

/// The lowest bytes of a number in native byte order.
fn low_bytes(bytes: [u8; 4], count: usize) -> impl Iterator<Item = u8> {
    let first = if cfg!(target_endian = "big") { 4 - count } else { 0 };
    bytes.into_iter().skip(first).take(count)
}

/// Elements in native byte order; a file has them in little-endian order.
fn native(mut bytes: Vec<u8>, size: usize) -> Vec<u8> {
    if cfg!(target_endian = "big") {
        bytes.chunks_mut(size).for_each(<[u8]>::reverse);
    }
    bytes
}

/// Elements that stand in a file of their own.
fn external(proto: &TensorProto, wanted: usize, folder: Option<&Path>) -> Result<Vec<u8>, String> {
    let entry = |key: &str| {
        proto.external_data.iter().find(|entry| entry.key == key).map(|entry| entry.value.as_str())
    };
    let location =
        entry("location").ok_or("its elements stand in another file, which is not named")?;
    let number = |key: &str| {
        let parse = |text: &str| {
            text.parse::<u64>().map_err(|_| format!("'{text}' is not a number for {key}"))
        };
        entry(key).map(parse).transpose()
    };
    let offset = number("offset")?.unwrap_or(0);
    if let Some(length) = number("length")?
        && length != wanted as u64
    {
        return Err(format!(
            "its elements take {wanted} bytes, and '{location}' is said to have {length} of them"
        ));
    }
    let folder = folder.ok_or_else(|| {
        format!("its elements stand in the file '{location}', and a model from memory has no folder to look in")
    })?;
    let path = inside(folder, location)?;
    let shown = path.display();
    let failed = |error: std::io::Error| {
        format!("its elements stand in '{shown}', which cannot be read: {error}")
    };
    let mut file = File::open(&path).map_err(failed)?;
    let there = file.metadata().map_err(failed)?.len();
    if offset.checked_add(wanted as u64).is_none_or(|end| end > there) {
        return Err(format!(
            "its elements are bytes {offset} to {} of '{shown}', which has {there}",
            offset.saturating_add(wanted as u64)
        ));
    }
    file.seek(SeekFrom::Start(offset)).map_err(failed)?;
    let mut bytes = vec![0; wanted];
    file.read_exact(&mut bytes).map_err(failed)?;
    let dtype = dtype_of(i64::from(proto.data_type))?;
    Ok(native(bytes, dtype.bytes()))
}

/// A file in the folder of the model; a model names no other one.
fn inside(folder: &Path, location: &str) -> Result<PathBuf, String> {
    let relative = Path::new(location);
    let is_plain =
        relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let refused =
        || format!("its elements stand in '{location}', which is not in the folder of the model");
    if !is_plain {
        return Err(refused());
    }
    let path = folder.join(relative);
    let (Ok(real), Ok(home)) = (path.canonicalize(), folder.canonicalize()) else {
        return Ok(path);
    };
    if real.starts_with(home) { Ok(path) } else { Err(refused()) }
}

/// The product of all extents that are not 0, at most: no part of it leaves 64 bits.
const MAX_EXTENTS: usize = 1 << 45;

/// Whether extents are too large to be multiplied, even if one of them is 0.
pub(crate) fn has_large_extents(shape: &[usize]) -> bool {
    let product = shape
        .iter()
        .filter(|extent| **extent > 0)
        .try_fold(1_usize, |product, extent| product.checked_mul(*extent));
    product.is_none_or(|product| product > MAX_EXTENTS)
}
