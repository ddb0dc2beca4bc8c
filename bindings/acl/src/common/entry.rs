//! What every entry point does: no panic leaves it, failures are kept for the thread, and a forked child gets an error.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};

use super::calls::Begun;
use super::notes::Note;
use super::refusal::{Answer, Refusal};
use super::{calls, checks, codes, faults, log, spans, thread, watch};

/// Set in a child of `fork`: the threads of the devices are not there.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Entry points that return an error code.
macro_rules! api {
    ($($(#[$attribute:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        $(#[$attribute])*
        // SAFETY: the interface defines this name, and no other function here has the same name.
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $type),*) -> i32 {
            let begun = $crate::common::entry::begun(stringify!($name), || {
                [$((stringify!($argument), $crate::common::notes::Noted::note(&$argument))),*]
            });
            let code = $crate::common::entry::answer(stringify!($name), move || $body);
            $crate::common::calls::end(begun, u64::from(code.cast_unsigned()));
            code
        }
    )*};
}
pub(crate) use api;

/// Entry points that give a pointer or a number instead of a code. The value that they return on failure follows the type.
macro_rules! values {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty, $otherwise:expr, $body:block)*) => {$(
        // SAFETY: the interface defines this name, and no other function here has the same name.
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $type),*) -> $result {
            let begun = $crate::common::entry::begun(stringify!($name), || {
                [$((stringify!($argument), $crate::common::notes::Noted::note(&$argument))),*]
            });
            let given = $crate::common::entry::give(stringify!($name), $otherwise, move || $body);
            $crate::common::calls::end(begun, $crate::common::notes::ReturnValue::number(given));
            given
        }
    )*};
}
pub(crate) use values;

/// Entry points that are refused by name: `refused! { REFUSAL; NAME, .. }`, where REFUSAL makes a refusal of the name. They return its code, and look at
/// none of their arguments.
macro_rules! refused {
    ($refusal:path; $($name:ident),* $(,)?) => {$(
        // SAFETY: the interface defines this name, and no other function here has the same name. It reads none of its arguments.
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> i32 {
            $crate::common::entry::answer(stringify!($name), || Err($refusal(stringify!($name))))
        }
    )*};
}
pub(crate) use refused;

/// A call begins, if calls are recorded.
#[inline]
pub(crate) fn begun<const N: usize>(
    function: &str,
    notes: impl FnOnce() -> [(&'static str, Note); N],
) -> Option<Box<Begun>> {
    if watch::is_watched() { calls::begin(function, &notes()) } else { None }
}

/// Runs a call.
pub(crate) fn answer(call: &'static str, act: impl FnOnce() -> Answer) -> i32 {
    match watched(call, act) {
        Ok(()) => 0,
        Err(refusal) => refuse(call, &refusal),
    }
}

/// Runs a call that returns something else than a code; `otherwise` where it fails.
pub(crate) fn give<T>(call: &'static str, otherwise: T, act: impl FnOnce() -> Answer<T>) -> T {
    watched(call, act).unwrap_or_else(|refusal| {
        log::refused(call, &refusal);
        thread::with(|thread| thread.keep(call, &refusal));
        otherwise
    })
}

/// Runs a call, which a fault may strike, and shows it to those who watch.
#[inline]
fn watched<T>(call: &'static str, act: impl FnOnce() -> Answer<T>) -> Answer<T> {
    let is_watched = watch::is_watched();
    let start = if is_watched { begin(call) } else { None };
    let tried = || {
        if is_watched {
            faults::check(call)?;
        }
        check_fork(call)?;
        act()
    };
    let outcome = attempt(tried);
    if let Some(start) = start {
        spans::end(call, start);
    }
    outcome
}

/// Notifies the watchers that a call begins. Returns its time if times are recorded.
#[cold]
fn begin(call: &'static str) -> Option<u64> {
    watch::look_at_environment();
    checks::enter(call);
    log::called(call);
    spans::begin()
}

/// Keeps what a call failed with: its code.
#[cold]
fn refuse(call: &'static str, refusal: &Refusal) -> i32 {
    checks::refused(refusal);
    log::refused(call, refusal);
    thread::with(|thread| thread.keep(call, refusal));
    refusal.code
}

/// The library of entry points has refused a call by its arguments alone. Its code, or that of what comes before it: a fault that a user asks for, a child of
/// `fork`.
pub(crate) fn refused_above(call: &'static str, refusal: &Refusal) -> i32 {
    match watched(call, || Ok(())) {
        Err(first) => refuse(call, &first),
        Ok(()) => refuse(call, refusal),
    }
}

/// What a child of `fork` may call: it asks no device.
const WITHOUT_DEVICE: &[&str] = &["aclDataTypeSize", "aclrtGetSocName"];

/// Refuses a call in a child of `fork`.
fn check_fork(call: &str) -> Answer {
    // Relaxed: the child of a fork has one thread.
    if FORKED.load(Ordering::Relaxed) && !WITHOUT_DEVICE.contains(&call) {
        let text = "this process is a child of fork, where the devices of its parent do not run; call exec, or start the library in the child";
        return Err(Refusal::new(codes::INTERNAL, text));
    }
    Ok(())
}

fn attempt<T>(act: impl FnOnce() -> Answer<T>) -> Answer<T> {
    let panicked = |_| {
        Refusal::new(
            codes::INTERNAL,
            "the library panicked; standard error has the location: report it",
        )
    };
    std::panic::catch_unwind(AssertUnwindSafe(act)).map_err(panicked)?
}

/// Whether this process is a child of `fork`.
pub(crate) fn is_forked() -> bool {
    // Relaxed: the child of a fork has one thread.
    FORKED.load(Ordering::Relaxed)
}

/// From now on, calls in a child of `fork` get an error.
pub(crate) fn watch_forks() {
    extern "C" fn forked() {
        // Relaxed: the child has one thread.
        FORKED.store(true, Ordering::Relaxed);
    }
    // SAFETY: the function only stores to an atomic.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
}
