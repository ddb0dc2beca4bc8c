//! Streams that launch kernels and copy, and what is captured of them.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::time::Duration;

use pto_host::abi::GmAddr;
use pto_host::session::{HostBuffer, ValueTest};
use pto_native::stitch::{self, TensorRecording, element_type, reduction, value_test};
use pto_native::{Failure, FailureKind};

use crate::argument::{bytes_to_fill, text, values};
use crate::error::{answer, answer_to};
use crate::handle;
use crate::session::OpaqueSession;

/// A stream of a session that launches kernels. Opened by `pto_kernel_stream_open`, closed by `pto_kernel_stream_close`.
#[derive(Debug)]
pub struct OpaqueKernelStream;

/// An event of a session. Opened by `pto_event_open`, closed by `pto_event_close`.
#[derive(Debug)]
pub struct OpaqueEvent;

/// A flag on the device of a session: one stream raises it, and one waits for it and lowers it. Opened by `pto_notify_open`, closed by `pto_notify_close`.
#[derive(Debug)]
pub struct OpaqueNotify;

/// What was captured of kernel streams. Made by `pto_kernel_stream_end_capture`, closed by `pto_recording_close`.
#[derive(Debug)]
pub struct OpaqueRecording;

/// An argument of a recording, and what replaces it in one launch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RecordingBinding {
    /// The address that was an argument while the stream was captured.
    pub from: u64,
    /// The address instead.
    pub to: u64,
}

/// Opens a stream that launches kernels, one after the other.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, OUT_OF_MEMORY, SESSION. Thread safety: any thread.
///
/// # Safety
/// `stream` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_kernel_stream_open(
    session: *const OpaqueSession,
    stream: *mut *mut OpaqueKernelStream,
) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe {
        answer_to(stream, "stream", || {
            Ok(handle::open(Arc::new(handle::get(session)?.session().stream()?)))
        })
    }
}

/// Closes a stream; what was launched still runs.
///
/// Fails with INVALID_HANDLE. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_kernel_stream_close(stream: *mut OpaqueKernelStream) -> i32 {
    answer(|| handle::close(stream))
}

/// Launches a kernel that the device has, in so many blocks. The kernels of the library have the func ids that `pto info kernels` shows; tensors are given by their
/// addresses (`pto_tensor_address`). While the stream is captured, the launch is written down and not done.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT, STREAM_STOPPED, SESSION. Thread safety: any thread; launches are in the order of the calls.
///
/// # Safety
/// `args` is null or valid for as many values as `arg_count` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_kernel_stream_launch(
    stream: *const OpaqueKernelStream,
    func_id: u32,
    blocks: u32,
    args: *const u64,
    arg_count: u32,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the pointer.
        let args = unsafe { values(args, arg_count.into(), "args") }?;
        Ok(handle::get(stream)?.launch_blocks(stitch::func_id(func_id)?, blocks, args)?)
    })
}

/// Copies `bytes` bytes at `from` to the device. They are read when the copy's turn comes, of a recording in each launch: they have to live, and must not be written, until
/// the copy is over, and of a recording until it is closed and its launches are over.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT (the range is not in one allocation of the device), STREAM_STOPPED, SESSION. Thread safety: any thread.
///
/// # Safety
/// `from` is null, or readable for `bytes` bytes for as long as said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_kernel_stream_copy_to_device(
    stream: *const OpaqueKernelStream,
    to: u64,
    from: *const c_void,
    bytes: u64,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the bytes; a copy to the device only reads them.
        let from = unsafe { foreign(from.cast_mut(), bytes, "from") }?;
        Ok(handle::get(stream)?.copy_to_device(GmAddr(to), from)?)
    })
}

/// Copies `bytes` bytes of the device to `to`. Of a recording, each launch writes them.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT (the range is not in one allocation of the device), STREAM_STOPPED, SESSION. Thread safety: any thread.
///
/// # Safety
/// `to` is null, or writable for `bytes` bytes until the copy is over, and of a recording until it is closed and its launches are over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_kernel_stream_copy_from_device(
    stream: *const OpaqueKernelStream,
    from: u64,
    to: *mut c_void,
    bytes: u64,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the bytes.
        let to = unsafe { foreign(to, bytes, "to") }?;
        Ok(handle::get(stream)?.copy_from_device(GmAddr(from), &to)?)
    })
}

