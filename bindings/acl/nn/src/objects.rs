//! Tensors, scalars, arrays and lists as programs make them. They are handles: one that was destroyed, or is none, is refused and never followed.
//!
//! The C++ accessors (`aclTensor::GetData() const` and its kin) are functions of one pointer with a plain result, which Rust exports under their mangled names; so
//! building needs no C++ compiler.

use std::ffi::{c_char, c_void};
use std::ops::Deref;
use std::sync::Arc;

use pto_acl_interface::handles::{Key, PinnedObject, Slots};

use crate::device;
use crate::element::ElementType;
use crate::refusal::{Checked, INVALID, NULL_POINTER, Rejection};

const MARK: usize = 0x5B << 48;
const KIND_SHIFT: u32 = 40;
/// Dimensions of a tensor, at most.
const MOST_DIMENSIONS: usize = 16;

/// Objects of one kind.
pub(crate) struct ObjectTable<T> {
    kind: usize,
    name: &'static str,
    slots: Slots<T>,
}

impl<T> ObjectTable<T> {
    pub(crate) const fn new(kind: usize, name: &'static str) -> Self {
        Self { kind, name, slots: Slots::new() }
    }

    /// Takes an object in; its handle is returned.
    pub(crate) fn open(&self, object: T) -> usize {
        let key = self.slots.reserve();
        self.slots.insert(key, object);
        MARK | self.kind << KIND_SHIFT | usize::try_from(key.number()).unwrap_or(0)
    }

    fn key(&self, handle: usize) -> Option<Key> {
        let base = MARK | self.kind << KIND_SHIFT;
        (handle >> KIND_SHIFT == base >> KIND_SHIFT).then(|| Key::of((handle - base) as u64))?
    }

    /// Looks at an object.
    pub(crate) fn find(&'static self, handle: usize) -> Option<PinnedObject<'static, T>> {
        self.slots.find(self.key(handle)?)
    }

    /// Looks at an object; `argument` is what messages call it.
    pub(crate) fn get(
        &'static self,
        argument: &str,
        handle: usize,
    ) -> Checked<PinnedObject<'static, T>> {
        if handle == 0 {
            return Err(Rejection::null(argument));
        }
        self.find(handle).ok_or_else(|| {
            let name = self.name;
            let rule = format!("is {handle:#x}, which is no {name}, or one that was destroyed");
            Rejection::invalid(argument, rule)
        })
    }

    /// Takes an object out.
    pub(crate) fn take(
        &'static self,
        argument: &str,
        handle: usize,
    ) -> Checked<PinnedObject<'static, T>> {
        let found = self.get(argument, handle)?;
        drop(found);
        self.key(handle)
            .and_then(|key| self.slots.take(key))
            .ok_or_else(|| Rejection::invalid(argument, "was destroyed by another thread"))
    }
}

/// A tensor: a view of memory of a device.
#[derive(Clone, Debug)]
pub(crate) struct TensorObject {
    /// The number of its element type.
    pub(crate) number: i32,
    pub(crate) shape: Vec<usize>,
    /// Distances between elements, in elements.
    pub(crate) strides: Vec<i64>,
    /// The first element, in elements from `data` on.
    pub(crate) offset: i64,
    pub(crate) format: i32,
    pub(crate) storage: Vec<i64>,
    pub(crate) data: usize,
}

/// A scalar on the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScalarObject {
    pub(crate) element: ElementType,
    pub(crate) value: ScalarBytes,
}

/// The bytes of a scalar, in native order.
#[repr(align(16))]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ScalarBytes(pub(crate) [u8; 16]);

pub(crate) static TENSORS: ObjectTable<Arc<TensorObject>> = ObjectTable::new(1, "tensor");
pub(crate) static SCALARS: ObjectTable<ScalarObject> = ObjectTable::new(2, "scalar");
pub(crate) static INTEGERS: ObjectTable<Vec<i64>> = ObjectTable::new(3, "array of integers");
pub(crate) static TENSOR_LISTS: ObjectTable<Vec<usize>> = ObjectTable::new(4, "list of tensors");

