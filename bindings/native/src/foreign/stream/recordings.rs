//! Records: a part of a program that is written down, to be replayed with other tensors and scalars.

use core::ffi::{c_int, c_void};

use heapless::Vec;
use pto_abi::Fault;
use pto_abi::foreign::{StreamRecording, StreamTensor};
use pto_graph::{Bindings, MAX_BOUND, TensorView};

use crate::foreign::alias::Alias;
use crate::foreign::build::{Finder, done};
use crate::foreign::pointers::{result_pointer, value, values};

/// The views that foreign code states.
///
/// # Safety
/// `tensors` is null, or has as many.
unsafe fn views_of(
    tensors: *const StreamTensor,
    count: u32,
    alias: Alias,
) -> Result<Vec<TensorView<'static>, MAX_BOUND>, Fault> {
    let mut views = Vec::new();
    // SAFETY: as the caller says.
    for tensor in unsafe { values(tensors, count) }? {
        let view = TensorView::from(&alias.device_tensor(tensor));
        views.push(view).map_err(|_| Fault::STREAM_RECORDING_FULL)?;
    }
    Ok(views)
}

/// `pto_stream_begin_recording`.
///
/// # Safety
/// `shapes` is null, or has `count` tensors; `bound` is null, or writable for as many.
pub unsafe extern "C" fn begin_recording<F: Finder>(
    runtime: *mut c_void,
    shapes: *const StreamTensor,
    count: u32,
    bound: *mut StreamTensor,
) -> c_int {
    done::<F>(runtime, |build| {
        // SAFETY: as the caller says.
        let views = unsafe { views_of(shapes, count, build.alias()) }?;
        let to = if views.is_empty() { bound } else { result_pointer(bound)? };
        let serial = build.begin_recording(&views)?;
        for (index, view) in views.iter().enumerate() {
            let placeholder = StreamTensor::from(&view.placeholder(index, serial));
            // SAFETY: as the caller says; `result_pointer` looked at it.
            unsafe { to.wrapping_add(index).write(placeholder) };
        }
        Ok(())
    })
}

/// `pto_stream_end_recording`.
///
/// # Safety
/// `recording` is null, or writable.
pub unsafe extern "C" fn end_recording<F: Finder>(
    runtime: *mut c_void,
    recording: *mut StreamRecording,
) -> c_int {
    done::<F>(runtime, |build| {
        let to = result_pointer(recording)?;
        let made = build.end_recording()?;
        // SAFETY: as the caller says; `result_pointer` looked at it.
        unsafe { to.write(made.into()) };
        Ok(())
    })
}

/// `pto_stream_replay`.
///
/// # Safety
/// `recording` is null, or readable; `tensors` and `scalars` are null, or have as many.
pub unsafe extern "C" fn replay<F: Finder>(
    runtime: *mut c_void,
    recording: *const StreamRecording,
    tensors: *const StreamTensor,
    tensor_count: u32,
    scalars: *const u64,
    scalar_count: u32,
) -> c_int {
    done::<F>(runtime, |build| {
        // SAFETY: as the caller says, here and below.
        let recording = unsafe { value(recording) }?;
        // SAFETY: as above.
        let tensors = unsafe { views_of(tensors, tensor_count, build.alias()) }?;
        // SAFETY: as above.
        let given = unsafe { values(scalars, scalar_count) }?;
        let alias = build.alias();
        let mut scalars: Vec<u64, MAX_BOUND> = Vec::new();
        for word in given {
            scalars.push(alias.device(*word)).map_err(|_| Fault::STREAM_REPLAY_MISFIT)?;
        }
        build.replay(&recording.into(), &Bindings { tensors: &tensors, scalars: &scalars })
    })
}