/// Copies `bytes` bytes on the device; the two ranges do not overlap.
///
/// Fails with INVALID_HANDLE, INVALID_ARGUMENT, STREAM_STOPPED, SESSION. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_kernel_stream_copy(
    stream: *const OpaqueKernelStream,
    from: u64,
    to: u64,
    bytes: u64,
) -> i32 {
    answer(|| Ok(handle::get(stream)?.copy_on_device(GmAddr(from), GmAddr(to), bytes)?))
}

/// Fills `bytes` bytes of the device with `byte`.
///
/// Fails with INVALID_HANDLE, INVALID_ARGUMENT, STREAM_STOPPED, SESSION. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_kernel_stream_fill(
    stream: *const OpaqueKernelStream,
    to: u64,
    byte: u8,
    bytes: u64,
) -> i32 {
    answer(|| Ok(handle::get(stream)?.fill(GmAddr(to), byte, bytes)?))
}

/// Reduces `bytes` bytes at `from` on the device into those at `to`: `how` is "sum", "max" or "min", `dtype` an element type such as "f32".
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT, STREAM_STOPPED, SESSION. Thread safety: any thread.
///
/// # Safety
/// `how` and `dtype` are null or strings that end with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_kernel_stream_reduce(
    stream: *const OpaqueKernelStream,
    how: *const c_char,
    dtype: *const c_char,
    from: u64,
    to: u64,
    bytes: u64,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for both strings.
        let how = unsafe { text(how, "how") }?;
        // SAFETY: as above.
        let dtype = unsafe { text(dtype, "dtype") }?;
        let how = (reduction(how)?, element_type(dtype)?);
        Ok(handle::get(stream)?.reduce(how, GmAddr(from), GmAddr(to), bytes)?)
    })
}

/// A function that a stream calls.
pub type StreamFunction = Option<unsafe extern "C" fn(user: *mut c_void)>;

/// Calls `function` with `user` on a thread of the session; the stream waits for its return. Of a recording, each launch calls it. The function must not wait for this stream.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, STREAM_STOPPED, SESSION. Thread safety: any thread.
///
/// # Safety
/// `function` may be called on any thread with `user` until the command is over, and of a recording until it is closed and its launches are over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_kernel_stream_call(
    stream: *const OpaqueKernelStream,
    function: StreamFunction,
    user: *mut c_void,
) -> i32 {
    answer(|| {
        let function = function.ok_or_else(|| {
            Failure::new(FailureKind::NULL_ARGUMENT, "`function` is null".to_owned())
        })?;
        let user = user.expose_provenance();
        let stream = handle::get(stream)?;
        let called = move || {
            // SAFETY: the caller vouches for the function and for what it is given.
            unsafe { function(std::ptr::with_exposed_provenance_mut(user)) };
        };
        Ok(stream.call_each(called)?)
    })
}

/// Writes a word of 64 bits of the device.
///
/// Fails with INVALID_HANDLE, INVALID_ARGUMENT, STREAM_STOPPED, SESSION. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_kernel_stream_write_value(
    stream: *const OpaqueKernelStream,
    at: u64,
    value: u64,
) -> i32 {
    answer(|| Ok(handle::get(stream)?.write_value(GmAddr(at), value)?))
}

/// Makes the stream wait until a word of 64 bits of the device has this value. A stream, a kernel or the host may write it.
///
/// Fails with INVALID_HANDLE, INVALID_ARGUMENT, STREAM_STOPPED, SESSION. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_kernel_stream_wait_value(
    stream: *const OpaqueKernelStream,
    at: u64,
    value: u64,
) -> i32 {
    answer(|| Ok(handle::get(stream)?.wait_value(GmAddr(at), ValueTest::EQUAL, value)?))
}