impl TensorObject {
    /// Its element type.
    pub(crate) fn element(&self, argument: &str) -> Checked<ElementType> {
        ElementType::of(self.number).ok_or_else(|| {
            Rejection::invalid(
                argument,
                format!("has the data type {}, which no operator takes", self.number),
            )
        })
    }
}

impl ScalarObject {
    /// The real and the imaginary part.
    pub(crate) fn parts(&self) -> [f64; 2] {
        let bytes = &self.value.0;
        let half = |at: usize, double: bool| {
            if double {
                f64::from_ne_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap_or_default())
            } else {
                f64::from(f32::from_ne_bytes(
                    bytes[4 * at..4 * at + 4].try_into().unwrap_or_default(),
                ))
            }
        };
        match self.element {
            ElementType::Complex64 => [half(0, false), half(1, false)],
            ElementType::Complex128 => [half(0, true), half(1, true)],
            ElementType::Real(_) => [self.tensor().to_doubles()[0], 0.0],
        }
    }

    /// A real scalar as a tensor without dimensions; of a complex one the real part.
    pub(crate) fn tensor(&self) -> pto_operators::Tensor {
        match self.element {
            ElementType::Real(dtype) => {
                let bytes = self.value.0[..dtype.bytes()].to_vec();
                let ty = pto_operators::TensorType::new(dtype, &[]);
                pto_operators::Tensor::from_bytes(ty, bytes)
                    .unwrap_or_else(|_| unreachable!("as many bytes as the type has"))
            }
            _ => pto_operators::Tensor::scalar(self.parts()[0]),
        }
    }
}

/// What a call of C gives: a handle, or null with the error kept.
fn made(call: &'static std::ffi::CStr, make: impl FnOnce() -> Checked<usize>) -> usize {
    make().unwrap_or_else(|rejection| {
        device::report(call, &rejection);
        0
    })
}

/// What a call of C gives: a code, with the error kept.
fn done(call: &'static std::ffi::CStr, act: impl FnOnce() -> Checked) -> i32 {
    act().map_or_else(|rejection| device::report(call, &rejection), |()| 0)
}

/// Elements that a caller passes.
///
/// # Safety
/// There are as many elements at `from`, if it is not null.
unsafe fn list<T: Copy>(
    argument: &str,
    from: *const T,
    count: u64,
    most: usize,
) -> Checked<Vec<T>> {
    let count = usize::try_from(count).ok().filter(|count| *count <= most).ok_or_else(|| {
        Rejection::invalid(argument, format!("has {count} elements; {most} are the most"))
    })?;
    if count == 0 {
        return Ok(Vec::new());
    }
    if from.is_null() {
        return Err(Rejection::null(argument));
    }
    let mut found = Vec::with_capacity(count);
    for at in 0..count {
        // SAFETY: the caller promises the elements.
        let element = unsafe { from.add(at) };
        // SAFETY: as above.
        found.push(unsafe { element.read_unaligned() });
    }
    Ok(found)
}

/// Elements of an array or a list, at most.
const MOST_ELEMENTS: usize = 1 << 24;

