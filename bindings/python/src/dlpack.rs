//! Arrays of others by DLPack, and arrays for them: capsules with copies in the memory of the host.
//!
//! The structs are those of the protocol's version 1.0. A capsule that nobody has taken frees its array; who takes it renames it, and calls the deleter.

use std::ffi::{CStr, c_void};
use std::ptr;

use pto_operators::{DType, Tensor, TensorType, elements};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

/// `DLDevice`: memory of the host.
pub(crate) const HOST: (i32, i32) = (1, 0);
const MAJOR: u32 = 1;
const NAME: &CStr = c"dltensor";
const USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";
/// `DLPACK_FLAG_BITMASK_IS_COPIED`.
const IS_COPIED: u64 = 2;
/// Dimensions of an array, at most.
const MOST_DIMENSIONS: i32 = 64;

/// `DLTensor`.
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: [i32; 2],
    dimensions: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    first_byte: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct ManagedVersioned {
    version: [u32; 2],
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
    flags: u64,
    tensor: DlTensor,
}

/// What every version of `DLManagedTensorVersioned` begins with.
#[repr(C)]
struct VersionedHead {
    version: [u32; 2],
    _context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
}

/// What an exported array consists of: words, so that elements are aligned, and its extents with its strides.
struct Exported {
    words: Vec<u64>,
    extents: Vec<i64>,
}

/// `DLDataTypeCode` and bits.
fn code_of(dtype: DType) -> (u8, u8) {
    let code = match dtype {
        DType::Bool => 6,
        DType::BF16 => 4,
        _ if dtype.is_float() => 2,
        _ if dtype.is_unsigned() => 1,
        _ => 0,
    };
    // At most 64.
    (code, u8::try_from(8 * dtype.bytes()).unwrap_or(u8::MAX))
}

impl Exported {
    fn new(tensor: &Tensor) -> Box<Self> {
        let bytes = tensor.bytes();
        let mut words = vec![0_u64; bytes.len().div_ceil(8).max(1)];
        for (word, part) in words.iter_mut().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..part.len()].copy_from_slice(part);
            *word = u64::from_ne_bytes(whole);
        }
        let shape = tensor.shape();
        let extent = |extent: usize| i64::try_from(extent).unwrap_or(i64::MAX);
        let stride = |at: usize| extent(elements(&shape[at + 1..]));
        let extents =
            shape.iter().map(|one| extent(*one)).chain((0..shape.len()).map(stride)).collect();
        Box::new(Self { words, extents })
    }

    fn tensor(&mut self, dtype: DType) -> DlTensor {
        let (code, bits) = code_of(dtype);
        let rank = self.extents.len() / 2;
        let shape = self.extents.as_mut_ptr();
        DlTensor {
            data: self.words.as_mut_ptr().cast(),
            device: [HOST.0, HOST.1],
            dimensions: i32::try_from(rank).unwrap_or(i32::MAX),
            code,
            bits,
            lanes: 1,
            shape,
            strides: shape.wrapping_add(rank),
            first_byte: 0,
        }
    }
}

unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: `export` made both from boxes, and the protocol calls a deleter once.
    let managed = unsafe { Box::from_raw(managed) };
    // SAFETY: as above.
    drop(unsafe { Box::from_raw(managed.context.cast::<Exported>()) });
}

unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: as in `delete`.
    let managed = unsafe { Box::from_raw(managed) };
    // SAFETY: as above.
    drop(unsafe { Box::from_raw(managed.context.cast::<Exported>()) });
}

/// The pointer of a capsule that nobody has taken; null: it was taken.
fn untaken(capsule: *mut ffi::PyObject, name: &CStr) -> *mut c_void {
    // SAFETY: the caller has a live object; what is no capsule of this name is not valid.
    if unsafe { ffi::PyCapsule_IsValid(capsule, name.as_ptr()) } != 1 {
        return ptr::null_mut();
    }
    // SAFETY: it is a capsule of this name.
    unsafe { ffi::PyCapsule_GetPointer(capsule, name.as_ptr()) }
}

unsafe extern "C" fn end(capsule: *mut ffi::PyObject) {
    let managed = untaken(capsule, NAME);
    if !managed.is_null() {
        // SAFETY: `export` made such a capsule, and nobody has taken it.
        unsafe { delete(managed.cast()) };
    }
}

unsafe extern "C" fn end_versioned(capsule: *mut ffi::PyObject) {
    let managed = untaken(capsule, VERSIONED);
    if !managed.is_null() {
        // SAFETY: as in `end`.
        unsafe { delete_versioned(managed.cast()) };
    }
}

/// A capsule with a copy of the tensor; with a version where the caller knows versions.
pub(crate) fn export<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    knows_versions: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let mut exported = Exported::new(tensor);
    let described = exported.tensor(tensor.dtype());
    let context = Box::into_raw(exported).cast::<c_void>();
    let made = if knows_versions {
        let managed = Box::new(ManagedVersioned {
            version: [MAJOR, 0],
            context,
            deleter: Some(delete_versioned),
            flags: IS_COPIED,
            tensor: described,
        });
        let pointer = Box::into_raw(managed).cast();
        // SAFETY: the pointer is not null, and the name stays.
        unsafe { ffi::PyCapsule_New(pointer, VERSIONED.as_ptr(), Some(end_versioned)) }
    } else {
        let managed = Box::new(Managed { tensor: described, context, deleter: Some(delete) });
        let pointer = Box::into_raw(managed).cast();
        // SAFETY: as above.
        unsafe { ffi::PyCapsule_New(pointer, NAME.as_ptr(), Some(end)) }
    };
    // SAFETY: the call gives a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, made) }
}

