//! The functions of streaming builder programs (`bindings/include/pto_stream.h`): tasks with tensors, scopes, tensors of the
//! heap, elements.

mod block_shape;
mod pointers;
mod recordings;

use core::ffi::{c_int, c_void};

use heapless::Vec;
use pto_abi::limits::MAX_ARGS;
use pto_abi::{Fault, TaskId};
use pto_abi::{
    foreign::{
        ArgKind, STREAM_TASK_BYTES, StreamArg, StreamRecording, StreamScope, StreamTask,
        StreamTensor,
    },
    limits::MAX_RANK,
};
use pto_graph::{Arg, DependencyMode, ElementType, TensorTask, TensorView};

use self::block_shape::OwnedBlockShape;
use self::pointers::{place, value, values};
use crate::alias::Alias;
use crate::build::{Build, Finder, done, known};
use crate::calls;

pub use recordings::{begin_recording, end_recording, replay};

/// The version of [`StreamApi`].
pub const STREAM_API_VERSION: u32 = 1;
/// `sizeof(pto_stream_api)`.
const STREAM_API_BYTES: u32 = 96;
/// Explicit edges that go with a task; the others follow it.
const AFTER: usize = 32;
/// No later release has a larger one.
const MAX_STRUCT: u32 = 4096;

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
        }
    }

    /// The same table with another [`Read`]: of a platform where programs read the device's memory outside of a build too.
    #[must_use]
    pub const fn reading(self, read: Read) -> Self {
        Self { read, ..self }
    }
}

/// The fields of a task that this release knows; those that the caller's does not are zero.
///
/// # Safety
/// `task` is null, or has as many bytes as its `struct_size` says.
unsafe fn task_of(task: *const StreamTask) -> Result<StreamTask, Fault> {
    // SAFETY: the size comes first; as the caller says.
    let size = unsafe { value(task.cast::<u32>()) }?;
    let bytes = usize::try_from(size).unwrap_or(usize::MAX);
    if bytes < STREAM_TASK_BYTES || size > MAX_STRUCT {
        return Err(Fault::BUILD_FOREIGN_STRUCT);
    }
    // SAFETY: as the caller says.
    let given = unsafe { core::slice::from_raw_parts(task.cast::<u8>(), bytes) };
    let mut held = StreamTask::default();
    let (known, more) = given.split_at(bytes.min(size_of::<StreamTask>()));
    let fields = bytemuck::bytes_of_mut(&mut held);
    fields.iter_mut().zip(known).for_each(|(field, byte)| *field = *byte);
    let is_known = held.reserved == 0 && more.iter().all(|byte| *byte == 0);
    if is_known { Ok(held) } else { Err(Fault::BUILD_FOREIGN_STRUCT) }
}

/// The arguments of a task, as Rust has them; `views` are their tensors.
fn args_of<'v>(
    args: &[StreamArg],
    views: &'v Vec<TensorView<'static>, MAX_ARGS>,
    alias: Alias,
) -> Result<Vec<Arg<'v>, MAX_ARGS>, Fault> {
    let mut list = Vec::new();
    for (arg, view) in args.iter().zip(views) {
        let kind = ArgKind::try_from(arg.kind).map_err(|_| Fault::STREAM_ARG_KIND)?;
        if arg.reserved != 0 {
            return Err(Fault::BUILD_FOREIGN_STRUCT);
        }
        let arg = match kind {
            ArgKind::IN => Arg::In(view),
            ArgKind::OUT => Arg::Out(view),
            ArgKind::INOUT => Arg::InOut(view),
            ArgKind::NO_DEP => Arg::NoDep(view),
            ArgKind::BOUND_SCALAR => {
                Arg::BoundScalar(u32::try_from(arg.scalar).unwrap_or(u32::MAX))
            }
            _ => Arg::Scalar(alias.device(arg.scalar)),
        };
        list.push(arg).map_err(|_| Fault::BUILD_TOO_MANY_ARGS)?;
    }
    Ok(list)
}

/// A task whose predicate is of the device's memory.
fn of_device(task: &StreamTask, alias: Alias) -> StreamTask {
    StreamTask { element_of: alias.device_tensor(&task.element_of), ..*task }
}

/// Whether a task is published as it is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Publish {
    Now,
    Later,
}

/// What a task is made of.
struct NewTensorTask<'a> {
    task: StreamTask,
    args: &'a [StreamArg],
    after: &'a [i64],
    publish: Publish,
}

fn add_tensor_task(build: &mut Build<'_>, new: &NewTensorTask<'_>) -> Result<i64, Fault> {
    let (func_id, kind) = known(new.task.func_id.into(), new.task.core_type.into())?;
    let alias = build.alias();
    let mut views: Vec<TensorView<'static>, MAX_ARGS> = Vec::new();
    for arg in new.args {
        let tensor = alias.device_tensor(&arg.tensor);
        views.push(TensorView::from(&tensor)).map_err(|_| Fault::BUILD_TOO_MANY_ARGS)?;
    }
    let args = args_of(new.args, &views, alias)?;
    let (first, others) = new.after.split_at(new.after.len().min(AFTER));
    let mut after: Vec<TaskId, AFTER> = Vec::new();
    for producer in first {
        // `first` has no more than fit.
        let _: Result<(), TaskId> = after.push(build.id(*producer)?);
    }
    let shape = OwnedBlockShape::of(&of_device(&new.task, alias))?;
    let task = shape.give(TensorTask::new(func_id, kind, &args).after(&after));
    let id = build.stream()?.add_tensor_task(&task)?;
    let number = build.note(id)?;
    for producer in others {
        build.add_edge(*producer, number)?;
    }
    if new.publish == Publish::Now {
        build.publish(number)?;
    }
    Ok(number)
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
            if usize::try_from(args.1).map_or(true, |count| count > MAX_ARGS) {
                return Err(Fault::BUILD_TOO_MANY_ARGS);
            }
            // SAFETY: as the caller says, here and below.
            let task = unsafe { task_of(task) }?;
            // SAFETY: as above.
            let args = unsafe { values(args.0, args.1) }?;
            // SAFETY: as above.
            let after = unsafe { values(after.0, after.1) }?;
            add_tensor_task(build, &NewTensorTask { task, args, after, publish })
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
        let to = place(scope)?;
        let opened = build.stream()?.open_scope(DependencyMode::alleged(mode)?)?;
        // SAFETY: as the caller says; `place` looked at it.
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
        let to = place(tensor)?;
        // SAFETY: as the caller says.
        let shape = unsafe { extents(shape, rank) }?;
        let element = u8::try_from(element).ok().and_then(|one| ElementType::try_from(one).ok());
        let element = element.ok_or(Fault::STREAM_VIEW_ELEMENT)?;
        let view = build.stream()?.alloc(element, shape)?;
        let seen = build.alias().seen_tensor(&StreamTensor::from(&view));
        // SAFETY: as the caller says; `place` looked at it.
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
        let to = place(word)?;
        // SAFETY: as the caller says, here and below.
        let tensor = unsafe { value(tensor) }?;
        // SAFETY: as above.
        let index = unsafe { extents(index, rank) }?;
        let alias = build.alias();
        let view = TensorView::from(&alias.device_tensor(&tensor));
        let held = build.stream()?.get(&view, index)?;
        // SAFETY: as the caller says; `place` looked at it.
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