/// Makes the stream wait until a word of 64 bits of the device is as `test` says: "equal", "at least" (both with a sign), "and" (the word and the value have a bit in
/// common) or "nor" (some bit is set in neither).
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT, STREAM_STOPPED, SESSION. Thread safety: any thread.
///
/// # Safety
/// `test` is null or a string that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_kernel_stream_wait_value_test(
    stream: *const OpaqueKernelStream,
    at: u64,
    test: *const c_char,
    value: u64,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the string.
        let test = unsafe { text(test, "test") }?;
        Ok(handle::get(stream)?.wait_value(GmAddr(at), value_test(test)?, value)?)
    })
}

/// Raises a flag.
///
/// Fails with INVALID_HANDLE, OTHER_SESSION, STREAM_STOPPED, SESSION. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_kernel_stream_notify(
    stream: *const OpaqueKernelStream,
    notify: *const OpaqueNotify,
) -> i32 {
    answer(|| Ok(handle::get(stream)?.notify(&handle::get(notify)?)?))
}

/// Waits until a flag is raised, and lowers it. One stream at a time may wait for it.
///
/// Fails with INVALID_HANDLE, OTHER_SESSION, STREAM_STOPPED, SESSION. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_kernel_stream_wait_notify(
    stream: *const OpaqueKernelStream,
    notify: *const OpaqueNotify,
) -> i32 {
    answer(|| Ok(handle::get(stream)?.wait_notify(&handle::get(notify)?)?))
}

/// Memory of the caller, for a copy.
///
/// # Safety
/// As [`HostBuffer::foreign`], if it is not null.
unsafe fn foreign(start: *mut c_void, bytes: u64, name: &str) -> Result<HostBuffer, Failure> {
    // SAFETY: the caller vouches for the bytes; the slice is not used.
    unsafe { bytes_to_fill(start, bytes, name) }?;
    // SAFETY: as above.
    Ok(unsafe { HostBuffer::foreign(start.cast(), bytes) })
}

/// Records an event when everything before it is over.
///
/// Fails with INVALID_HANDLE, OTHER_SESSION, STREAM_STOPPED, SESSION. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_kernel_stream_record(
    stream: *const OpaqueKernelStream,
    event: *const OpaqueEvent,
) -> i32 {
    answer(|| Ok(handle::get(stream)?.record(&handle::get(event)?)?))
}

/// Waits for the last record of an event. A stream that waits for an event of a capture takes part in the capture.
///
/// Fails with INVALID_HANDLE, OTHER_SESSION, STREAM_STOPPED, SESSION. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_kernel_stream_wait(
    stream: *const OpaqueKernelStream,
    event: *const OpaqueEvent,
) -> i32 {
    answer(|| Ok(handle::get(stream)?.wait(&handle::get(event)?)?))
}

/// Resets an event when everything before it is over: it is not complete until it is recorded again.
///
/// Fails with INVALID_HANDLE, OTHER_SESSION, STREAM_STOPPED, SESSION (the stream is captured). Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_kernel_stream_reset(
    stream: *const OpaqueKernelStream,
    event: *const OpaqueEvent,
) -> i32 {
    answer(|| Ok(handle::get(stream)?.reset(&handle::get(event)?)?))
}

/// Whether everything is over that was asked of the stream: `is_idle` is 1 then, and 0 otherwise. It waits for nothing, and reports no failure.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, SESSION (the stream is captured). Thread safety: any thread.
///
/// # Safety
/// `is_idle` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_kernel_stream_query(
    stream: *const OpaqueKernelStream,
    is_idle: *mut u32,
) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe { answer_to(is_idle, "is_idle", || Ok(handle::get(stream)?.query()?.into())) }
}

/// Drops the commands that have not begun; a wait for the stream fails with STREAM_ABORTED.
///
/// Fails with INVALID_HANDLE. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_kernel_stream_abort(stream: *const OpaqueKernelStream) -> i32 {
    answer(|| {
        handle::get(stream)?.abort();
        Ok(())
    })
}

/// From here on, what the stream is asked is written down and not done.
///
/// Fails with INVALID_HANDLE, SESSION (the stream is captured already). Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_kernel_stream_begin_capture(stream: *const OpaqueKernelStream) -> i32 {
    answer(|| Ok(handle::get(stream)?.begin_capture()?))
}

