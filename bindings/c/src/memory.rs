//! Memory of a device.

use std::ffi::c_void;

use pto_host::abi::GmAddr;

use crate::argument::{bytes_to_fill, values};
use crate::device::OpaqueDevice;
use crate::error::{answer, answer_to};
use crate::handle;

/// Allocates global memory, aligned to 64 bytes and not initialised; its address is in `address`.
///
/// Fails with INVALID_HANDLE, ZERO_SIZE, OUT_OF_MEMORY. Thread safety: any thread, also during a run.
///
/// # Safety
/// `address` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_device_malloc(
    device: *const OpaqueDevice,
    bytes: u64,
    address: *mut u64,
) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe {
        answer_to(address, "address", || {
            let device = handle::get(device)?;
            Ok(device.memory().alloc(bytes)?.0)
        })
    }
}

/// Frees what `pto_device_malloc` gave. It is invalid at once: a second call fails, and so do copies. During a run, which
/// may use it, it can be allocated again only when that run has ended.
///
/// Fails with INVALID_HANDLE, DOUBLE_FREE, FOREIGN_POINTER. Thread safety: any thread, also during a run.
#[unsafe(no_mangle)]
pub extern "C" fn pto_device_free(device: *const OpaqueDevice, address: u64) -> i32 {
    answer(|| Ok(handle::get(device)?.memory().free(GmAddr(address))?))
}

/// Copies `bytes` bytes to the device, into one live allocation.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, COPY_OUT_OF_RANGE (nothing was copied). Thread safety: any thread, also
/// during a run that does not use the memory.
///
/// # Safety
/// `from` is null or readable for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_copy_to_device(
    device: *const OpaqueDevice,
    to: u64,
    from: *const c_void,
    bytes: u64,
) -> i32 {
    answer(|| {
        let device = handle::get(device)?;
        // SAFETY: the caller vouches for the pointer.
        let from = unsafe { values(from.cast::<u8>(), bytes, "from") }?;
        Ok(device.memory().copy_to_device(GmAddr(to), from)?)
    })
}

/// Copies `bytes` bytes from the device, out of one live allocation.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, COPY_OUT_OF_RANGE (nothing was copied). Thread safety: any thread; what is
/// copied while a run writes it is not specified.
///
/// # Safety
/// `to` is null or writable for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_copy_from_device(
    device: *const OpaqueDevice,
    to: *mut c_void,
    from: u64,
    bytes: u64,
) -> i32 {
    answer(|| {
        let device = handle::get(device)?;
        // SAFETY: the caller vouches for the pointer.
        let to = unsafe { bytes_to_fill(to, bytes, "to") }?;
        Ok(device.memory().copy_from_device(GmAddr(from), to)?)
    })
}
