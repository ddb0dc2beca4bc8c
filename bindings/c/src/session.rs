//! Sessions: a device that stays up, with programs in its memory.

use pto_native::stitch::open_session;

use crate::device::OpaqueDevice;
use crate::error::{answer, answer_to};
use crate::handle;

/// A device that stays up. Opened by `pto_session_open`, closed by `pto_session_close`.
#[derive(Debug)]
pub struct OpaqueSession;

/// What was copied, converted, bounced and allocated since the device was opened.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Bytes that were copied from the host to the device.
    pub copied_to_device_bytes: u64,
    /// Bytes that were copied from the device to the host.
    pub copied_to_host_bytes: u64,
    /// Bytes that were copied on the device.
    pub copied_on_device_bytes: u64,
    /// Bytes that were filled.
    pub filled_bytes: u64,
    /// Bytes of the tensors that conversions wrote.
    pub converted_bytes: u64,
    /// Conversions.
    pub conversions: u64,
    /// Bytes of tensors that should have been on the chip and found no room there.
    pub bounced_bytes: u64,
    /// Blocks that were taken from the memory of the device.
    pub allocations: u64,
    /// Blocks that were taken from the pool of tensors that were let go.
    pub pool_hits: u64,
    /// Runs of programs, those of conversions among them.
    pub runs: u64,
    /// Runs whose bindings were in the memory of the device already.
    pub binding_hits: u64,
    /// Launches: one expands one program, or several of a stream that overlaps them.
    pub launches: u64,
}

/// Opens a session on a device, and closes the handle of the device: the session has the device for itself. Kernels of the library that
/// the device does not have are registered. `on_chip_bytes` are those of a fast region for tensors; 0: none.
///
/// Fails with INVALID_HANDLE, BUSY (another call uses the device; the device stays open), DUPLICATE_FUNC_ID, OUT_OF_MEMORY, SESSION; the
/// device is closed then, unless it is BUSY. Thread safety: any thread.
///
/// # Safety
/// `session` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_session_open(
    device: *mut OpaqueDevice,
    on_chip_bytes: u64,
    session: *mut *mut OpaqueSession,
) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe {
        answer_to(session, "session", || {
            let opened = open_session(take_device(device)?, on_chip_bytes)?;
            Ok(handle::open(opened))
        })
    }
}

/// Waits for what was submitted, and closes a session. Streams that are open keep the device.
///
/// Fails with INVALID_HANDLE, or with the first failure that was not reported yet; the session is closed then as well. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_session_close(session: *mut OpaqueSession) -> i32 {
    answer(|| Ok(handle::close(session)?.session().synchronize()?))
}

/// Waits for everything that was submitted to any stream. Runs of a stream that overlaps are submitted by `pto_program_stream_flush`.
///
/// Fails with INVALID_HANDLE, or with the failure of a command. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_session_synchronize(session: *const OpaqueSession) -> i32 {
    answer(|| Ok(handle::get(session)?.session().synchronize()?))
}

/// Drops what has not begun, forgets failures, and makes streams that have stopped take programs again.
///
/// Fails with INVALID_HANDLE, SESSION. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_session_reset(session: *const OpaqueSession) -> i32 {
    answer(|| Ok(handle::get(session)?.session().reset()?))
}

/// Reads the counters.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT. Thread safety: any thread, also while programs run.
///
/// # Safety
/// `counters` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_session_counters(
    session: *const OpaqueSession,
    counters: *mut Counters,
) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe {
        answer_to(counters, "counters", || {
            let found = handle::get(session)?.counters();
            Ok(Counters {
                copied_to_device_bytes: found.traffic.to_device_bytes,
                copied_to_host_bytes: found.traffic.to_host_bytes,
                copied_on_device_bytes: found.traffic.on_device_bytes,
                filled_bytes: found.traffic.filled_bytes,
                converted_bytes: found.converted_bytes,
                conversions: found.conversions,
                bounced_bytes: found.bounced_bytes,
                allocations: found.allocations,
                pool_hits: found.pool_hits,
                runs: found.runs,
                binding_hits: found.binding_hits,
                launches: found.launches,
            })
        })
    }
}

/// Takes the device of a handle away from everybody, and closes the handle.
///
/// # Errors
/// `BUSY`: another call uses the device; the handle stays open then.
fn take_device(handle: *mut OpaqueDevice) -> Result<pto_host::Device, pto_native::Failure> {
    handle::take(handle, |device| {
        device.into_device().map_err(|device| {
            let failure = device.in_use();
            (device, failure)
        })
    })
}
