//! Status codes and the last error of a thread.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use pto_host::abi::fault;
use pto_native::{Failure, FailureKind};

use crate::argument::{output, put};

/// What went wrong in the last call of this thread that failed. The texts are valid until the next call of this
/// thread that fails, or `pto_clear_error`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LastError {
    /// The status that the call returned; 0: no call failed.
    pub code: i32,
    /// Not used; zero.
    pub reserved: u32,
    /// The code's name, such as "OUT_OF_MEMORY"; empty if no call failed.
    pub name: *const c_char,
    /// What happened, where.
    pub message: *const c_char,
    /// What to do.
    pub remedy: *const c_char,
}

/// The texts that a `LastError` points to.
#[derive(Default)]
struct Texts {
    code: i32,
    name: CString,
    message: CString,
    remedy: CString,
}

thread_local! {
    static LAST: RefCell<Texts> = RefCell::new(Texts::default());
}

/// Runs the body of a function of the interface: a failure or a panic becomes a status and the thread's last error.
/// What the body gives is dropped.
pub(crate) fn answer<T>(body: impl FnOnce() -> Result<T, Failure>) -> i32 {
    let failure = match catch_unwind(AssertUnwindSafe(|| body().map(drop))) {
        Ok(Ok(())) => return 0,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text");
            Failure::new(FailureKind::PANIC, format!("the library panicked: {said}"))
        }
    };
    remember(&failure)
}

/// As [`answer`]; the result of the body goes to `to`, which is checked first.
///
/// # Safety
/// As [`output`].
pub(crate) unsafe fn answer_to<T>(
    to: *mut T,
    name: &str,
    body: impl FnOnce() -> Result<T, Failure>,
) -> i32 {
    answer(|| {
        // SAFETY: as the caller says.
        let to = unsafe { output(to, name) }?;
        put(to, body()?);
        Ok(())
    })
}

/// Makes a failure the thread's last error; gives its status.
pub(crate) fn remember(failure: &Failure) -> i32 {
    // Codes are below 2^31 by construction.
    let code = i32::try_from(failure.code).unwrap_or(i32::MAX);
    let texts = Texts {
        code,
        name: c_text(failure.name),
        message: c_text(&failure.message),
        remedy: c_text(&failure.remedy),
    };
    // At the end of a thread its last error is gone before destructors of the program: then the error is lost.
    LAST.try_with(|last| *last.borrow_mut() = texts).unwrap_or_default();
    code
}

/// Text for C; a zero byte in it becomes a space.
pub(crate) fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// Gives the last error of this thread.
///
/// Fails when `error` is null. Thread safety: any thread; each has its own last error.
///
/// # Safety
/// `error` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_last_error(error: *mut LastError) -> i32 {
    // Not `answer`: a failure here would hide the error that is asked for.
    let found = LAST.try_with(|last| {
        let texts = last.borrow();
        let (name, message, remedy) =
            (texts.name.as_ptr(), texts.message.as_ptr(), texts.remedy.as_ptr());
        LastError { code: texts.code, reserved: 0, name, message, remedy }
    });
    // At the end of a thread its last error is gone.
    let nothing = c"".as_ptr();
    let none = LastError { code: 0, reserved: 0, name: nothing, message: nothing, remedy: nothing };
    // SAFETY: the caller vouches for the pointer.
    match unsafe { output(error, "error") } {
        Ok(error) => {
            put(error, found.unwrap_or(none));
            0
        }
        Err(failure) => i32::try_from(failure.code).unwrap_or(i32::MAX),
    }
}

/// Forgets the last error of this thread.
///
/// Thread safety: any thread; each has its own last error.
#[unsafe(no_mangle)]
pub extern "C" fn pto_clear_error() {
    LAST.try_with(|last| *last.borrow_mut() = Texts::default()).unwrap_or_default();
}

/// One row of the tables of faults and of failures of the host, as texts for C.
struct ErrorText {
    code: i32,
    name: CString,
    sentence: CString,
    remedy: CString,
}

fn entries() -> &'static [ErrorText] {
    static ENTRIES: std::sync::OnceLock<Vec<ErrorText>> = std::sync::OnceLock::new();
    ENTRIES.get_or_init(|| {
        let entry = |code: u32, name, sentence, remedy| ErrorText {
            code: i32::try_from(code).unwrap_or(i32::MAX),
            name: c_text(name),
            sentence: c_text(sentence),
            remedy: c_text(remedy),
        };
        let faults = fault::TABLE.iter();
        let faults = faults.map(|row| entry(row.fault.code(), row.name, row.sentence, row.remedy));
        let host = FailureKind::TABLE.iter();
        let host = host.map(|row| entry(row.code, row.name, row.sentence, row.remedy));
        faults.chain(host).collect()
    })
}

fn column(code: i32, of: impl Fn(&'static ErrorText) -> &'static CString) -> *const c_char {
    let entry = entries().iter().find(|entry| entry.code == code);
    entry.map_or(c"".as_ptr(), |entry| of(entry).as_ptr())
}

/// The name of a status, such as "OUT_OF_MEMORY"; empty if there is no such status.
///
/// Thread safety: any thread. The text is valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn pto_error_name(code: i32) -> *const c_char {
    column(code, |entry| &entry.name)
}

/// What a status means; empty if there is no such status.
///
/// Thread safety: any thread. The text is valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn pto_error_sentence(code: i32) -> *const c_char {
    column(code, |entry| &entry.sentence)
}

/// What to do about a status; empty if there is no such status.
///
/// Thread safety: any thread. The text is valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn pto_error_remedy(code: i32) -> *const c_char {
    column(code, |entry| &entry.remedy)
}

#[cfg(test)]
mod tests {
    use super::{answer, pto_error_name, pto_last_error};
    use std::ffi::CStr;

    #[test]
    fn a_panic_is_an_error_and_does_not_pass() {
        let status = answer::<()>(|| panic!("on purpose"));
        let mut error = std::mem::MaybeUninit::uninit();
        // SAFETY: the pointer is writable.
        assert_eq!(unsafe { pto_last_error(error.as_mut_ptr()) }, 0);
        // SAFETY: it was written.
        let error = unsafe { error.assume_init() };
        assert_eq!(error.code, status);
        // SAFETY: a text of the interface.
        let message = unsafe { CStr::from_ptr(error.message) }.to_str().unwrap();
        assert_eq!(message, "the library panicked: on purpose");
        // SAFETY: a text of the interface.
        assert_eq!(unsafe { CStr::from_ptr(pto_error_name(status)) }, c"PANIC");
    }
}
