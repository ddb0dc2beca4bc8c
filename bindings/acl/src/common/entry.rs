//! What every entry point does: no panic leaves it, what fails is kept for the thread, and a process that forked is told so.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};

use super::refusal::{Answer, Refusal};
use super::thread;
use super::{checks, codes, faults, log};

/// Set in a child of `fork`: the threads of the devices are not there.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Entry points that return an error code.
macro_rules! api {
    ($($(#[$attribute:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        $(#[$attribute])*
        // SAFETY: the name is that of the interface, and no other function here has it.
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $type),*) -> i32 {
            $crate::common::entry::answer(stringify!($name), move || $body)
        }
    )*};
}
pub(crate) use api;

/// Entry points that give a pointer or a number instead of a code. What they give where they fail stands behind the type.
macro_rules! values {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty, $otherwise:expr, $body:block)*) => {$(
        // SAFETY: the name is that of the interface, and no other function here has it.
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $type),*) -> $result {
            $crate::common::entry::give(stringify!($name), $otherwise, move || $body)
        }
    )*};
}
pub(crate) use values;

/// Runs a call.
pub(crate) fn answer(call: &'static str, act: impl FnOnce() -> Answer) -> i32 {
    checks::enter(call);
    log::called(call);
    let tried = || faults::check(call).and_then(|()| act());
    let Err(refusal) = attempt(tried) else { return 0 };
    checks::refused(&refusal);
    log::refused(call, &refusal);
    thread::with(|thread| thread.keep(call, &refusal));
    refusal.code
}

/// Runs a call that returns something else than a code; `otherwise` where it fails.
pub(crate) fn give<T>(call: &'static str, otherwise: T, act: impl FnOnce() -> Answer<T>) -> T {
    checks::enter(call);
    log::called(call);
    attempt(act).unwrap_or_else(|refusal| {
        log::refused(call, &refusal);
        thread::with(|thread| thread.keep(call, &refusal));
        otherwise
    })
}

fn attempt<T>(act: impl FnOnce() -> Answer<T>) -> Answer<T> {
    // Relaxed: the child of a fork has one thread.
    if FORKED.load(Ordering::Relaxed) {
        let text = "this process is a child of fork, where the devices of its parent do not run; call exec, or start the library in the child";
        return Err(Refusal::new(codes::INTERNAL, text));
    }
    let panicked = |_| {
        Refusal::new(
            codes::INTERNAL,
            "the library panicked; standard error has the place: report it",
        )
    };
    std::panic::catch_unwind(AssertUnwindSafe(act)).map_err(panicked)?
}

/// From now on, a child of `fork` is told that it is one.
pub(crate) fn watch_forks() {
    extern "C" fn forked() {
        // Relaxed: the child has one thread.
        FORKED.store(true, Ordering::Relaxed);
    }
    // SAFETY: the function only stores to an atomic.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
}
