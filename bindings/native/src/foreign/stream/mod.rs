//! The functions of streaming builder programs (`bindings/include/pto_stream.h`): tasks with tensors, ranges of them, scopes, tensors of the
//! heap, elements.

mod block_shape;
mod ranges;
mod recordings;
mod tasks;

use core::ffi::{c_int, c_void};

use pto_abi::Fault;
use pto_abi::{
    foreign::{StreamArg, StreamRecording, StreamScope, StreamTask, StreamTensor},
    limits::MAX_RANK,
};
use pto_graph::{DependencyMode, ElementType, Publish, TensorView};

use self::tasks::{add_tensor_task, stated};
use crate::foreign::build::{Finder, done};
use crate::foreign::calls;
use crate::foreign::pointers::{result_pointer, value, values};
use crate::foreign::range::{SubmitTaskRange, submit_task_range};

pub use crate::foreign::range::{RANGE_TASKS, StreamVariation};
pub use ranges::{SubmitRange, submit_range};
pub use recordings::{begin_recording, end_recording, replay};

/// The version of [`StreamApi`].
pub const STREAM_API_VERSION: u32 = 1;
/// `sizeof(pto_stream_api)`.
const STREAM_API_BYTES: u32 = 112;
/// `struct pto_stream_api`: later releases append functions.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StreamApi {
    /// Size of this table.
    pub struct_size: u32,
    /// [`STREAM_API_VERSION`].
    pub version: u32,
    /// Adds and publishes a task.
    pub submit: Submit,
    /// Adds a task, unpublished.
    pub add: Submit,
    /// Opens a scope.
    pub open_scope: unsafe extern "C" fn(*mut c_void, u32, *mut StreamScope) -> c_int,
    /// Closes it.
    pub close_scope: unsafe extern "C" fn(*mut c_void, *const StreamScope) -> c_int,
    /// A tensor on the heap.
    pub alloc: unsafe extern "C" fn(*mut c_void, u32, *const u32, u32, *mut StreamTensor) -> c_int,
    /// Reads an element.
    pub get:
        unsafe extern "C" fn(*mut c_void, *const StreamTensor, *const u32, u32, *mut u64) -> c_int,
    /// Writes an element.
    pub set: unsafe extern "C" fn(*mut c_void, *const StreamTensor, *const u32, u32, u64) -> c_int,
    /// Begins a recording.
    pub begin_recording:
        unsafe extern "C" fn(*mut c_void, *const StreamTensor, u32, *mut StreamTensor) -> c_int,
    /// Ends it.
    pub end_recording: unsafe extern "C" fn(*mut c_void, *mut StreamRecording) -> c_int,
    /// Replays it.
    pub replay: Replay,
    /// Reads bytes of the device's memory, in every run.
    pub read: Read,
    /// Submits a range of tasks.
    pub submit_range: SubmitRange,
    /// Submits a range of tasks without tensors, in every run.
    pub submit_task_range: SubmitTaskRange,
}

/// Reads bytes of the device's memory: runtime, address, where they go and how many. 0, or -1.
pub type Read = unsafe extern "C" fn(*mut c_void, u64, *mut c_void, u64) -> c_int;

/// Replays a recording: runtime, recording, tensors and how many, scalars and how many. 0, or -1.
pub type Replay = unsafe extern "C" fn(
    *mut c_void,
    *const StreamRecording,
    *const StreamTensor,
    u32,
    *const u64,
    u32,
) -> c_int;

/// Adds a task: runtime, task, arguments and how many, tasks that it waits for and how many. Its number, or -1.
pub type Submit = unsafe extern "C" fn(
    *mut c_void,
    *const StreamTask,
    *const StreamArg,
    u32,
    *const i64,
    u32,
) -> i64;

// `pto_stream.h` asserts the same numbers.
const _: () = {
    assert!(size_of::<StreamApi>() == STREAM_API_BYTES as usize);
    assert!(core::mem::offset_of!(StreamApi, submit) == 8);
    assert!(core::mem::offset_of!(StreamApi, open_scope) == 24);
    assert!(core::mem::offset_of!(StreamApi, set) == 56);
    assert!(core::mem::offset_of!(StreamApi, replay) == 80);
    assert!(core::mem::offset_of!(StreamApi, read) == 88);
    assert!(core::mem::offset_of!(StreamApi, submit_range) == 96);
    assert!(core::mem::offset_of!(StreamApi, submit_task_range) == 104);
};

impl StreamApi {
    /// The table for a platform.
    #[must_use]
    pub const fn of<F: Finder>() -> Self {
        Self {
            struct_size: STREAM_API_BYTES,
            version: STREAM_API_VERSION,
            submit: submit::<F>,
            add: add::<F>,
            open_scope: open_scope::<F>,
            close_scope: close_scope::<F>,
            alloc: alloc::<F>,
            get: get::<F>,
            set: set::<F>,
            begin_recording: begin_recording::<F>,
            end_recording: end_recording::<F>,
            replay: replay::<F>,
            read: calls::read::<F>,
            submit_range: submit_range::<F>,
            submit_task_range: submit_task_range::<F>,
        }
    }

    /// The same table with another [`Read`]: of a platform where programs read the device's memory outside of a build too.
    #[must_use]
    pub const fn reading(self, read: Read) -> Self {
        Self { read, ..self }
    }
}

