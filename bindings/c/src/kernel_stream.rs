//! Streams that launch kernels, and what is captured of them.

use std::time::Duration;

use crate::argument::{output, put, values};
use crate::error::answer;
use crate::handle::{self, Object};
use crate::session::OpaqueSession;

/// A stream of a session that launches kernels. Opened by `pto_kernel_stream_open`, closed by `pto_kernel_stream_close`.
#[derive(Debug)]
pub struct OpaqueKernelStream;

/// An event of a session. Opened by `pto_event_open`, closed by `pto_event_close`.
#[derive(Debug)]
pub struct OpaqueEvent;

/// What was captured of kernel streams. Made by `pto_kernel_stream_end_capture`, closed by `pto_recording_close`.
#[derive(Debug)]
pub struct OpaqueRecording;

/// An argument of a recording, and what stands in its place in one launch.
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
// SAFETY: the name is that of the interface, and no other function here has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_kernel_stream_open(
    session: *const OpaqueSession,
    stream: *mut *mut OpaqueKernelStream,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the pointer.
        let place = unsafe { output(stream, "stream") }?;
        let opened = handle::session(session)?.kernel_stream()?;
        put(place, handle::open(Object::KernelStream(opened)));
        Ok(())
    })
}

/// Closes a stream; what was launched still runs.
///
/// Fails with INVALID_HANDLE. Thread safety: any thread.
// SAFETY: as for `pto_kernel_stream_open`.
#[unsafe(no_mangle)]
pub extern "C" fn pto_kernel_stream_close(stream: *mut OpaqueKernelStream) -> i32 {
    answer(|| handle::close(stream, "kernel stream").map(drop))
}

/// Launches a kernel that the device has, in so many blocks. The kernels of the library have the func ids that `pto list kernels` shows; tensors are given by their
/// addresses (`pto_tensor_address`). While the stream is captured, the launch is written down and not done.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT, STREAM_STOPPED, SESSION. Thread safety: any thread; launches are in the order of the calls.
///
/// # Safety
/// `args` is null or valid for as many values as `arg_count` says.
// SAFETY: as for `pto_kernel_stream_open`.
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
        handle::kernel_stream(stream)?.launch(func_id, blocks, args)
    })
}

/// Records an event when everything before it is over.
///
/// Fails with INVALID_HANDLE, OTHER_SESSION, STREAM_STOPPED, SESSION. Thread safety: any thread.
// SAFETY: as for `pto_kernel_stream_open`.
#[unsafe(no_mangle)]
pub extern "C" fn pto_kernel_stream_record(
    stream: *const OpaqueKernelStream,
    event: *const OpaqueEvent,
) -> i32 {
    answer(|| handle::kernel_stream(stream)?.record(&*handle::event(event)?))
}

/// Waits for the last record of an event. A stream that waits for an event of a capture takes part in the capture.
///
/// Fails with INVALID_HANDLE, OTHER_SESSION, STREAM_STOPPED, SESSION. Thread safety: any thread.
// SAFETY: as for `pto_kernel_stream_open`.
#[unsafe(no_mangle)]
pub extern "C" fn pto_kernel_stream_wait(
    stream: *const OpaqueKernelStream,
    event: *const OpaqueEvent,
) -> i32 {
    answer(|| handle::kernel_stream(stream)?.wait(&*handle::event(event)?))
}

/// From here on, what the stream is asked is written down and not done.
///
/// Fails with INVALID_HANDLE, SESSION (the stream is captured already). Thread safety: any thread.
// SAFETY: as for `pto_kernel_stream_open`.
#[unsafe(no_mangle)]
pub extern "C" fn pto_kernel_stream_begin_capture(stream: *const OpaqueKernelStream) -> i32 {
    answer(|| handle::kernel_stream(stream)?.begin_capture())
}

/// Ends the capture that was begun on this stream: `recording` is what was launched meanwhile, on this stream and on those that joined by events.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, SESSION (no capture was begun, or a stream that takes part was not waited for). Thread safety: any thread.
///
/// # Safety
/// `recording` is null or writable.
// SAFETY: as for `pto_kernel_stream_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_kernel_stream_end_capture(
    stream: *const OpaqueKernelStream,
    recording: *mut *mut OpaqueRecording,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the pointer.
        let place = unsafe { output(recording, "recording") }?;
        let ended = handle::kernel_stream(stream)?.end_capture()?;
        put(place, handle::open(Object::Recording(ended)));
        Ok(())
    })
}

/// Launches a recording as one command. Each binding puts an address in the place of one that was an argument while the stream was captured. What stands at the
/// addresses has to live until the launch is over.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT (no launch has this argument), OTHER_SESSION, OUT_OF_MEMORY, STREAM_STOPPED, SESSION. Thread
/// safety: any thread.
///
/// # Safety
/// `bindings` is null or valid for as many values as `binding_count` says.
// SAFETY: as for `pto_kernel_stream_open`.
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
        let bindings: Vec<_> = bindings.iter().map(|binding| (binding.from, binding.to)).collect();
        let recording = handle::recording(recording)?;
        handle::kernel_stream(stream)?.launch_recording(&recording, &bindings)
    })
}

/// Waits until everything is over that was asked of the stream, at most for `limit_ns` nanoseconds; `UINT64_MAX`: without a limit.
///
/// Fails with INVALID_HANDLE, TIMED_OUT (what was asked goes on), COMMAND_FAILED, STREAM_ABORTED, a fault of the runtime with its post-mortem. A failure is told
/// once. Thread safety: any thread.
// SAFETY: as for `pto_kernel_stream_open`.
#[unsafe(no_mangle)]
pub extern "C" fn pto_kernel_stream_synchronize(
    stream: *const OpaqueKernelStream,
    limit_ns: u64,
) -> i32 {
    answer(|| {
        let limit = (limit_ns != u64::MAX).then(|| Duration::from_nanos(limit_ns));
        handle::kernel_stream(stream)?.synchronize(limit)
    })
}

/// Closes a recording; launches of it still run.
///
/// Fails with INVALID_HANDLE. Thread safety: any thread.
// SAFETY: as for `pto_kernel_stream_open`.
#[unsafe(no_mangle)]
pub extern "C" fn pto_recording_close(recording: *mut OpaqueRecording) -> i32 {
    answer(|| handle::close(recording, "recording").map(drop))
}

/// Opens an event that was never recorded.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, OUT_OF_MEMORY, SESSION. Thread safety: any thread.
///
/// # Safety
/// `event` is null or writable.
// SAFETY: as for `pto_kernel_stream_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_event_open(
    session: *const OpaqueSession,
    event: *mut *mut OpaqueEvent,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the pointer.
        let place = unsafe { output(event, "event") }?;
        let opened = handle::session(session)?.event()?;
        put(place, handle::open(Object::Event(opened)));
        Ok(())
    })
}

/// Closes an event.
///
/// Fails with INVALID_HANDLE. Thread safety: any thread.
// SAFETY: as for `pto_kernel_stream_open`.
#[unsafe(no_mangle)]
pub extern "C" fn pto_event_close(event: *mut OpaqueEvent) -> i32 {
    answer(|| handle::close(event, "event").map(drop))
}
