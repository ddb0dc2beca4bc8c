//! Pointers of foreign code, checked for null and alignment before anything is read or written.

use pto_abi::Fault;

/// A value that foreign code points to.
///
/// # Safety
/// `pointer` is null, or readable.
pub(crate) unsafe fn value<T: Copy>(pointer: *const T) -> Result<T, Fault> {
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(Fault::BUILD_NULL_POINTER);
    }
    // SAFETY: not null, aligned, and readable as the caller says.
    Ok(unsafe { pointer.read() })
}

/// Values that foreign code points to.
///
/// # Safety
/// `pointer` is null, or has `count` values for the lifetime that the caller gives them.
pub(crate) unsafe fn values<'a, T>(pointer: *const T, count: u32) -> Result<&'a [T], Fault> {
    if count == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(Fault::BUILD_NULL_POINTER);
    }
    let count = usize::try_from(count).map_err(|_| Fault::BUILD_NULL_POINTER)?;
    // SAFETY: not null, aligned, and as many as the caller says.
    Ok(unsafe { core::slice::from_raw_parts(pointer, count) })
}

/// Checks a pointer to which a result is written.
pub(crate) fn result_pointer<T>(pointer: *mut T) -> Result<*mut T, Fault> {
    let fits = !pointer.is_null() && pointer.is_aligned();
    fits.then_some(pointer).ok_or(Fault::BUILD_NULL_POINTER)
}
