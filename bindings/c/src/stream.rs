//! Streaming builder programs in C, and ranges in every run: tasks with tensors, scopes, tensors of the heap, elements. The structures are those
//! of `pto_abi.h`, and what is wrong with them is said as it is in Rust.

use std::ffi::c_void;

use pto_host::abi::foreign::{StreamArg, StreamRecording, StreamScope, StreamTask, StreamTensor};
use pto_native::Failure;
use pto_native::foreign::range::{RangeOfTasks, StreamVariation};
use pto_native::foreign::{Build, Finder, range, stream};

use crate::argument::put_if_wanted;
use crate::builder::{self, OpaqueBuilder};
use crate::error::{answer, answer_to};

/// The builder of the thread, by its handle.
struct CurrentBuilder;

impl Finder for CurrentBuilder {
    fn find<R>(runtime: *mut c_void, failed: R, act: impl FnOnce(&mut Build<'_>) -> R) -> R {
        match builder::find(runtime.cast_const().cast()) {
            Some(build) => act(build),
            None => failed,
        }
    }
}

/// Does one call on the build of `builder`; what is negative is a fault.
fn on<R: PartialOrd + From<i8>>(
    builder: *const OpaqueBuilder,
    call: impl FnOnce(*mut c_void) -> R,
) -> Result<R, Failure> {
    // Says that the builder is none, or that an earlier call failed.
    builder::on(builder, |_| Ok(()))?;
    let result = call(builder.cast_mut().cast());
    if result < R::from(0) {
        // The call has left its fault.
        return Err(builder::first_fault(builder));
    }
    Ok(result)
}

/// Adds a task with tensors and publishes it; it waits for the earlier tasks that touch what it reads and writes, and for
/// the `after_count` tasks in `after`. `number`: its number in the build, counted from 0, for `after` and for
/// `pto_builder_add_edge`; null: not wanted.
///
/// Fails with OUTSIDE_BUILDER, BUILD_NOT_STREAMING in a run of `pto_run_builder`, KERNEL_CALL for a kernel of the library that does not take these arguments,
/// or a fault of the build; all but the first end the run. Thread safety: the builder's own thread.
///
/// # Safety
/// `task` is null, or has as many bytes as its `struct_size` says; `args` and `after` are null, or have as many entries;
/// `number` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_builder_submit(
    builder: *const OpaqueBuilder,
    task: *const StreamTask,
    args: *const StreamArg,
    arg_count: u32,
    after: *const i64,
    after_count: u32,
    number: *mut i64,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the pointers, here and below.
        let added = on(builder, |runtime| unsafe {
            stream::submit::<CurrentBuilder>(runtime, task, args, arg_count, after, after_count)
        })?;
        // SAFETY: as above.
        unsafe { put_if_wanted(number, "number", added) }
    })
}

/// Adds the tasks of a range (`pto_range.h`) and publishes them, as if each were submitted by itself, in their order; in every run. `first`: the
/// number of the first one, after which those of the others follow; null: not wanted.
///
/// Fails with OUTSIDE_BUILDER, or a fault of the build, which ends the run: BUILD_RANGE_LENGTH, BUILD_CHAIN_VARIES, BUILD_CHAIN_LIMIT,
/// BUILD_NULL_POINTER, BUILD_FOREIGN_STRUCT, BUILD_UNKNOWN_TASK, and those of `pto_builder_add_task`. Thread safety: the builder's own thread.
///
/// # Safety
/// `tasks` is null, or has as many bytes as its `struct_size` says; its pointers are null, or hold what the counts say; `first` is null or
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_builder_submit_range(
    builder: *const OpaqueBuilder,
    tasks: *const RangeOfTasks,
    first: *mut i64,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the pointers, here and below.
        let submit =
            |runtime| unsafe { range::submit_task_range::<CurrentBuilder>(runtime, tasks) };
        let added = on(builder, submit)?;
        // SAFETY: as above.
        unsafe { put_if_wanted(first, "first", added) }
    })
}

