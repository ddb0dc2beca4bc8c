//! What this library calls in `libascendcl.so`: it makes kernels, launches operators and reports errors.

use std::ffi::{CStr, CString};

use pto_acl_interface::above::{DeviceLibrary, device_library};
pub(crate) use pto_acl_interface::above::{KernelEntry, OperandBytes, OperatorLaunch, Stream};

use crate::refusal::{Checked, INNER, RUNTIME, Rejection};

fn loaded() -> Checked<&'static DeviceLibrary> {
    device_library().map_err(|why| Rejection::new(INNER, why))
}

/// Makes a kernel; `cores`: 0 cube, 1 vector; `cost_word`: the word of its launches that says what a block costs.
pub(crate) fn make_kernel(
    name: &str,
    entry: KernelEntry,
    cores: u32,
    cost_word: usize,
) -> Checked<usize> {
    let library = loaded()?;
    let name = CString::new(name).unwrap_or_default();
    let mut function = 0;
    // SAFETY: the name is a string, and the result is writable.
    let code = unsafe { (library.make_kernel)(name.as_ptr(), entry, cores, &raw mut function) };
    if code != 0 {
        return Err(of_device(code));
    }
    // SAFETY: the function was made just now.
    let code = unsafe { (library.set_cost_word)(function, cost_word) };
    if code == 0 { Ok(function) } else { Err(of_device(code)) }
}

/// Launches an operator.
pub(crate) fn launch(operator: &OperatorLaunch, stream: Stream) -> Checked {
    let library = loaded()?;
    // SAFETY: `operator` describes live memory, as its type says.
    let code = unsafe { (library.launch)(&raw const *operator, stream) };
    if code == 0 { Ok(()) } else { Err(of_device(code)) }
}

fn of_device(code: i32) -> Rejection {
    let text = format!("the device refuses it with {code}; the message of that call says why");
    Rejection::new(RUNTIME, text)
}

/// Keeps the error of a call for `aclGetRecentErrMsg`. Returns its code.
#[cold]
pub(crate) fn report(call: &'static CStr, rejection: &Rejection) -> i32 {
    let text = CString::new(rejection.text.replace('\0', " ")).unwrap_or_default();
    match device_library() {
        // SAFETY: both are strings, and the name stays.
        Ok(library) => unsafe { (library.report)(call.as_ptr(), rejection.code, text.as_ptr()) },
        Err(_) => {
            eprintln!("pto aclnn: {}: {}", call.to_string_lossy(), rejection.text);
            rejection.code
        }
    }
}
