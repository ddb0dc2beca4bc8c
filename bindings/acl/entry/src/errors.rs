//! Errors of the calling thread. A plug-in of this project keeps all of them, also those of calls that this library refuses itself, which are reported to it. The
//! vendor's library takes no reports, so that with it those are kept here.
//!
//! The newest message is returned first. So when a call is refused here, the messages that the vendor's library has then are taken over: they are older. What it
//! has at a later query is newer.
//!
//! The errors are found by a key of the operating system, and not in thread-local variables: a library that is loaded late gets no room for those on some
//! systems.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::OnceLock;

use super::table::{GET, PEEK, RECENT, target};

/// Messages that a thread keeps.
const KEPT: usize = 32;

/// The errors of a thread.
#[derive(Default)]
struct Errors {
    /// The newest first.
    messages: VecDeque<String>,
    /// The last error of calls that were refused here; what the plug-in has is newer.
    last: i32,
    /// The message that was returned last: it stays valid until the next call.
    returned: CString,
}

/// Keeps why a call was refused here, in front of the vendor's library.
pub(crate) fn keep(call: &CStr, code: i32, text: &str) {
    let older = recent_of_plugin();
    // What the entry point itself refuses does not count as the thread's last error.
    let counts = !(100_000..107_000).contains(&code);
    if counts {
        last_of_plugin(GET, 0);
    }
    with(|errors| {
        if let Some(older) = older {
            errors.messages.push_front(older);
        }
        errors.messages.push_front(format!("[{code}] {}: {text}", call.to_string_lossy()));
        errors.messages.truncate(KEPT);
        if counts {
            errors.last = code;
        }
    });
}

/// The messages of the calls that failed, the newest first; null if none did.
// SAFETY: the name is that of the interface, and no other function here has it.
#[unsafe(no_mangle)]
extern "C" fn aclGetRecentErrMsg() -> *const c_char {
    with(|errors| {
        if errors.messages.is_empty() {
            return message_of_plugin();
        }
        let newer = recent_of_plugin();
        let all: Vec<String> = newer.into_iter().chain(errors.messages.drain(..)).collect();
        errors.returned = CString::new(all.join("\n").replace('\0', " ")).unwrap_or_default();
        errors.returned.as_ptr()
    })
}

/// The last error of the thread; it stays.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn aclrtPeekAtLastError(level: u32) -> i32 {
    newer_or(last_of_plugin(PEEK, level), |errors| errors.last)
}

/// The last error of the thread; it is forgotten.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn aclrtGetLastError(level: u32) -> i32 {
    let own = if level == 0 { with(|errors| std::mem::take(&mut errors.last)) } else { 0 };
    newer_or(last_of_plugin(GET, level), |_| own)
}

/// What the plug-in has, or else what was kept here.
fn newer_or(found: i32, own: impl FnOnce(&mut Errors) -> i32) -> i32 {
    if found == 0 { with(own) } else { found }
}

fn message_of_plugin() -> *const c_char {
    // SAFETY: the plug-in's function of this name has this type, or its substitute returns null.
    let recent = unsafe {
        std::mem::transmute::<*mut c_void, extern "C" fn() -> *const c_char>(target(RECENT))
    };
    recent()
}

fn recent_of_plugin() -> Option<String> {
    let text = message_of_plugin();
    if text.is_null() {
        return None;
    }
    // SAFETY: the plug-in gives a string that is valid until its next call on this thread.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

fn last_of_plugin(function: usize, level: u32) -> i32 {
    // SAFETY: the plug-in's functions of these names have this type, and their substitutes read nothing.
    let last =
        unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(u32) -> i32>(target(function)) };
    last(level)
}

/// Looks at the errors of the calling thread.
fn with<R>(look: impl FnOnce(&mut Errors) -> R) -> R {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    let Some(key) = *KEY.get_or_init(make_key) else { return look(&mut Errors::default()) };
    // SAFETY: the key was made by `make_key` and is never deleted.
    let mut state = unsafe { libc::pthread_getspecific(key) }.cast::<RefCell<Errors>>();
    if state.is_null() {
        state = Box::into_raw(Box::default());
        // SAFETY: as above; the value is freed by `forget`.
        unsafe { libc::pthread_setspecific(key, state.cast_const().cast()) };
    }
    // SAFETY: the value belongs to this thread, and lives until the thread ends.
    let cell = unsafe { &*state };
    match cell.try_borrow_mut() {
        Ok(mut errors) => look(&mut errors),
        // A call within a look: the plug-in makes none.
        Err(_) => look(&mut Errors::default()),
    }
}

fn make_key() -> Option<libc::pthread_key_t> {
    let mut key = 0;
    // SAFETY: `key` is writable, and `forget` frees what `with` stores.
    let made = unsafe { libc::pthread_key_create(&raw mut key, Some(forget)) };
    (made == 0).then_some(key)
}

extern "C" fn forget(state: *mut c_void) {
    // SAFETY: `with` made it from a box, and the thread that it belongs to ends.
    drop(unsafe { Box::from_raw(state.cast::<RefCell<Errors>>()) });
}