/// Adds `tasks` tasks with tensors and publishes them, as if each were submitted by itself, in their order: the first one as `pto_builder_submit`
/// has it, the others with arguments that differ as the `variation_count` variations say (`pto_range.h`). `first`: the number of the first
/// one, after which those of the others follow; null: not wanted.
///
/// Fails as `pto_builder_submit`, and with BUILD_RANGE_LENGTH, BUILD_CHAIN_VARIES, BUILD_CHAIN_LIMIT, which end the run. Thread safety: the builder's own
/// thread.
///
/// # Safety
/// As `pto_builder_submit`; `variations` is null, or has as many entries, each of which has as many words as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_builder_submit_tensor_range(
    builder: *const OpaqueBuilder,
    task: *const StreamTask,
    args: *const StreamArg,
    arg_count: u32,
    after: *const i64,
    after_count: u32,
    tasks: u32,
    variations: *const StreamVariation,
    variation_count: u32,
    first: *mut i64,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the pointers, here and below.
        let added = on(builder, |runtime| unsafe {
            stream::submit_range::<CurrentBuilder>(
                runtime,
                task,
                args,
                arg_count,
                after,
                after_count,
                tasks,
                variations,
                variation_count,
            )
        })?;
        // SAFETY: as above.
        unsafe { put_if_wanted(first, "first", added) }
    })
}

/// Adds a task as `pto_builder_submit`, unpublished: edges to it can be added until `pto_builder_publish`.
///
/// Fails as `pto_builder_submit`; NULL_ARGUMENT when `number` is null. Thread safety: the builder's own thread.
///
/// # Safety
/// As `pto_builder_submit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_builder_add_tensor_task(
    builder: *const OpaqueBuilder,
    task: *const StreamTask,
    args: *const StreamArg,
    arg_count: u32,
    after: *const i64,
    after_count: u32,
    number: *mut i64,
) -> i32 {
    let body = || {
        // SAFETY: the caller vouches for the pointers, here and below.
        let added = on(builder, |runtime| unsafe {
            stream::add::<CurrentBuilder>(runtime, task, args, arg_count, after, after_count)
        })?;
        Ok(added)
    };
    // SAFETY: the caller vouches for the pointer.
    unsafe { answer_to(number, "number", body) }
}

/// Opens a scope; `mode` is PTO_DEPENDENCY_MODE_*. The tensors that are allocated in it end with it.
///
/// Fails with OUTSIDE_BUILDER, or BUILD_NOT_STREAMING, BUILD_NULL_POINTER, STREAM_SCOPE_MODE, STREAM_SCOPE_DEPTH, which end
/// the run. Thread safety: the builder's own thread.
///
/// # Safety
/// `scope` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_builder_open_scope(
    builder: *const OpaqueBuilder,
    mode: u32,
    scope: *mut StreamScope,
) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    let open = |runtime| unsafe { stream::open_scope::<CurrentBuilder>(runtime, mode, scope) };
    answer(|| on(builder, open).map(drop))
}

/// Closes the innermost scope.
///
/// Fails with OUTSIDE_BUILDER, or BUILD_NULL_POINTER, STREAM_SCOPE_NOT_OPEN, which end the run. Thread safety: the
/// builder's own thread.
///
/// # Safety
/// `scope` is null or readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_builder_close_scope(
    builder: *const OpaqueBuilder,
    scope: *const StreamScope,
) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    let close = |runtime| unsafe { stream::close_scope::<CurrentBuilder>(runtime, scope) };
    answer(|| on(builder, close).map(drop))
}

/// A tensor on the heap of the innermost scope; `element` is PTO_ELEMENT_TYPE_*. What is in it is not initialised.
///
/// Fails with OUTSIDE_BUILDER, or BUILD_NOT_STREAMING, BUILD_NULL_POINTER, STREAM_VIEW_*, STREAM_HEAP_RING, which end the
/// run. Thread safety: the builder's own thread.
///
/// # Safety
/// `shape` is null or has `rank` extents; `tensor` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_builder_alloc_tensor(
    builder: *const OpaqueBuilder,
    element: u32,
    shape: *const u32,
    rank: u32,
    tensor: *mut StreamTensor,
) -> i32 {
    // SAFETY: the caller vouches for the pointers.
    let alloc =
        |runtime| unsafe { stream::alloc::<CurrentBuilder>(runtime, element, shape, rank, tensor) };
    answer(|| on(builder, alloc).map(drop))
}

