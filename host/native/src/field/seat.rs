//! The graph that a builder plugin builds: found by thread and `Runtime` object while the plugin is on the stack.

use std::cell::Cell;
use std::ffi::c_int;

use pto_host::abi::graph::{BuildError, GraphBuilder};
use pto_host::abi::{Fault, GmAddr, TaskId, TaskSpec};

use super::calls::words;
use super::object::RuntimeObject;
use crate::checked;
use crate::guard::called_back;

/// A plugin that is on the stack.
struct Seat<'g> {
    runtime: *const RuntimeObject,
    graph: &'g mut dyn GraphBuilder,
    generation: u32,
    tasks: c_int,
    fault: Option<Fault>,
}

thread_local! {
    static SEAT: Cell<*mut Seat<'static>> = const { Cell::new(std::ptr::null_mut()) };
}

/// Calls `build`, the plugin of `runtime`; what it adds goes to `graph`. `build` gives the plugin's return value.
pub(super) fn with(
    runtime: *const RuntimeObject,
    graph: &mut dyn GraphBuilder,
    build: impl FnOnce() -> Result<c_int, BuildError>,
) -> Result<(), BuildError> {
    let mut seat = Seat { runtime, graph, generation: 0, tasks: 0, fault: None };
    let before = SEAT.replace((&raw mut seat).cast());
    let returned = crate::building(build);
    SEAT.set(before);
    match (seat.fault, returned) {
        (Some(fault), _) => Err(fault.into()),
        (None, Err(error)) => Err(error),
        (None, Ok(0)) => Ok(()),
        (None, Ok(code)) => Err(BuildError::Failed(code)),
    }
}

/// The seat of this thread, if it is that of `runtime`.
fn seat<'s>(runtime: *const RuntimeObject) -> Option<&'s mut Seat<'static>> {
    // SAFETY: the pointer is null, or `with` is below on the stack of this thread, and its seat lives; nobody else has
    // a reference to it, as the plugin's calls follow one another.
    unsafe { SEAT.get().as_mut() }.filter(|seat| std::ptr::eq(seat.runtime, runtime))
}

/// Whether the plugin of `runtime` is on the stack of this thread.
pub(super) fn is_building(runtime: *const RuntimeObject) -> bool {
    seat(runtime).is_some()
}

/// How many tasks the plugin of `runtime` has added; `None`: it is not on the stack.
pub(super) fn task_count(runtime: *const RuntimeObject) -> Option<c_int> {
    seat(runtime).map(|seat| seat.tasks)
}

/// Acts on the graph, unless an earlier call failed.
fn on(
    runtime: *const RuntimeObject,
    act: impl FnOnce(&mut Seat<'static>) -> Result<c_int, Fault>,
) -> c_int {
    called_back(-1, || {
        let Some(seat) = seat(runtime).filter(|seat| seat.fault.is_none()) else { return -1 };
        act(seat).unwrap_or_else(|fault| {
            seat.fault = Some(fault);
            -1
        })
    })
}

impl Seat<'_> {
    fn task(&self, task: c_int) -> Result<TaskId, Fault> {
        let slot = u32::try_from(task).ok().filter(|_| task < self.tasks);
        let slot = slot.ok_or(Fault::BUILD_UNKNOWN_TASK)?;
        Ok(TaskId { slot, generation: self.generation })
    }
}

/// `AicpuBuildApi::add_task`.
///
/// # Safety
/// `args` is null, or has `num_args` words.
pub(super) unsafe extern "C" fn add_task(
    runtime: *mut RuntimeObject,
    args: *const u64,
    num_args: c_int,
    func_id: c_int,
    core_type: c_int,
    function_bin_addr: u64,
) -> c_int {
    on(runtime, |seat| {
        let fault_of = |failure: crate::Failure| Fault::from_code(failure.code);
        let (func_id, kind) = checked(func_id.into(), core_type.into())
            .map_err(|failure| fault_of(failure).unwrap_or(Fault::BUILD_FAILED))?;
        // SAFETY: the caller vouches for the words.
        let args = unsafe { words(args, num_args) }.map_err(|_| Fault::BUILD_TOO_MANY_ARGS)?;
        let kernel = GmAddr(function_bin_addr);
        let id = seat.graph.add_task(TaskSpec { func_id, kind, args, kernel })?;
        let number = c_int::try_from(id.slot).map_err(|_| Fault::BUILD_TASKS_FULL)?;
        (seat.generation, seat.tasks) = (id.generation, number + 1);
        Ok(number)
    })
}

/// `AicpuBuildApi::add_successor_conditional`.
///
/// # Safety
/// None needed: the object is compared, not followed.
pub(super) unsafe extern "C" fn add_successor_conditional(
    runtime: *mut RuntimeObject,
    from: c_int,
    to: c_int,
) {
    on(runtime, |seat| {
        let (from, to) = (seat.task(from)?, seat.task(to)?);
        seat.graph.add_edge(from, to).map(|_| 0)
    });
}

/// `AicpuBuildApi::publish_task`.
///
/// # Safety
/// None needed: the object is compared, not followed.
pub(super) unsafe extern "C" fn publish_task(runtime: *mut RuntimeObject, task: c_int) {
    on(runtime, |seat| {
        let task = seat.task(task)?;
        seat.graph.publish(task).map(|()| 0)
    });
}
