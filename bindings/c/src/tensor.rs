//! Tensors on the device, counted by their handles.

use std::ffi::{c_char, c_void};

use pto_host::workloads::tile::DType;
use pto_native::stitch::{SharedTensor, element_type};

use crate::argument::{bytes_to_fill, invalid, text, values};
use crate::error::{answer, answer_to};
use crate::handle;
use crate::program_stream::OpaqueProgramStream;

/// A tensor on the device. Each handle is let go once, by `pto_tensor_release`; with its last handle the tensor's memory goes to the next tensor
/// of its stream.
#[derive(Debug)]
pub struct OpaqueTensor;

/// A layout as a text, such as "device, row-major", with a zero at its end.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The text, with a zero at its end.
    pub text: [c_char; 192],
}

/// What a tensor is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TensorDescription {
    /// Of a program's tensor its name; otherwise empty.
    pub name: [c_char; 136],
    /// Of a program's tensor "input", "output", "updated", "temporary" or "constant"; otherwise empty.
    pub role: [c_char; 16],
    /// The element type: "f32", "bf16", "i32", ..
    pub element: [c_char; 8],
    /// Dimensions.
    pub rank: u64,
    /// The extents; of dimensions that there are not, zero.
    pub shape: [u64; 5],
    /// Bytes that it takes on the device, those that fill up tiles among them.
    pub bytes: u64,
    /// The layout.
    pub layout: Layout,
}

/// Text for C, cut nowhere: the limits of names and layouts are below the sizes here.
fn chars<const N: usize>(text: &str) -> [c_char; N] {
    let mut chars = [0; N];
    for (to, from) in chars.iter_mut().take(N - 1).zip(text.bytes()) {
        *to = c_char::from_ne_bytes([from]);
    }
    chars
}

pub(crate) fn layout_of(text: &str) -> Layout {
    Layout { text: chars(text) }
}

pub(crate) fn described(
    (name, role): (&str, &str),
    (dtype, shape): (DType, &[u64]),
    layout: &str,
    bytes: u64,
) -> TensorDescription {
    let mut extents = [0; 5];
    extents.iter_mut().zip(shape).for_each(|(to, from)| *to = *from);
    TensorDescription {
        name: chars(name),
        role: chars(role),
        element: chars(dtype.name()),
        rank: shape.len() as u64,
        shape: extents,
        bytes,
        layout: layout_of(layout),
    }
}

/// Copies a tensor of the host to the device, and converts it there if the layout asks for that. `elements` are contiguous, the last
/// dimension the innermost one; the call has copied them when it returns. `layout`: a text, such as that of `pto_loaded_program_layout`.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT, PROGRAM_ARGUMENT (`bytes` is not what the extents take), TENSOR_LAYOUT, OUT_OF_MEMORY.
/// Thread safety: any thread.
///
/// # Safety
/// `element` and `layout` are null or C strings; `shape` is null or readable for `rank` words; `elements` is null or readable for
/// `bytes` bytes; `tensor` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_tensor_to_device(
    stream: *const OpaqueProgramStream,
    element: *const c_char,
    shape: *const u64,
    rank: u32,
    elements: *const c_void,
    bytes: u64,
    layout: *const c_char,
    tensor: *mut *mut OpaqueTensor,
) -> i32 {
    let body = || {
        // SAFETY: the caller vouches for the pointers, here and below.
        let dtype = element_type(unsafe { text(element, "element") }?)?;
        // SAFETY: as above.
        let shape = unsafe { values(shape, rank.into(), "shape") }?;
        // SAFETY: as above.
        let elements = unsafe { values(elements.cast::<u8>(), bytes, "elements") }?;
        // SAFETY: as above.
        let layout = unsafe { text(layout, "layout") }?;
        let stream = handle::get(stream)?;
        let made = SharedTensor::to_device(&stream, (dtype, shape), elements.to_vec(), layout)?;
        Ok(handle::open(made))
    };
    // SAFETY: the caller vouches for the pointer.
    unsafe { answer_to(tensor, "tensor", body) }
}

/// Makes a tensor of zeros on the device.
///
/// Fails as `pto_tensor_to_device`. Thread safety: any thread.
///
/// # Safety
/// As `pto_tensor_to_device`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_tensor_zeros(
    stream: *const OpaqueProgramStream,
    element: *const c_char,
    shape: *const u64,
    rank: u32,
    layout: *const c_char,
    tensor: *mut *mut OpaqueTensor,
) -> i32 {
    let body = || {
        // SAFETY: the caller vouches for the pointers, here and below.
        let dtype = element_type(unsafe { text(element, "element") }?)?;
        // SAFETY: as above.
        let shape = unsafe { values(shape, rank.into(), "shape") }?;
        // SAFETY: as above.
        let layout = unsafe { text(layout, "layout") }?;
        let made = SharedTensor::zeros(&*handle::get(stream)?, (dtype, shape), layout)?;
        Ok(handle::open(made))
    };
    // SAFETY: the caller vouches for the pointer.
    unsafe { answer_to(tensor, "tensor", body) }
}