#[unsafe(no_mangle)]
unsafe extern "C" fn aclCreateTensor(
    dimensions: *const i64,
    count: u64,
    number: i32,
    strides: *const i64,
    offset: i64,
    format: i32,
    storage: *const i64,
    storage_count: u64,
    data: *mut c_void,
) -> usize {
    made(c"aclCreateTensor", || {
        // SAFETY: the caller vouches for the elements.
        let shape = unsafe { list("viewDims", dimensions, count, MOST_DIMENSIONS) }?;
        let shape = shape
            .into_iter()
            .map(|extent| {
                usize::try_from(extent).map_err(|_| {
                    Rejection::invalid(
                        "viewDims",
                        format!("has the extent {extent}; use 0 or more"),
                    )
                })
            })
            .collect::<Checked<Vec<usize>>>()?;
        let strides = if strides.is_null() {
            dense_strides(&shape)
        } else {
            // SAFETY: as above.
            unsafe { list("stride", strides, count, MOST_DIMENSIONS) }?
        };
        // SAFETY: as above.
        let storage = unsafe { list("storageDims", storage, storage_count, MOST_DIMENSIONS) }?;
        let tensor = TensorObject {
            number,
            shape,
            strides,
            offset,
            format,
            storage,
            data: data.expose_provenance(),
        };
        extent_of(&tensor).ok_or_else(|| {
            Rejection::invalid(
                "viewDims",
                format!(
                    "{:?} with the strides {:?} has more bytes than there are addresses",
                    tensor.shape, tensor.strides
                ),
            )
        })?;
        Ok(TENSORS.open(Arc::new(tensor)))
    })
}

/// The strides of a dense tensor.
pub(crate) fn dense_strides(shape: &[usize]) -> Vec<i64> {
    let mut strides = vec![1_i64; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at].saturating_mul(i64::try_from(shape[at]).unwrap_or(i64::MAX));
    }
    strides
}