fn refused(why: impl Into<String>) -> PyErr {
    PyBufferError::new_err(why.into())
}

/// A copy of the array that a capsule has; the capsule is taken.
pub(crate) fn import(capsule: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let take = |name: &CStr, used: &CStr| {
        let pointer = untaken(capsule.as_ptr(), name);
        if !pointer.is_null() {
            // SAFETY: a live capsule; the new name stays.
            unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) };
        }
        pointer
    };
    let managed = take(VERSIONED, USED_VERSIONED).cast::<ManagedVersioned>();
    if !managed.is_null() {
        // SAFETY: the producer promises the struct of this name, at least as far as its version and its deleter.
        let head = unsafe { &*managed.cast::<VersionedHead>() };
        let (version, deleter) = (head.version, head.deleter);
        let copied = if version[0] == MAJOR {
            // SAFETY: of this version the struct is ours, and lives until its deleter is called.
            let whole = unsafe { &*managed };
            // SAFETY: the producer promises what the struct describes.
            unsafe { copied(&whole.tensor) }
        } else {
            let [major, minor] = version;
            Err(refused(format!("the array is of DLPack {major}.{minor}; 1 is known")))
        };
        if let Some(deleter) = deleter {
            // SAFETY: the capsule was taken, so that nobody else calls it.
            unsafe { deleter(managed) };
        }
        return copied;
    }
    let managed = take(NAME, USED).cast::<Managed>();
    if managed.is_null() {
        return Err(refused("this is no capsule of DLPack, or one that was taken"));
    }
    // SAFETY: the producer promises the struct of this name.
    let whole = unsafe { &*managed };
    // SAFETY: the producer promises what the struct describes.
    let copied = unsafe { copied(&whole.tensor) };
    if let Some(deleter) = whole.deleter {
        // SAFETY: the capsule was taken, so that nobody else calls it.
        unsafe { deleter(managed) };
    }
    copied
}

/// A dense copy.
///
/// # Safety
/// The struct describes live memory, as the protocol says.
unsafe fn copied(from: &DlTensor) -> PyResult<Tensor> {
    if from.device[0] != HOST.0 {
        return Err(refused(format!(
            "the array is on a device of type {}; copy it to the host",
            from.device[0]
        )));
    }
    let known = DType::ALL.into_iter().find(|dtype| code_of(*dtype) == (from.code, from.bits));
    let dtype = known.filter(|_| from.lanes == 1).ok_or_else(|| {
        refused(format!(
            "no operator takes elements of type code {}, {} bits, {} lanes",
            from.code, from.bits, from.lanes
        ))
    })?;
    if !(0..=MOST_DIMENSIONS).contains(&from.dimensions) {
        return Err(refused(format!("the array has {} dimensions", from.dimensions)));
    }
    let rank = usize::try_from(from.dimensions).unwrap_or(0);
    let at = |list: *mut i64, dimension: usize| {
        // SAFETY: the protocol says that the list has a number for each dimension.
        unsafe { list.wrapping_add(dimension).read_unaligned() }
    };
    let extents: Option<Vec<usize>> =
        (0..rank).map(|dimension| usize::try_from(at(from.shape, dimension)).ok()).collect();
    let shape = extents.ok_or_else(|| refused("an extent is negative"))?;
    let ty = TensorType::new(dtype, &shape);
    let size = dtype.bytes();
    let mut bytes: Vec<u8> = Vec::new();
    let shown = ty.to_string();
    let too_large =
        || refused(format!("an array of type {shown} has more bytes than there is memory"));
    bytes.try_reserve_exact(ty.bytes()).map_err(|_| too_large())?;
    let strides: Vec<isize> = (0..rank)
        .map(|dimension| match from.strides.is_null() {
            true => isize::try_from(elements(&shape[dimension + 1..])).unwrap_or(0),
            false => isize::try_from(at(from.strides, dimension)).unwrap_or(0),
        })
        .collect();
    let first = from.data.cast::<u8>().wrapping_add(usize::try_from(from.first_byte).unwrap_or(0));
    let mut index = vec![0_usize; rank];
    for _ in 0..ty.elements() {
        let steps = index.iter().zip(&strides).map(|(at, stride)| at.cast_signed() * stride);
        let element = first.wrapping_offset(steps.sum::<isize>() * size.cast_signed());
        let mut room = [0_u8; 8];
        // SAFETY: the caller promises the elements, of `size` bytes, at most 8.
        unsafe { ptr::copy_nonoverlapping(element, room.as_mut_ptr(), size) };
        bytes.extend_from_slice(&room[..size]);
        for (at, extent) in index.iter_mut().zip(&shape).rev() {
            *at += 1;
            if *at < *extent {
                break;
            }
            *at = 0;
        }
    }
    Tensor::from_bytes(ty, bytes).map_err(|_| too_large())
}
