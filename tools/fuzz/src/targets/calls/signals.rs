//! Signals that come at any moment, to any thread, and interrupt its system calls: a program's timer.

use std::ptr::null_mut;

/// From one to the next.
const EVERY_US: i64 = 700;

extern "C" fn handle(_: libc::c_int) {}

fn set(every_us: i64, handler: libc::sighandler_t) {
    // SAFETY: zeros are such a record: no flags, so that calls are interrupted and not begun again.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    let every = libc::timeval { tv_sec: 0, tv_usec: every_us };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    if every_us == 0 {
        // SAFETY: the record is valid. No more signals come.
        unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, null_mut()) };
    }
    // SAFETY: the handler does nothing.
    unsafe { libc::sigaction(libc::SIGALRM, &raw const action, null_mut()) };
    if every_us != 0 {
        // SAFETY: the record is valid.
        unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, null_mut()) };
    }
}

/// From here on signals come.
pub(super) fn begin() {
    set(EVERY_US, handle as *const () as libc::sighandler_t);
}

/// No more of them: what is on its way is dropped.
pub(super) fn end() {
    set(0, libc::SIG_IGN);
}

/// In a child of `fork`, which has no timer: its own alarm ends it.
pub(super) fn of_child() {
    set(0, libc::SIG_DFL);
}
