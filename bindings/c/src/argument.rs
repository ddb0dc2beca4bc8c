//! Checks the arguments of every function: a pointer becomes a reference, or an error that names the argument.

use std::ffi::{CStr, c_char, c_void};

use pto_native::{Failure, FailureKind};

/// An argument that cannot be.
pub(crate) fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(FailureKind::INVALID_ARGUMENT, message)
}

fn null(name: &str) -> Failure {
    Failure::new(FailureKind::NULL_ARGUMENT, format!("`{name}` is null"))
}

/// A pointer for a result, checked.
///
/// # Safety
/// `pointer` is null, or writable for the lifetime that the caller gives it.
pub(crate) unsafe fn output<'a, T>(
    pointer: *mut T,
    name: &str,
) -> Result<&'a mut std::mem::MaybeUninit<T>, Failure> {
    if !pointer.is_aligned() {
        return Err(invalid(format!("`{name}` is not aligned")));
    }
    // SAFETY: not null, aligned, and the caller says that it is writable; it may be uninitialised.
    unsafe { pointer.cast::<std::mem::MaybeUninit<T>>().as_mut() }.ok_or_else(|| null(name))
}

/// Writes a result.
pub(crate) fn put<T>(to: &mut std::mem::MaybeUninit<T>, value: T) {
    to.write(value);
}

/// Writes a result for a caller who wants it: `pointer` is null where not.
///
/// # Safety
/// As [`output`].
pub(crate) unsafe fn put_if_wanted<T>(
    pointer: *mut T,
    name: &str,
    value: T,
) -> Result<(), Failure> {
    if !pointer.is_null() {
        // SAFETY: as the caller says.
        put(unsafe { output(pointer, name) }?, value);
    }
    Ok(())
}

/// A structure that the caller has filled.
///
/// # Safety
/// `pointer` is null, or valid for the lifetime that the caller gives it.
pub(crate) unsafe fn input<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Failure> {
    if !pointer.is_aligned() {
        return Err(invalid(format!("`{name}` is not aligned")));
    }
    // SAFETY: not null, aligned, and the caller says that it is valid.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(name))
}

/// Text of the caller.
///
/// # Safety
/// `pointer` is null, or a C string for the lifetime that the caller gives it.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Failure> {
    // SAFETY: as the caller says.
    let text = unsafe { optional_text(pointer, name) }?;
    text.ok_or_else(|| null(name))
}

/// Text of the caller, or null.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn optional_text<'a>(
    pointer: *const c_char,
    name: &str,
) -> Result<Option<&'a str>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, and the caller says that it is a C string.
    let text = unsafe { CStr::from_ptr(pointer) }.to_str();
    text.map(Some).map_err(|_| invalid(format!("`{name}` is not UTF-8")))
}

/// `count` values of the caller; null is as good as any pointer to none.
///
/// # Safety
/// `pointer` is null, or valid for `count` values for the lifetime that the caller gives it.
pub(crate) unsafe fn values<'a, T>(
    pointer: *const T,
    count: u64,
    name: &str,
) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    let length = length::<T>(pointer.is_null(), pointer.is_aligned(), count, name)?;
    // SAFETY: not null, aligned, and the caller says that there are as many.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
}

/// Bytes that are to be filled.
///
/// # Safety
/// `pointer` is null, or writable for `count` bytes for the lifetime that the caller gives it, and initialised.
pub(crate) unsafe fn bytes_to_fill<'a>(
    pointer: *mut c_void,
    count: u64,
    name: &str,
) -> Result<&'a mut [u8], Failure> {
    if count == 0 {
        return Ok(&mut []);
    }
    let length = length::<u8>(pointer.is_null(), true, count, name)?;
    // SAFETY: not null, and the caller says that there are as many.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer.cast(), length) })
}

fn length<T>(is_null: bool, is_aligned: bool, count: u64, name: &str) -> Result<usize, Failure> {
    if is_null {
        return Err(null(name));
    }
    if !is_aligned {
        return Err(invalid(format!("`{name}` is not aligned")));
    }
    let bytes = usize::try_from(count).ok().and_then(|count| count.checked_mul(size_of::<T>()));
    let fits = bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok());
    let length = usize::try_from(count).ok().filter(|_| fits);
    length.ok_or_else(|| invalid(format!("{count} values at `{name}` are more than memory holds")))
}
