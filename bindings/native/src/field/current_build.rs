//! The graph that a builder plugin builds: found by thread and `Runtime` object while the plugin is on the stack.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use crate::foreign::{Alias, Build, Finder};
use pto_host::graph::{BuildError, HostedBuilder};

use crate::guard::called_back;

/// The graph of a plugin that is on the stack.
struct CurrentBuild<'g> {
    runtime: *const c_void,
    build: Build<'g>,
}

thread_local! {
    static CURRENT: Cell<*mut CurrentBuild<'static>> = const { Cell::new(std::ptr::null_mut()) };
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
    let mut current = CurrentBuild { runtime, build: Build::new(graph).seeing(alias) };
    let before = CURRENT.replace((&raw mut current).cast());
    let returned = crate::device::building(program);
    CURRENT.set(before);
    match (current.build.fault(), returned) {
        (None, Err(error)) => Err(error),
        (_, returned) => current.build.end(returned.unwrap_or(-1)),
    }
}

/// The build on this thread, if it is that of `runtime`.
fn current<'s>(runtime: *const c_void) -> Option<&'s mut CurrentBuild<'static>> {
    // SAFETY: the pointer is null, or `with` is below on the stack of this thread, and its variable lives; nothing else has
    // a reference to it, as the plugin's calls follow one another.
    unsafe { CURRENT.get().as_mut() }.filter(|current| std::ptr::eq(current.runtime, runtime))
}

/// Whether the plugin of `runtime` is on the stack of this thread.
pub(super) fn is_building(runtime: *const c_void) -> bool {
    current(runtime).is_some()
}

/// How many tasks the plugin of `runtime` has added; `None`: it is not on the stack.
pub(super) fn task_count(runtime: *const c_void) -> Option<c_int> {
    current(runtime).map(|current| c_int::try_from(current.build.tasks()).unwrap_or(c_int::MAX))
}

impl Finder for Plugin {
    fn find<R>(runtime: *mut c_void, failed: R, act: impl FnOnce(&mut Build<'_>) -> R) -> R {
        let found = called_back(None, || current(runtime).map(|current| act(&mut current.build)));
        found.unwrap_or(failed)
    }
}
