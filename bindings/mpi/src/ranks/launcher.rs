//! The launcher's wish that this process ends. A launcher that sees one rank die asks all others to end (`SIGTERM`), and kills them a little later. A
//! rank uses that time to say which rank it was, instead of ending without a word.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
}

/// From now on `SIGTERM` is noted, and does not end the process by itself.
pub(crate) fn note_wishes() {
    let handler: extern "C" fn(libc::c_int) = note;
    // SAFETY: the handler stores one atomic flag, which a signal handler may do.
    unsafe { libc::signal(libc::SIGTERM, handler as *const () as libc::sighandler_t) };
}

/// Whether the launcher has asked.
pub(crate) fn has_asked_to_end() -> bool {
    ASKED.load(Ordering::Relaxed)
}
