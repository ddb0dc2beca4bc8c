//! What this library calls in `libascendcl.so`.

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::{Mutex, PoisonError};

use pto_acl_interface::above::{DeviceLibrary, OperatorLaunch, device_library};
pub(crate) use pto_acl_interface::above::{OperandBytes, Stream};

use crate::failure::{Checked, Failure, RUNTIME};

fn library() -> Checked<&'static DeviceLibrary> {
    device_library().map_err(|why| Failure::new(RUNTIME, why))
}

fn checked(code: i32) -> Checked {
    if code == 0 {
        return Ok(());
    }
    let text = format!("libascendcl.so refuses it with {code}; the message of that call says why");
    Err(Failure::new(RUNTIME, text))
}

/// The device of the calling thread.
pub(crate) fn current() -> Checked<i32> {
    let mut device = 0;
    // SAFETY: the result is writable.
    let code = unsafe { (library()?.get_device)(&raw mut device) };
    let text = "the thread has no device; call aclrtSetDevice first";
    if code == 0 { Ok(device) } else { Err(Failure::new(RUNTIME, text)) }
}

/// How many devices there are.
pub(crate) fn count() -> Checked<u32> {
    let mut count = 0;
    // SAFETY: the result is writable.
    checked(unsafe { (library()?.device_count)(&raw mut count) })?;
    Ok(count)
}

/// What a stream does in its turn: a failure fails the stream.
pub(crate) trait Command: Send + Sync {
    /// Does it; streams may repeat it.
    fn run(&self) -> Checked;
}

type Held = Box<dyn Command>;

unsafe extern "C" fn nothing(_words: *const u64) {}

extern "C" fn outcome(context: *mut c_void, text: *mut c_char, room: usize) -> i32 {
    /// What the stream fails with: an internal error; the text has the code of this library.
    const STREAM_FAILS: i32 = 507_000;
    // SAFETY: `launch` made the context of a `Held`, and `release` comes after the last use.
    let held: &Held = unsafe { &*context.cast::<Held>() };
    let Err(failure) = held.run() else { return 0 };
    let name = crate::failure::name(failure.code).to_string_lossy();
    let said = format!("{name}: {}", failure.text);
    let length = said.len().min(room.saturating_sub(1));
    // SAFETY: the caller has room for so many bytes, and the terminating zero is there.
    unsafe { std::ptr::copy_nonoverlapping(said.as_ptr(), text.cast(), length) };
    STREAM_FAILS
}

extern "C" fn release(context: *mut c_void) {
    // SAFETY: `launch` made the context of a box, and this is the last use.
    drop(unsafe { Box::from_raw(context.cast::<Held>()) });
}

/// The kernel under which timelines and reports show a call.
fn kernel(name: &'static CStr) -> Checked<usize> {
    static KERNELS: Mutex<Vec<(&CStr, usize)>> = Mutex::new(Vec::new());
    let mut kernels = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, known)) = kernels.iter().find(|(known, _)| *known == name) {
        return Ok(*known);
    }
    let (mut function, vector) = (0, 1);
    // SAFETY: the name is a string, and the result is writable.
    let code =
        unsafe { (library()?.make_kernel)(name.as_ptr(), nothing, vector, &raw mut function) };
    checked(code)?;
    kernels.push((name, function));
    Ok(function)
}

/// Puts a command into a stream. Memory that is not live memory of the stream's device is refused.
pub(crate) fn launch(
    name: &'static CStr,
    operands: &[OperandBytes],
    command: Box<dyn Command>,
    stream: Stream,
) -> Checked {
    let function = kernel(name)?;
    let library = library()?;
    let held: Box<Held> = Box::new(command);
    let launch = OperatorLaunch {
        function,
        blocks: 1,
        words: std::ptr::null(),
        word_count: 0,
        operands: operands.as_ptr(),
        operand_count: operands.len(),
        outcome: Some(outcome),
        release: Some(release),
        context: Box::into_raw(held).cast(),
    };
    // SAFETY: `launch` describes live memory. The context is released in every case.
    checked(unsafe { (library.launch)(&raw const launch, stream) })
}

/// Keeps the error of a call for `aclGetRecentErrMsg`. Returns its code.
#[cold]
pub(crate) fn report(call: &'static CStr, failure: &Failure) -> i32 {
    let name = crate::failure::name(failure.code).to_string_lossy();
    let said = format!("{name}: {}", failure.text.replace('\0', " "));
    match (library(), CString::new(said.as_str())) {
        // SAFETY: both are strings, and the name stays.
        (Ok(library), Ok(text)) => unsafe {
            (library.report)(call.as_ptr(), failure.code, text.as_ptr())
        },
        _ => {
            eprintln!("pto hccl: {}: {said}", call.to_string_lossy());
            failure.code
        }
    }
}
