//! Calls foreign code so that the call returns even if the code raises a signal.
//!
//! `c/guard.c` holds the handler and the jump. The jump leaves frames of foreign code only: what Rust does when it
//! is called back is marked by [`called_back`], and a signal there takes its ordinary course.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

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
        address: *mut usize,
    ) -> c_int;
    fn pto_guard_pause() -> c_int;
    fn pto_guard_resume(was: c_int);
}

/// The signal that ended a foreign call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal {
    number: c_int,
    /// What the call reached for, where the signal says so; otherwise 0.
    pub(crate) address: usize,
}

impl Signal {
    /// The signal's name.
    pub(crate) fn name(self) -> &'static str {
        match self.number {
            libc::SIGSEGV => "SIGSEGV",
            libc::SIGBUS => "SIGBUS",
            libc::SIGFPE => "SIGFPE",
            libc::SIGILL => "SIGILL",
            libc::SIGABRT => "SIGABRT",
            _ => "a signal",
        }
    }
}

/// A call of foreign code.
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
    install();
    let name = CString::new(name.replace('\0', " ")).unwrap_or_default();
    let name: &CStr = &name;
    // SAFETY: the caller vouches for the function.
    unsafe { enter(call, name) }
}

/// # Safety
/// As [`call`], after [`install`].
#[inline]
unsafe fn enter(call: Call, name: &CStr) -> Result<i32, Signal> {
    let (mut result, mut address) = (0, 0);
    let Call { function, runtime, args, count } = call;
    let (to, at) = (&raw mut result, &raw mut address);
    // SAFETY: the caller vouches for the function; `name`, `result` and `address` live until it returns.
    let number = unsafe { pto_guard_call(function, runtime, args, count, name.as_ptr(), to, at) };
    if number == 0 { Ok(result) } else { Err(Signal { number, address }) }
}

/// A function of foreign code that takes one pointer.
pub type ForeignFn = unsafe extern "C" fn(*mut c_void, *mut u64, c_int) -> c_int;

/// Calls foreign code with one pointer. It comes back also when that code raises a signal.
///
/// # Errors
/// The name of the signal.
///
/// # Safety
/// The function may be called with this pointer, a null pointer and 0. It holds nothing across the call whose loss a jump over
/// its frames would make unsound for others.
pub unsafe fn call_guarded(
    function: ForeignFn,
    argument: *mut c_void,
    name: &str,
) -> Result<i32, &'static str> {
    let call = Call { function, runtime: argument, args: std::ptr::null_mut(), count: 0 };
    // SAFETY: the caller vouches for the function.
    unsafe { self::call(call, name) }.map_err(Signal::name)
}

/// Calls foreign code with two pointers, as [`call_guarded`]; a call that is made for every task of a run: it allocates nothing.
///
/// # Errors
/// The name of the signal.
///
/// # Safety
/// As [`call_guarded`].
#[inline]
pub unsafe fn call_guarded_often(
    function: ForeignFn,
    (first, second): (*mut c_void, *mut u64),
    name: &CStr,
) -> Result<i32, &'static str> {
    install();
    let call = Call { function, runtime: first, args: second, count: 0 };
    // SAFETY: the caller vouches for the function.
    unsafe { enter(call, name) }.map_err(Signal::name)
}

/// Copies bytes, and comes back also if one of the two addresses has no memory, or memory that may not be written: then some of the bytes may
/// have been copied.
///
/// # Errors
/// The name of the signal.
///
/// # Safety
/// Where the addresses have memory, the caller may read `bytes` bytes of one and write as many of the other, which do not overlap.
pub unsafe fn copy_guarded(from: *const u8, to: *mut u8, bytes: usize) -> Result<(), &'static str> {
    let mut copy = CopyArgs { from, to, bytes };
    let pair = ((&raw mut copy).cast(), std::ptr::null_mut());
    // SAFETY: the caller vouches for the pointers. A signal leaves a function of C that holds nothing.
    unsafe { call_guarded_often(copy_bytes, pair, c"a copy") }.map(|_| ())
}

/// The arguments of [`copy_bytes`].
struct CopyArgs {
    from: *const u8,
    to: *mut u8,
    bytes: usize,
}

/// # Safety
/// `copy` is a [`CopyArgs`] whose pointers may be read and written.
unsafe extern "C" fn copy_bytes(copy: *mut c_void, _: *mut u64, _: c_int) -> c_int {
    // SAFETY: the caller vouches for it.
    let CopyArgs { from, to, bytes } = unsafe { copy.cast::<CopyArgs>().read() };
    if bytes == size_of::<u32>() && from.cast::<u32>().is_aligned() {
        // SAFETY: as above. A word is read as one, because kernels may count in it meanwhile.
        let word = unsafe { AtomicU32::from_ptr(from.cast_mut().cast()) }.load(Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { to.cast::<u32>().write_unaligned(word) };
        return 0;
    }
    // SAFETY: as above. The function is C's.
    unsafe { libc::memcpy(to.cast(), from.cast(), bytes) };
    0
}

#[inline]
fn install() {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    // SAFETY: the function replaces handlers of signals that end the process, and calls those that it replaced.
    INSTALLED.get_or_init(|| unsafe { pto_guard_install() } == 0);
}

/// Does `work` for foreign code that has called; it does not unwind. `failed` is what a panic gives.
pub fn called_back<R>(failed: R, work: impl FnOnce() -> R) -> R {
    // SAFETY: reads and writes a variable of this thread.
    let was = unsafe { pto_guard_pause() };
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(failed);
    // SAFETY: as above.
    unsafe { pto_guard_resume(was) };
    result
}
