//! The functions behind `pto_field_ops`: each finds the program that runs on this thread, and lets no panic through.

use std::cell::Cell;
use std::ffi::c_char;

use pto_native::called_back;

use crate::build::{LogLine, Seat, describe, text_of};
use crate::codes::Code;
use crate::submit::slice;
use crate::wire::{Argument, ChipTensor, NO_TASK, Ops, Outputs, Place, Task};

thread_local! {
    static SEAT: Cell<*mut Seat<'static>> = const { Cell::new(std::ptr::null_mut()) };
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

/// Calls `program`; what it calls goes to `seat`.
pub(crate) fn with<R>(seat: &mut Seat<'_>, program: impl FnOnce() -> R) -> R {
    let is_listed = seat.build.is_listed;
    let seat: *mut Seat<'_> = seat;
    let before = SEAT.replace(seat.cast());
    let result = if is_listed { program() } else { pto_native::building(program) };
    SEAT.set(before);
    result
}

/// Acts on the seat of this thread; `nothing` where no program runs on it.
fn on<R>(nothing: R, act: impl FnOnce(&mut Seat<'_>) -> R) -> R
where
    R: Copy,
{
    called_back(nothing, || {
        // SAFETY: null, or `with` is below on the stack of this thread; calls follow one another, so that nobody else has a
        // reference to it.
        match unsafe { SEAT.get().as_mut() } {
            Some(seat) => act(seat),
            None => nothing,
        }
    })
}

/// # Safety
/// The header passes valid pointers, here and below.
unsafe extern "C" fn submit(task: *const Task, outputs: *mut Outputs) {
    // SAFETY: the caller vouches for the pointer.
    let task = unsafe { &*task };
    let result = on((NO_TASK, std::ptr::null(), 0), |seat| {
        let outputs = seat.submit(task);
        (outputs.task, outputs.tensors, outputs.count)
    });
    // SAFETY: as above.
    unsafe { outputs.write(Outputs { task: result.0, tensors: result.1, count: result.2 }) };
}

/// # Safety
/// As `submit`.
unsafe extern "C" fn alloc(
    infos: *const Argument,
    count: u32,
    place: Place,
    outputs: *mut Outputs,
) {
    // SAFETY: the caller vouches for the pointer.
    let infos = unsafe { slice(infos, count) };
    let result = on((NO_TASK, std::ptr::null(), 0), |seat| {
        let outputs = seat.alloc(infos, &place);
        (outputs.task, outputs.tensors, outputs.count)
    });
    // SAFETY: as above.
    unsafe { outputs.write(Outputs { task: result.0, tensors: result.1, count: result.2 }) };
}

unsafe extern "C" fn scope_begin(mode: i32, place: Place) {
    on((), |seat| seat.open_scope(mode != 0, &place));
}

unsafe extern "C" fn scope_end() {
    on((), |seat| seat.close_scope());
}

/// # Safety
/// As `submit`.
unsafe extern "C" fn get(
    tensor: *const ChipTensor,
    ndims: u32,
    indices: *const u32,
    place: Place,
) -> u64 {
    // SAFETY: the caller vouches for the pointers.
    let tensor = unsafe { &*tensor };
    // SAFETY: as above.
    let indices = unsafe { slice(indices, ndims) };
    on(0, |seat| seat.get(tensor, indices, &place))
}

/// # Safety
/// As `submit`.
unsafe extern "C" fn set(
    tensor: *const ChipTensor,
    ndims: u32,
    indices: *const u32,
    value: u64,
    place: Place,
) {
    // SAFETY: the caller vouches for the pointers.
    let tensor = unsafe { &*tensor };
    // SAFETY: as above.
    let indices = unsafe { slice(indices, ndims) };
    on((), |seat| seat.set(tensor, indices, value, &place));
}

unsafe extern "C" fn available(kind: i32) -> i32 {
    on(0, |seat| {
        let [cubes, vectors] = seat.build.cores;
        let clusters = if cubes == 0 { vectors / 2 } else { cubes };
        i32::try_from(if kind == 0 { clusters } else { vectors }).unwrap_or(i32::MAX)
    })
}

unsafe extern "C" fn is_fatal() -> i32 {
    on(1, |seat| i32::from(seat.build.is_over()))
}

/// # Safety
/// As `submit`.
unsafe extern "C" fn fatal(code: i32, text: *const c_char, place: Place) {
    // SAFETY: the caller vouches for the pointer.
    let text = unsafe { text_of(text) };
    on((), |seat| {
        let code = u32::try_from(code).ok().filter(|code| *code != 0);
        let code = code.map_or(Code::EXPLICIT_ORCH_FATAL, Code);
        seat.build.fail(code, format!("{}: {text}", describe(&place)));
    });
}

/// # Safety
/// As `submit`.
unsafe extern "C" fn log(level: i32, text: *const c_char, place: Place) {
    // SAFETY: the caller vouches for the pointer.
    let text = unsafe { text_of(text) };
    let line = Cell::new(Some(LogLine { level, text, place: describe(&place) }));
    on((), |seat| seat.build.log.extend(line.take()));
}

/// # Safety
/// As `submit`.
unsafe extern "C" fn graph_begin(key: u64, boundary: *const Task) -> u64 {
    // SAFETY: the caller vouches for the pointer.
    let boundary = unsafe { &*boundary };
    // SAFETY: as above.
    let scalars = unsafe { slice(boundary.scalars, boundary.scalar_count) };
    on(0, |seat| seat.build.recordings.begin(key, scalars))
}

unsafe extern "C" fn graph_end(key: u64) -> u64 {
    on(NO_TASK, |seat| {
        for note in seat.build.recordings.end(key) {
            seat.build.note(|| note);
        }
        seat.build.last_id
    })
}

/// The clock of the control core, in ticks of 20 ns.
unsafe extern "C" fn ticks() -> u64 {
    on(0, |seat| seat.build.shared.now() / 20)
}
