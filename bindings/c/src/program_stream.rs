//! Streams that run programs.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{answer, answer_to};
use crate::handle;
use crate::session::OpaqueSession;

/// A stream of a session that runs programs. Opened by `pto_program_stream_open`, closed by `pto_program_stream_close`.
#[derive(Debug)]
pub struct OpaqueProgramStream;

/// Opens a stream. Up to `overlap` programs share a launch: a task of a later one begins when the tiles are written that it reads. With 0 or 1 each
/// program begins when the one before it has ended. After a program that fails the stream stops until `pto_session_reset`.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, OUT_OF_MEMORY, SESSION. Thread safety: any thread.
///
/// # Safety
/// `stream` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_program_stream_open(
    session: *const OpaqueSession,
    overlap: u32,
    stream: *mut *mut OpaqueProgramStream,
) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe {
        answer_to(stream, "stream", || {
            let overlap = usize::try_from(overlap).unwrap_or(1);
            let opened = handle::get(session)?.overlapping_stream(overlap)?;
            Ok(handle::open(Arc::new(opened)))
        })
    }
}

/// Closes a stream; what was asked of it is still done.
///
/// Fails with INVALID_HANDLE. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_program_stream_close(stream: *mut OpaqueProgramStream) -> i32 {
    answer(|| handle::close(stream))
}

/// Submits the runs that wait for others to share their launch.
///
/// Fails with INVALID_HANDLE, STREAM_STOPPED, SESSION. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_program_stream_flush(stream: *const OpaqueProgramStream) -> i32 {
    answer(|| Ok(handle::get(stream)?.flush()?))
}

/// Waits until everything is over that was asked of the stream, at most for `limit_ns` nanoseconds; `UINT64_MAX`: without a limit.
///
/// Fails with INVALID_HANDLE, TIMED_OUT (what was asked goes on), PROGRAM_FAULT, COMMAND_FAILED, STREAM_ABORTED, a fault of the runtime with its
/// post-mortem. A failure is reported once. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_program_stream_synchronize(
    stream: *const OpaqueProgramStream,
    limit_ns: u64,
) -> i32 {
    answer(|| {
        let limit = (limit_ns != u64::MAX).then(|| Duration::from_nanos(limit_ns));
        Ok(handle::get(stream)?.synchronize_within(limit)?)
    })
}

/// Drops the runs that have not begun; a wait for the stream fails with STREAM_ABORTED.
///
/// Fails with INVALID_HANDLE. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_program_stream_abort(stream: *const OpaqueProgramStream) -> i32 {
    answer(|| {
        handle::get(stream)?.abort();
        Ok(())
    })
}