/// Waits for a tensor, and copies its elements to the host, side by side; tiles and strides are converted on the device first.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, TENSOR_MOVED, OTHER_STREAM, INVALID_ARGUMENT (`bytes` is not what the elements take), or as
/// `pto_program_stream_synchronize`. Thread safety: any thread.
///
/// # Safety
/// `elements` is null or writable for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_tensor_to_host(
    stream: *const OpaqueProgramStream,
    tensor: *const OpaqueTensor,
    elements: *mut c_void,
    bytes: u64,
) -> i32 {
    answer(|| {
        let (stream, tensor) = (handle::get(stream)?, handle::get(tensor)?);
        // SAFETY: the caller vouches for the pointer.
        let to = unsafe { bytes_to_fill(elements, bytes, "elements") }?;
        let wanted = tensor.look(|tensor| {
            tensor.shape().iter().product::<u64>() * tensor.dtype().bytes() as u64
        })?;
        if wanted != bytes {
            return Err(invalid(format!("bytes is {bytes}, and the elements take {wanted}")));
        }
        to.copy_from_slice(tensor.to_host(&stream)?.bytes());
        Ok(())
    })
}

/// The tensor in a layout, through a handle of its own: the same tensor where it has the layout, otherwise a converted copy.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT, TENSOR_MOVED, OTHER_STREAM, TENSOR_LAYOUT, OUT_OF_MEMORY. Thread safety: any thread.
///
/// # Safety
/// `layout` is null or a C string; `converted` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_tensor_to_layout(
    stream: *const OpaqueProgramStream,
    tensor: *const OpaqueTensor,
    layout: *const c_char,
    converted: *mut *mut OpaqueTensor,
) -> i32 {
    let body = || {
        // SAFETY: the caller vouches for the pointers, here and below.
        let layout = unsafe { text(layout, "layout") }?;
        let made = handle::get(tensor)?.to_layout(&*handle::get(stream)?, layout)?;
        Ok(handle::open(made))
    };
    // SAFETY: the caller vouches for the pointer.
    unsafe { answer_to(converted, "converted", body) }
}

/// A new tensor with the elements of another one, converted to another element type.
///
/// Fails as `pto_tensor_to_layout`. Thread safety: any thread.
///
/// # Safety
/// `element` is null or a C string; `converted` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_tensor_to_element(
    stream: *const OpaqueProgramStream,
    tensor: *const OpaqueTensor,
    element: *const c_char,
    converted: *mut *mut OpaqueTensor,
) -> i32 {
    let body = || {
        // SAFETY: the caller vouches for the pointers, here and below.
        let dtype = element_type(unsafe { text(element, "element") }?)?;
        let made = handle::get(tensor)?.to_dtype(&*handle::get(stream)?, dtype)?;
        Ok(handle::open(made))
    };
    // SAFETY: the caller vouches for the pointer.
    unsafe { answer_to(converted, "converted", body) }
}

/// Takes a tensor over from another stream of the session: `stream` waits for what `from` was asked so far. The old handles are of no use any
/// more (TENSOR_MOVED); the new one is in `taken`.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, TENSOR_MOVED, OTHER_STREAM, OTHER_SESSION. Thread safety: any thread.
///
/// # Safety
/// `taken` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_tensor_take_over(
    stream: *const OpaqueProgramStream,
    tensor: *const OpaqueTensor,
    from: *const OpaqueProgramStream,
    taken: *mut *mut OpaqueTensor,
) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe {
        answer_to(taken, "taken", || {
            let (stream, from) = (handle::get(stream)?, handle::get(from)?);
            let made = handle::get(tensor)?.hand_over(&from, &stream)?;
            Ok(handle::open(made))
        })
    }
}

/// Says what a tensor is.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, TENSOR_MOVED. Thread safety: any thread.
///
/// # Safety
/// `description` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_tensor_describe(
    tensor: *const OpaqueTensor,
    description: *mut TensorDescription,
) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe {
        answer_to(description, "description", || {
            handle::get(tensor)?.look(|tensor| {
                let layout = tensor.layout().to_string();
                described(("", ""), (tensor.dtype(), tensor.shape()), &layout, tensor.bytes())
            })
        })
    }
}

/// Where the first byte of a tensor is, for kernels that are launched on it.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, TENSOR_MOVED. Thread safety: any thread.
///
/// # Safety
/// `address` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_tensor_address(tensor: *const OpaqueTensor, address: *mut u64) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe {
        answer_to(address, "address", || handle::get(tensor)?.look(|tensor| tensor.address().0))
    }
}

/// A further handle of the same tensor.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT. Thread safety: any thread.
///
/// # Safety
/// `other` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_tensor_share(
    tensor: *const OpaqueTensor,
    other: *mut *mut OpaqueTensor,
) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe { answer_to(other, "other", || Ok(handle::open(handle::get(tensor)?))) }
}

/// Lets a handle of a tensor go, also that of a tensor which was given to a run.
///
/// Fails with INVALID_HANDLE. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_tensor_release(tensor: *mut OpaqueTensor) -> i32 {
    answer(|| handle::close(tensor))
}
