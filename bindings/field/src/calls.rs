//! The functions of `pto_field_ops`: each finds the program that runs on this thread, and lets no panic through.

use std::cell::Cell;
use std::ffi::c_char;

use pto_native::called_back;

use crate::build::{BuildContext, LogLine, describe, text_of};
use crate::codes::ErrorCode;
use crate::submit::slice;
use crate::wire::{ChipTensor, NO_TASK, Ops, Outputs, SourceLocation, Task, TaskArgument};

thread_local! {
    static CURRENT: Cell<*mut BuildContext<'static>> = const { Cell::new(std::ptr::null_mut()) };
}

/// The table that orchestrations get.
pub(crate) static OPS: Ops = Ops {
    version: 2,
    log_level: 3,
    submit,
    alloc,
    scope_begin,
    scope_end,
    get,
    set,
    available,
    is_fatal,
    fatal,
    log,
    graph_begin,
    graph_end,
    ticks,
};

/// Calls `program`. The functions that the program calls act on `context`.
pub(crate) fn with<R>(context: &mut BuildContext<'_>, program: impl FnOnce() -> R) -> R {
    let is_listed = context.build.listed_on.is_some();
    let context: *mut BuildContext<'_> = context;
    let before = CURRENT.replace(context.cast());
    let result = if is_listed { program() } else { pto_native::building(program) };
    CURRENT.set(before);
    result
}

/// Acts on the context of this thread. Returns `nothing` if no program runs on this thread.
fn on<R>(nothing: R, act: impl FnOnce(&mut BuildContext<'_>) -> R) -> R
where
    R: Copy,
{
    called_back(nothing, || {
        // SAFETY: null, or `with` is below on the stack of this thread; calls follow one another, so that there is no other
        // reference to it.
        match unsafe { CURRENT.get().as_mut() } {
            Some(context) => act(context),
            None => nothing,
        }
    })
}

/// # Safety
/// The header passes valid pointers, here and below.
unsafe extern "C" fn submit(task: *const Task, outputs: *mut Outputs) {
    // SAFETY: the caller vouches for the pointer.
    let task = unsafe { &*task };
    let result = on((NO_TASK, std::ptr::null(), 0), |context| {
        let outputs = context.submit(task);
        (outputs.task, outputs.tensors, outputs.count)
    });
    // SAFETY: as above.
    unsafe { outputs.write(Outputs { task: result.0, tensors: result.1, count: result.2 }) };
}

/// # Safety
/// As `submit`.
unsafe extern "C" fn alloc(
    infos: *const TaskArgument,
    count: u32,
    location: SourceLocation,
    outputs: *mut Outputs,
) {
    // SAFETY: the caller vouches for the pointer.
    let infos = unsafe { slice(infos, count) };
    let result = on((NO_TASK, std::ptr::null(), 0), |context| {
        let outputs = context.alloc(infos, &location);
        (outputs.task, outputs.tensors, outputs.count)
    });
    // SAFETY: as above.
    unsafe { outputs.write(Outputs { task: result.0, tensors: result.1, count: result.2 }) };
}

unsafe extern "C" fn scope_begin(mode: i32, location: SourceLocation) {
    on((), |context| context.open_scope(mode != 0, &location));
}

unsafe extern "C" fn scope_end() {
    on((), |context| context.close_scope());
}

/// # Safety
/// As `submit`.
unsafe extern "C" fn get(
    tensor: *const ChipTensor,
    ndims: u32,
    indices: *const u32,
    location: SourceLocation,
) -> u64 {
    // SAFETY: the caller vouches for the pointers.
    let tensor = unsafe { &*tensor };
    // SAFETY: as above.
    let indices = unsafe { slice(indices, ndims) };
    on(0, |context| context.get(tensor, indices, &location))
}

/// # Safety
/// As `submit`.
unsafe extern "C" fn set(
    tensor: *const ChipTensor,
    ndims: u32,
    indices: *const u32,
    value: u64,
    location: SourceLocation,
) {
    // SAFETY: the caller vouches for the pointers.
    let tensor = unsafe { &*tensor };
    // SAFETY: as above.
    let indices = unsafe { slice(indices, ndims) };
    on((), |context| context.set(tensor, indices, value, &location));
}

unsafe extern "C" fn available(kind: i32) -> i32 {
    on(0, |context| {
        let [cubes, vectors] = context.build.cores;
        let clusters = if cubes == 0 { vectors / 2 } else { cubes };
        i32::try_from(if kind == 0 { clusters } else { vectors }).unwrap_or(i32::MAX)
    })
}

unsafe extern "C" fn is_fatal() -> i32 {
    on(1, |context| i32::from(context.build.is_over()))
}

/// # Safety
/// As `submit`.
unsafe extern "C" fn fatal(code: i32, text: *const c_char, location: SourceLocation) {
    // SAFETY: the caller vouches for the pointer.
    let text = unsafe { text_of(text) };
    on((), |context| {
        let code = u32::try_from(code).ok().filter(|code| *code != 0);
        let code = code.map_or(ErrorCode::EXPLICIT_ORCH_FATAL, ErrorCode);
        context.build.fail(code, format!("{}: {text}", describe(&location)));
    });
}

/// # Safety
/// As `submit`.
unsafe extern "C" fn log(level: i32, text: *const c_char, location: SourceLocation) {
    // SAFETY: the caller vouches for the pointer.
    let text = unsafe { text_of(text) };
    let line = Cell::new(Some(LogLine { level, text, location: describe(&location) }));
    on((), |context| context.build.log.extend(line.take()));
}

/// # Safety
/// As `submit`.
unsafe extern "C" fn graph_begin(key: u64, boundary: *const Task) -> u64 {
    // SAFETY: the caller vouches for the pointer.
    let boundary = unsafe { &*boundary };
    // SAFETY: as above.
    let scalars = unsafe { slice(boundary.scalars, boundary.scalar_count) };
    on(0, |context| context.build.recordings.begin(key, scalars))
}

unsafe extern "C" fn graph_end(key: u64) -> u64 {
    on(NO_TASK, |context| {
        for note in context.build.recordings.end(key) {
            context.build.note(|| note);
        }
        context.build.last_id
    })
}

/// The clock of the control core, in ticks of 20 ns.
unsafe extern "C" fn ticks() -> u64 {
    on(0, |context| context.build.shared.now() / 20)
}
