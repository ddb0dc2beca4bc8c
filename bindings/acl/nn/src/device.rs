//! What this library calls in `libascendcl.so`: it makes kernels, launches operators and takes errors. The library is looked up by its name, because a
//! program may load this one before it.

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::OnceLock;

use crate::refusal::{Checked, INNER, RUNTIME, Rejection};

/// A kernel as cores call it.
pub(crate) type KernelEntry = unsafe extern "C" fn(*const u64);
/// A stream as programs have it.
pub(crate) type Stream = usize;

/// `ptoAclOperand`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct OperandBytes {
    pub(crate) address: usize,
    pub(crate) bytes: usize,
    pub(crate) writes: u32,
}

/// `ptoAclOperator`.
#[repr(C)]
pub(crate) struct OperatorLaunch {
    pub(crate) function: usize,
    pub(crate) blocks: u32,
    pub(crate) words: *const u64,
    pub(crate) word_count: usize,
    pub(crate) operands: *const OperandBytes,
    pub(crate) operand_count: usize,
    pub(crate) outcome: Option<extern "C" fn(*mut c_void, *mut c_char, usize) -> i32>,
    pub(crate) release: Option<extern "C" fn(*mut c_void)>,
    pub(crate) context: *mut c_void,
}

type MakeKernel = unsafe extern "C" fn(*const c_char, KernelEntry, u32, *mut usize) -> i32;
type SetCostWord = unsafe extern "C" fn(usize, usize) -> i32;
type Launch = unsafe extern "C" fn(*const OperatorLaunch, Stream) -> i32;
type Report = unsafe extern "C" fn(*const c_char, i32, *const c_char) -> i32;

/// The functions.
struct Library {
    make_kernel: MakeKernel,
    set_cost_word: SetCostWord,
    launch: Launch,
    report: Report,
}

fn library() -> Result<&'static Library, &'static str> {
    static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
    LIBRARY.get_or_init(load).as_ref().map_err(String::as_str)
}

fn load() -> Result<Library, String> {
    const NAME: &CStr = c"libascendcl.so";
    // SAFETY: the name is a string; a library of this name that is loaded already is the one that is found.
    let handle = unsafe { libc::dlopen(NAME.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err(
            "libascendcl.so cannot be loaded; start the program with `pto compat cann run`"
                .to_owned(),
        );
    }
    let symbol = |name: &CStr| {
        // SAFETY: the library stays loaded, and the name is a string.
        let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
        let text = || {
            format!(
                "libascendcl.so lacks the function {}; use the library of the PTO Runtime that was built with this one",
                name.to_string_lossy()
            )
        };
        if found.is_null() { Err(text()) } else { Ok(found) }
    };
    const NAMES: [&CStr; 4] = [
        c"ptoAclKernelFromFunction",
        c"ptoAclKernelCostWord",
        c"ptoAclLaunchOperator",
        c"ptoAclReport",
    ];
    let [kernel, cost_word, launch, report] = NAMES.map(symbol);
    Ok(Library {
        // SAFETY: the library has a function of this type under this name (pto_acl.h).
        make_kernel: unsafe { std::mem::transmute::<*mut c_void, MakeKernel>(kernel?) },
        // SAFETY: as above.
        set_cost_word: unsafe { std::mem::transmute::<*mut c_void, SetCostWord>(cost_word?) },
        // SAFETY: as above.
        launch: unsafe { std::mem::transmute::<*mut c_void, Launch>(launch?) },
        // SAFETY: as above.
        report: unsafe { std::mem::transmute::<*mut c_void, Report>(report?) },
    })
}

fn loaded() -> Checked<&'static Library> {
    library().map_err(|why| Rejection::new(INNER, why))
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
    match library() {
        // SAFETY: both are strings, and the name stays.
        Ok(library) => unsafe { (library.report)(call.as_ptr(), rejection.code, text.as_ptr()) },
        Err(_) => {
            eprintln!("pto aclnn: {}: {}", call.to_string_lossy(), rejection.text);
            rejection.code
        }
    }
}
