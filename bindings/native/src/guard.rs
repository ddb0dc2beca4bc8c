//! Calls foreign code so that the call returns even if the code raises a signal.
//!
//! `c/guard.c` holds the handler and the jump. The jump leaves frames of foreign code only: what Rust does when it
//! is called back is marked by [`called_back`], and a signal there takes its ordinary course.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

/// A function of foreign code: `int f(Runtime *, uint64_t *args, int n)`; a builder takes the first argument only.
pub(crate) type Foreign = unsafe extern "C" fn(*mut c_void, *mut u64, c_int) -> c_int;

unsafe extern "C" {
    fn pto_guard_install() -> c_int;
    fn pto_guard_call(
        function: Foreign,
        runtime: *mut c_void,
        args: *mut u64,
        count: c_int,
        name: *const c_char,
        result: *mut c_int,
    ) -> c_int;
    fn pto_guard_pause() -> c_int;
    fn pto_guard_resume(was: c_int);
}

/// The signal that ended a foreign call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal(c_int);

impl Signal {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self.0 {
            libc::SIGSEGV => "SIGSEGV",
            libc::SIGBUS => "SIGBUS",
            libc::SIGFPE => "SIGFPE",
            libc::SIGILL => "SIGILL",
            libc::SIGABRT => "SIGABRT",
            _ => "a signal",
        }
    }
}

/// What foreign code is called with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) function: Foreign,
    pub(crate) runtime: *mut c_void,
    pub(crate) args: *mut u64,
    pub(crate) count: c_int,
}

/// Calls foreign code; `name` is said if the process cannot be saved.
///
/// # Safety
/// The function may be called with these arguments. It holds nothing across the call whose loss a jump over its
/// frames would make unsound for others: a lock that it holds stays locked.
pub(crate) unsafe fn call(call: Call, name: &str) -> Result<i32, Signal> {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    // SAFETY: the function replaces handlers of signals that end the process, and calls those that it replaced.
    INSTALLED.get_or_init(|| unsafe { pto_guard_install() } == 0);
    let name = CString::new(name.replace('\0', " ")).unwrap_or_default();
    let name: &CStr = &name;
    let mut result = 0;
    let Call { function, runtime, args, count } = call;
    // SAFETY: the caller vouches for the function; `name` and `result` live until it returns.
    let signal =
        unsafe { pto_guard_call(function, runtime, args, count, name.as_ptr(), &raw mut result) };
    if signal == 0 { Ok(result) } else { Err(Signal(signal)) }
}

/// Does `work` for foreign code that has called; it does not unwind. `failed` is what a panic gives.
pub(crate) fn called_back<R>(failed: R, work: impl FnOnce() -> R) -> R {
    // SAFETY: reads and writes a variable of this thread.
    let was = unsafe { pto_guard_pause() };
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(failed);
    // SAFETY: as above.
    unsafe { pto_guard_resume(was) };
    result
}
