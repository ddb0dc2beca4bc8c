//! Errors of the calling thread.
//!
//! These functions do not go through `common/entry.rs`: the error handling there would change the errors that they return, and
//! they say in a child of `fork` why its calls fail. No fault can be asked for.

use std::ffi::c_char;

use crate::common::refusal::{Refusal, require};
use crate::common::thread;

/// The messages of the calls that failed, the newest first; NULL if none did. The text is valid until the next call.
// SAFETY: the interface defines this name, and no other function here has the same name.
#[unsafe(no_mangle)]
extern "C" fn aclGetRecentErrMsg() -> *const c_char {
    thread::with(|thread| thread.speak().unwrap_or(std::ptr::null()))
}

/// The last error of the thread; it stays.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn aclrtPeekAtLastError(level: u32) -> i32 {
    checked(level, |thread| thread.last_error)
}

/// The last error of the thread; it is forgotten.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn aclrtGetLastError(level: u32) -> i32 {
    checked(level, |thread| std::mem::take(&mut thread.last_error))
}

fn checked(level: u32, look: impl FnOnce(&mut thread::Thread) -> i32) -> i32 {
    let known = require(level == 0, || {
        Refusal::argument(format!("there is no level {level} of errors; there is 0, of the thread"))
    });
    thread::with(|thread| match known {
        Ok(()) => look(thread),
        Err(refusal) => {
            thread.keep("aclrtGetLastError", &refusal);
            refusal.code
        }
    })
}
