//! The graph that a builder plugin builds: found by thread and `Runtime` object while the plugin is on the stack.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use crate::foreign::{Alias, Build, Finder};
use pto_host::graph::{BuildError, HostedBuilder};

use crate::guard::called_back;

/// A plugin that is on the stack.
struct Seat<'g> {
    runtime: *const c_void,
    build: Build<'g>,
}

thread_local! {
    static SEAT: Cell<*mut Seat<'static>> = const { Cell::new(std::ptr::null_mut()) };
}

/// The plugin's functions find its build on its own thread.
pub(super) struct Plugin;

/// Calls `program`, the plugin of `runtime`; what it adds goes to `graph`. `program` gives the plugin's return value.
pub(super) fn with(
    runtime: *const c_void,
    graph: &mut dyn HostedBuilder,
    alias: Alias,
    program: impl FnOnce() -> Result<c_int, BuildError>,
) -> Result<(), BuildError> {
    let mut seat = Seat { runtime, build: Build::new(graph).seeing(alias) };
    let before = SEAT.replace((&raw mut seat).cast());
    let returned = crate::device::building(program);
    SEAT.set(before);
    match (seat.build.fault(), returned) {
        (None, Err(error)) => Err(error),
        (_, returned) => seat.build.end(returned.unwrap_or(-1)),
    }
}

/// The seat of this thread, if it is that of `runtime`.
fn seat<'s>(runtime: *const c_void) -> Option<&'s mut Seat<'static>> {
    // SAFETY: the pointer is null, or `with` is below on the stack of this thread, and its seat lives; nobody else has
    // a reference to it, as the plugin's calls follow one another.
    unsafe { SEAT.get().as_mut() }.filter(|seat| std::ptr::eq(seat.runtime, runtime))
}

/// Whether the plugin of `runtime` is on the stack of this thread.
pub(super) fn is_building(runtime: *const c_void) -> bool {
    seat(runtime).is_some()
}

/// How many tasks the plugin of `runtime` has added; `None`: it is not on the stack.
pub(super) fn task_count(runtime: *const c_void) -> Option<c_int> {
    seat(runtime).map(|seat| c_int::try_from(seat.build.tasks()).unwrap_or(c_int::MAX))
}

impl Finder for Plugin {
    fn find<R>(runtime: *mut c_void, failed: R, act: impl FnOnce(&mut Build<'_>) -> R) -> R {
        let found = called_back(None, || seat(runtime).map(|seat| act(&mut seat.build)));
        found.unwrap_or(failed)
    }
}