/// Ends the capture that was begun on this stream: `recording` is what was asked meanwhile, on this stream and on those that joined by events.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, SESSION (no capture was begun, or a stream that takes part was not waited for). Thread safety: any thread.
///
/// # Safety
/// `recording` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_kernel_stream_end_capture(
    stream: *const OpaqueKernelStream,
    recording: *mut *mut OpaqueRecording,
) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe {
        answer_to(recording, "recording", || {
            let ended = TensorRecording::end(&*handle::get(stream)?)?;
            Ok(handle::open(Arc::new(ended)))
        })
    }
}

/// Launches a recording: as one command if it consists of launches, and as one command after the other otherwise. Each binding replaces an address that was an argument while the stream was captured. The memory at the
/// addresses has to live until the launch is over.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT (the recording does not name this address), OTHER_SESSION, OUT_OF_MEMORY, STREAM_STOPPED, SESSION. Thread
/// safety: any thread.
///
/// # Safety
/// `bindings` is null or valid for as many values as `binding_count` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_kernel_stream_launch_recording(
    stream: *const OpaqueKernelStream,
    recording: *const OpaqueRecording,
    bindings: *const RecordingBinding,
    binding_count: u32,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the pointer.
        let bindings = unsafe { values(bindings, binding_count.into(), "bindings") }?;
        let bindings = bindings.iter().map(|one| (GmAddr(one.from), GmAddr(one.to)));
        let bindings: Vec<_> = bindings.collect();
        handle::get(recording)?.launch(&*handle::get(stream)?, &bindings)
    })
}

/// Waits until everything is over that was asked of the stream, at most for `limit_ns` nanoseconds; `UINT64_MAX`: without a limit.
///
/// Fails with INVALID_HANDLE, TIMED_OUT (what was asked goes on), COMMAND_FAILED, STREAM_ABORTED, a fault of the runtime with its post-mortem. A failure is reported
/// once. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_kernel_stream_synchronize(
    stream: *const OpaqueKernelStream,
    limit_ns: u64,
) -> i32 {
    answer(|| {
        let limit = (limit_ns != u64::MAX).then(|| Duration::from_nanos(limit_ns));
        Ok(handle::get(stream)?.synchronize_within(limit)?)
    })
}

/// Closes a recording; launches of it still run.
///
/// Fails with INVALID_HANDLE. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_recording_close(recording: *mut OpaqueRecording) -> i32 {
    answer(|| handle::close(recording))
}

/// Opens an event that was never recorded.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, OUT_OF_MEMORY, SESSION. Thread safety: any thread.
///
/// # Safety
/// `event` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_event_open(
    session: *const OpaqueSession,
    event: *mut *mut OpaqueEvent,
) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe {
        answer_to(event, "event", || Ok(handle::open(handle::get(session)?.session().event()?)))
    }
}

/// Closes an event.
///
/// Fails with INVALID_HANDLE. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_event_close(event: *mut OpaqueEvent) -> i32 {
    answer(|| handle::close(event))
}

/// Whether the last record of an event is complete: `is_complete` is 1 then, and 0 otherwise. An event that was never recorded is complete, and one that was reset is not.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT. Thread safety: any thread.
///
/// # Safety
/// `is_complete` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_event_query(event: *const OpaqueEvent, is_complete: *mut u32) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe {
        answer_to(is_complete, "is_complete", || Ok(handle::get(event)?.is_complete().into()))
    }
}

/// Opens a flag that is not raised.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, OUT_OF_MEMORY, SESSION. Thread safety: any thread.
///
/// # Safety
/// `notify` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_notify_open(
    session: *const OpaqueSession,
    notify: *mut *mut OpaqueNotify,
) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe {
        answer_to(notify, "notify", || Ok(handle::open(handle::get(session)?.session().notify()?)))
    }
}

/// Where the word of a flag is on the device: 1 means raised. A kernel may raise it as well.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT. Thread safety: any thread.
///
/// # Safety
/// `address` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_notify_address(notify: *const OpaqueNotify, address: *mut u64) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe { answer_to(address, "address", || Ok(handle::get(notify)?.address().0)) }
}

/// Closes a flag. The commands that use it have to be over.
///
/// Fails with INVALID_HANDLE. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_notify_close(notify: *mut OpaqueNotify) -> i32 {
    answer(|| handle::close(notify))
}