/// Waits until everything that writes the element has completed, and reads it into the low bits of `word`.
///
/// Fails with OUTSIDE_BUILDER, or BUILD_NOT_STREAMING, BUILD_NULL_POINTER, STREAM_VIEW_*, STREAM_STALE_TENSOR,
/// BUILD_GM_RANGE, STREAM_WAIT_FOREVER, which end the run. Thread safety: the builder's own thread.
///
/// # Safety
/// `tensor` is null or readable; `index` is null or has `rank` numbers; `word` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_builder_get(
    builder: *const OpaqueBuilder,
    tensor: *const StreamTensor,
    index: *const u32,
    rank: u32,
    word: *mut u64,
) -> i32 {
    // SAFETY: the caller vouches for the pointers.
    let get =
        |runtime| unsafe { stream::get::<CurrentBuilder>(runtime, tensor, index, rank, word) };
    answer(|| on(builder, get).map(drop))
}

/// Waits until everything that reads or writes the element has completed, and writes it.
///
/// Fails as `pto_builder_get`. Thread safety: the builder's own thread.
///
/// # Safety
/// `tensor` is null or readable; `index` is null or has `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_builder_set(
    builder: *const OpaqueBuilder,
    tensor: *const StreamTensor,
    index: *const u32,
    rank: u32,
    word: u64,
) -> i32 {
    // SAFETY: the caller vouches for the pointers.
    let set =
        |runtime| unsafe { stream::set::<CurrentBuilder>(runtime, tensor, index, rank, word) };
    answer(|| on(builder, set).map(drop))
}

/// Begins a recording: from here to `pto_builder_end_recording` tasks are written down instead of run. `shapes`: what the `count`
/// tensors look like that replays bind; `bound` gets as many tensors, to be used instead of them. Scalars that replays bind are
/// arguments PTO_ARG_KIND_BOUND_SCALAR, whose `scalar` is their number. Tasks have numbers of their own in a recording.
///
/// Fails with OUTSIDE_BUILDER, or BUILD_NOT_STREAMING, BUILD_NULL_POINTER, STREAM_RECORD_*, STREAM_VIEW_*, STREAM_SCOPE_DEPTH,
/// which end the run. Thread safety: the builder's own thread.
///
/// # Safety
/// `shapes` is null or has `count` tensors; `bound` is null or writable for as many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_builder_begin_recording(
    builder: *const OpaqueBuilder,
    shapes: *const StreamTensor,
    count: u32,
    bound: *mut StreamTensor,
) -> i32 {
    // SAFETY: the caller vouches for the pointers.
    let begin = |runtime| unsafe {
        stream::begin_recording::<CurrentBuilder>(runtime, shapes, count, bound)
    };
    answer(|| on(builder, begin).map(drop))
}

/// Ends the recording, which is good for this run.
///
/// Fails with OUTSIDE_BUILDER, or BUILD_NULL_POINTER, STREAM_NOT_RECORDING, STREAM_RECORDING_FULL, STREAM_SCOPE_NOT_OPEN, which end
/// the run. Thread safety: the builder's own thread.
///
/// # Safety
/// `recording` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_builder_end_recording(
    builder: *const OpaqueBuilder,
    recording: *mut StreamRecording,
) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    let end = |runtime| unsafe { stream::end_recording::<CurrentBuilder>(runtime, recording) };
    answer(|| on(builder, end).map(drop))
}

/// Adds and publishes the tasks of a recording, on these tensors and scalars; they have the next numbers of the build.
///
/// Fails with OUTSIDE_BUILDER, or BUILD_NULL_POINTER, STREAM_RECORDING_UNKNOWN, STREAM_REPLAY_*, STREAM_PREDICATE and the failures of
/// `pto_builder_submit`, which end the run. Thread safety: the builder's own thread.
///
/// # Safety
/// `recording` is null or readable; `tensors` and `scalars` are null or have as many entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_builder_replay(
    builder: *const OpaqueBuilder,
    recording: *const StreamRecording,
    tensors: *const StreamTensor,
    tensor_count: u32,
    scalars: *const u64,
    scalar_count: u32,
) -> i32 {
    // SAFETY: the caller vouches for the pointers.
    let replay = |runtime| unsafe {
        stream::replay::<CurrentBuilder>(
            runtime,
            recording,
            tensors,
            tensor_count,
            scalars,
            scalar_count,
        )
    };
    answer(|| on(builder, replay).map(drop))
}