/// # Safety
/// As [`Submit`]: the pointers are null, or hold what the counts and `struct_size` say.
unsafe fn add_by<F: Finder>(
    runtime: *mut c_void,
    publish: Publish,
    task: *const StreamTask,
    args: (*const StreamArg, u32),
    after: (*const i64, u32),
) -> i64 {
    F::find(runtime, -1, |build| {
        let added = build.call(|build| {
            // SAFETY: as the caller says.
            let new = unsafe { stated(publish, task, args, after) }?;
            add_tensor_task(build, &new)
        });
        added.unwrap_or(-1)
    })
}

/// `pto_stream_submit`: adds a task and publishes it; its number, or -1.
///
/// # Safety
/// The pointers are null, or hold what the counts and `struct_size` say.
pub unsafe extern "C" fn submit<F: Finder>(
    runtime: *mut c_void,
    task: *const StreamTask,
    args: *const StreamArg,
    arg_count: u32,
    after: *const i64,
    after_count: u32,
) -> i64 {
    // SAFETY: as the caller says.
    unsafe { add_by::<F>(runtime, Publish::Now, task, (args, arg_count), (after, after_count)) }
}

/// `pto_stream_add`: adds a task, unpublished; its number, or -1.
///
/// # Safety
/// As [`submit`].
pub unsafe extern "C" fn add<F: Finder>(
    runtime: *mut c_void,
    task: *const StreamTask,
    args: *const StreamArg,
    arg_count: u32,
    after: *const i64,
    after_count: u32,
) -> i64 {
    // SAFETY: as the caller says.
    unsafe { add_by::<F>(runtime, Publish::Later, task, (args, arg_count), (after, after_count)) }
}

/// `pto_stream_open_scope`.
///
/// # Safety
/// `scope` is null, or writable.
pub unsafe extern "C" fn open_scope<F: Finder>(
    runtime: *mut c_void,
    mode: u32,
    scope: *mut StreamScope,
) -> c_int {
    done::<F>(runtime, |build| {
        let to = result_pointer(scope)?;
        let opened = build.stream()?.open_scope(DependencyMode::alleged(mode)?)?;
        // SAFETY: as the caller says; `result_pointer` looked at it.
        unsafe { to.write(opened.into()) };
        Ok(())
    })
}

/// `pto_stream_close_scope`.
///
/// # Safety
/// `scope` is null, or readable.
pub unsafe extern "C" fn close_scope<F: Finder>(
    runtime: *mut c_void,
    scope: *const StreamScope,
) -> c_int {
    done::<F>(runtime, |build| {
        // SAFETY: as the caller says.
        let scope = unsafe { value(scope) }?;
        build.stream()?.close_scope(scope.into())
    })
}

/// `pto_stream_alloc`.
///
/// # Safety
/// `shape` is null, or has `rank` extents; `tensor` is null, or writable.
pub unsafe extern "C" fn alloc<F: Finder>(
    runtime: *mut c_void,
    element: u32,
    shape: *const u32,
    rank: u32,
    tensor: *mut StreamTensor,
) -> c_int {
    done::<F>(runtime, |build| {
        let to = result_pointer(tensor)?;
        // SAFETY: as the caller says.
        let shape = unsafe { extents(shape, rank) }?;
        let element = u8::try_from(element).ok().and_then(|one| ElementType::try_from(one).ok());
        let element = element.ok_or(Fault::STREAM_VIEW_ELEMENT)?;
        let view = build.stream()?.alloc(element, shape)?;
        let seen = build.alias().seen_tensor(&StreamTensor::from(&view));
        // SAFETY: as the caller says; `result_pointer` looked at it.
        unsafe { to.write(seen) };
        Ok(())
    })
}

/// # Safety
/// `from` is null, or has `rank` numbers.
unsafe fn extents<'a>(from: *const u32, rank: u32) -> Result<&'a [u32], Fault> {
    if usize::try_from(rank).map_or(true, |rank| rank > MAX_RANK) {
        return Err(Fault::STREAM_VIEW_RANK);
    }
    // SAFETY: as the caller says.
    unsafe { values(from, rank) }
}

/// `pto_stream_get`.
///
/// # Safety
/// `tensor` is null, or readable; `index` is null, or has `rank` numbers; `word` is null, or writable.
pub unsafe extern "C" fn get<F: Finder>(
    runtime: *mut c_void,
    tensor: *const StreamTensor,
    index: *const u32,
    rank: u32,
    word: *mut u64,
) -> c_int {
    done::<F>(runtime, |build| {
        let to = result_pointer(word)?;
        // SAFETY: as the caller says, here and below.
        let tensor = unsafe { value(tensor) }?;
        // SAFETY: as above.
        let index = unsafe { extents(index, rank) }?;
        let alias = build.alias();
        let view = TensorView::from(&alias.device_tensor(&tensor));
        let held = build.stream()?.get(&view, index)?;
        // SAFETY: as the caller says; `result_pointer` looked at it.
        unsafe { to.write(alias.seen(held)) };
        Ok(())
    })
}

/// `pto_stream_set`.
///
/// # Safety
/// `tensor` is null, or readable; `index` is null, or has `rank` numbers.
pub unsafe extern "C" fn set<F: Finder>(
    runtime: *mut c_void,
    tensor: *const StreamTensor,
    index: *const u32,
    rank: u32,
    word: u64,
) -> c_int {
    done::<F>(runtime, |build| {
        // SAFETY: as the caller says, here and below.
        let tensor = unsafe { value(tensor) }?;
        // SAFETY: as above.
        let index = unsafe { extents(index, rank) }?;
        let alias = build.alias();
        let view = TensorView::from(&alias.device_tensor(&tensor));
        build.stream()?.set(&view, index, alias.device(word))
    })
}