/// The address of the first element, and the bytes from the lowest to behind the highest one: first, low, length. `None`: there are no such addresses.
pub(crate) fn extent_of(tensor: &TensorObject) -> Option<(usize, usize, usize)> {
    let size = i128::try_from(ElementType::of(tensor.number).map_or(1, ElementType::bytes)).ok()?;
    let first = i128::try_from(tensor.data).ok()? + i128::from(tensor.offset) * size;
    if tensor.shape.contains(&0) {
        let at = usize::try_from(first).ok()?;
        return Some((at, at, 0));
    }
    let (mut low, mut high) = (first, first.checked_add(size)?);
    for (extent, stride) in tensor.shape.iter().zip(&tensor.strides) {
        let reach = i128::try_from(extent - 1).ok()?.checked_mul(i128::from(*stride) * size)?;
        if reach < 0 {
            low = low.checked_add(reach)?;
        } else {
            high = high.checked_add(reach)?;
        }
    }
    let most = 1_i128 << 47;
    let span = high - low;
    (low >= 0 && high <= most && span <= most).then_some(())?;
    Some((usize::try_from(first).ok()?, usize::try_from(low).ok()?, usize::try_from(span).ok()?))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn aclCreateScalar(value: *const u8, number: i32) -> usize {
    made(c"aclCreateScalar", || {
        let element = ElementType::of(number).ok_or_else(|| {
            Rejection::invalid("dataType", format!("is {number}, which no operator takes"))
        })?;
        // SAFETY: the caller vouches for a value of this type.
        let bytes = unsafe { list("value", value, element.bytes() as u64, 16) }?;
        let mut held = [0; 16];
        held[..bytes.len()].copy_from_slice(&bytes);
        Ok(SCALARS.open(ScalarObject { element, value: ScalarBytes(held) }))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn aclCreateIntArray(values: *const i64, count: u64) -> usize {
    made(c"aclCreateIntArray", || {
        // SAFETY: the caller vouches for the elements.
        let found = unsafe { list("value", values, count, MOST_ELEMENTS) }?;
        Ok(INTEGERS.open(found))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn aclCreateTensorList(values: *const usize, count: u64) -> usize {
    made(c"aclCreateTensorList", || {
        // SAFETY: the caller vouches for the elements.
        let tensors = unsafe { list("value", values, count, MOST_ELEMENTS) }?;
        for tensor in &tensors {
            TENSORS.get("value", *tensor)?;
        }
        Ok(TENSOR_LISTS.open(tensors))
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclDestroyTensor(tensor: usize) -> i32 {
    done(c"aclDestroyTensor", || TENSORS.take("tensor", tensor).map(drop))
}

#[unsafe(no_mangle)]
extern "C" fn aclDestroyScalar(scalar: usize) -> i32 {
    done(c"aclDestroyScalar", || SCALARS.take("scalar", scalar).map(drop))
}

#[unsafe(no_mangle)]
extern "C" fn aclDestroyIntArray(array: usize) -> i32 {
    done(c"aclDestroyIntArray", || INTEGERS.take("array", array).map(drop))
}

/// Destroys a list and the tensors in it.
#[unsafe(no_mangle)]
extern "C" fn aclDestroyTensorList(list: usize) -> i32 {
    done(c"aclDestroyTensorList", || {
        let tensors = TENSOR_LISTS.take("array", list)?;
        // One that the program has destroyed itself is gone already.
        tensors.iter().for_each(|tensor| drop(TENSORS.take("tensor", *tensor)));
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn aclGetIntArraySize(array: usize, size: *mut u64) -> i32 {
    done(c"aclGetIntArraySize", || {
        let found = INTEGERS.get("array", array)?;
        // SAFETY: the caller vouches for the pointer.
        unsafe { put("size", size, found.len() as u64) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn aclGetTensorListSize(list: usize, size: *mut u64) -> i32 {
    done(c"aclGetTensorListSize", || {
        let found = TENSOR_LISTS.get("tensorList", list)?;
        // SAFETY: the caller vouches for the pointer.
        unsafe { put("size", size, found.len() as u64) }
    })
}

/// Writes a result.
///
/// # Safety
/// `to` is null, or can be written.
pub(crate) unsafe fn put<T>(argument: &str, to: *mut T, value: T) -> Checked {
    if to.is_null() {
        return Err(Rejection::null(argument));
    }
    // SAFETY: the caller promises it.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Gives a list to the caller, who deletes it as an array of C++: that is `free`.
///
/// # Safety
/// `to` and `count` are null, or can be written.
unsafe fn give_list(values: &[i64], to: *mut *mut i64, count: *mut u64) -> Checked {
    if to.is_null() || count.is_null() {
        return Err(Rejection::new(NULL_POINTER, "the result is null; pass a pointer for it"));
    }
    // SAFETY: any size is fine.
    let memory = unsafe { libc::malloc(8 * values.len().max(1)) }.cast::<i64>();
    if memory.is_null() {
        return Err(Rejection::new(INVALID, "there is no memory for the result"));
    }
    for (at, value) in values.iter().enumerate() {
        let element = memory.wrapping_add(at);
        // SAFETY: there is room for so many elements.
        unsafe { element.write(*value) };
    }
    // SAFETY: the caller promises it.
    unsafe { put("viewDims", to, memory) }?;
    // SAFETY: as above.
    unsafe { put("viewDimsNum", count, values.len() as u64) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn aclGetViewShape(tensor: usize, to: *mut *mut i64, count: *mut u64) -> i32 {
    done(c"aclGetViewShape", || {
        let tensor = TENSORS.get("tensor", tensor)?;
        let shape: Vec<i64> =
            tensor.shape.iter().map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX)).collect();
        // SAFETY: the caller vouches for the pointers.
        unsafe { give_list(&shape, to, count) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn aclGetStorageShape(tensor: usize, to: *mut *mut i64, count: *mut u64) -> i32 {
    done(c"aclGetStorageShape", || {
        let tensor = TENSORS.get("tensor", tensor)?;
        // SAFETY: the caller vouches for the pointers.
        unsafe { give_list(&tensor.storage, to, count) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn aclGetViewStrides(tensor: usize, to: *mut *mut i64, count: *mut u64) -> i32 {
    done(c"aclGetViewStrides", || {
        let tensor = TENSORS.get("tensor", tensor)?;
        // SAFETY: the caller vouches for the pointers.
        unsafe { give_list(&tensor.strides, to, count) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn aclGetDataType(tensor: usize, to: *mut i32) -> i32 {
    done(c"aclGetDataType", || {
        let tensor = TENSORS.get("tensor", tensor)?;
        // SAFETY: the caller vouches for the pointer.
        unsafe { put("dataType", to, tensor.number) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn aclGetFormat(tensor: usize, to: *mut i32) -> i32 {
    done(c"aclGetFormat", || {
        let tensor = TENSORS.get("tensor", tensor)?;
        // SAFETY: the caller vouches for the pointer.
        unsafe { put("format", to, tensor.format) }
    })
}

/// `aclTensor::GetData() const`
#[unsafe(export_name = "_ZNK9aclTensor7GetDataEv")]
extern "C" fn tensor_data(tensor: usize) -> usize {
    TENSORS.find(tensor).map_or(0, |tensor| tensor.data)
}

/// `aclScalar::GetData() const`
#[unsafe(export_name = "_ZNK9aclScalar7GetDataEv")]
extern "C" fn scalar_data(scalar: usize) -> *const c_void {
    SCALARS.find(scalar).map_or(std::ptr::null(), |scalar| (&raw const scalar.value).cast())
}

/// `aclScalar::GetDataType() const`
#[unsafe(export_name = "_ZNK9aclScalar11GetDataTypeEv")]
extern "C" fn scalar_type(scalar: usize) -> i32 {
    SCALARS.find(scalar).map_or(-1, |scalar| scalar.element.number())
}

/// `aclScalar::ToFloat() const`
#[unsafe(export_name = "_ZNK9aclScalar7ToFloatEv")]
extern "C" fn scalar_float(scalar: usize) -> f32 {
    #[expect(clippy::cast_possible_truncation, reason = "rounded to the type that is asked for")]
    SCALARS.find(scalar).map_or(f32::NAN, |scalar| scalar.parts()[0] as f32)
}

/// `std::complex<float>`
#[repr(C)]
struct SingleComplex(f32, f32);

/// `std::complex<double>`
#[repr(C)]
struct DoubleComplex(f64, f64);

/// `aclScalar::ToComplex64() const`
#[unsafe(export_name = "_ZNK9aclScalar11ToComplex64Ev")]
extern "C" fn scalar_complex64(scalar: usize) -> SingleComplex {
    let [re, im] = SCALARS.find(scalar).map_or([f64::NAN; 2], |scalar| scalar.parts());
    #[expect(clippy::cast_possible_truncation, reason = "rounded to the type that is asked for")]
    SingleComplex(re as f32, im as f32)
}

/// `aclScalar::ToComplex128() const`
#[unsafe(export_name = "_ZNK9aclScalar12ToComplex128Ev")]
extern "C" fn scalar_complex128(scalar: usize) -> DoubleComplex {
    let [re, im] = SCALARS.find(scalar).map_or([f64::NAN; 2], |scalar| scalar.parts());
    DoubleComplex(re, im)
}

/// `aclScalar::ToString() const`. No scalar is a string, so it is empty: a `shared_ptr` to nothing, which the caller destroys.
#[unsafe(export_name = "_ZNK9aclScalar8ToStringEv")]
unsafe extern "C" fn scalar_string(to: *mut [usize; 2], _scalar: usize) -> *mut [usize; 2] {
    // SAFETY: the caller has room for the result there, as C++ passes objects that are not trivial.
    unsafe { to.write([0, 0]) };
    to
}

/// `aclArray<long>::GetData() const`
#[unsafe(export_name = "_ZNK8aclArrayIlE7GetDataEv")]
extern "C" fn array_data(array: usize) -> *const i64 {
    INTEGERS.find(array).map_or(std::ptr::null(), |array| array.deref().as_ptr())
}

/// `ge::AscendString::GetString() const`: the first word of the object points to a `std::string`, whose first word points to its characters.
#[unsafe(export_name = "_ZNK2ge12AscendString9GetStringEv")]
unsafe extern "C" fn ascend_string(string: *const *const *const c_char) -> *const c_char {
    if string.is_null() {
        return c"".as_ptr();
    }
    // SAFETY: the caller passes an object of this class.
    let held = unsafe { string.read() };
    if held.is_null() {
        return c"".as_ptr();
    }
    // SAFETY: a `shared_ptr` that is not null points to its string.
    unsafe { held.read() }
}
