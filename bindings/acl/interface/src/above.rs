//! What a library above `libascendcl.so` calls in it: it makes kernels, launches operators and takes errors (`pto_acl.h`). The library is looked up by its
//! name, because a program may load the other one before it.

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;

/// A kernel as cores call it.
pub type KernelEntry = unsafe extern "C" fn(*const u64);
/// Writes the sentence of a failure into the text, and returns its code; 0: there is none.
pub type Outcome = extern "C" fn(context: *mut c_void, text: *mut c_char, room: usize) -> i32;
/// A stream as programs have it.
pub type Stream = usize;

/// `ptoAclOperand`: memory that an operator reads or writes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OperandBytes {
    /// Where it begins.
    pub address: usize,
    /// How long it is.
    pub bytes: usize,
    /// Not 0: it is written.
    pub writes: u32,
}

/// `ptoAclOperator`: an operator in a stream.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OperatorLaunch {
    /// The kernel, of `ptoAclKernelFromFunction`.
    pub function: usize,
    /// In how many blocks it runs.
    pub blocks: u32,
    /// The words of a task.
    pub words: *const u64,
    /// How many.
    pub word_count: usize,
    /// The memory that it uses.
    pub operands: *const OperandBytes,
    /// In how many pieces.
    pub operand_count: usize,
    /// Asked when it has run.
    pub outcome: Option<Outcome>,
    /// Called once, after the last use of the context.
    pub release: Option<extern "C" fn(context: *mut c_void)>,
    /// What both get.
    pub context: *mut c_void,
}

macro_rules! functions {
    ($($field:ident = $name:ident($($arg:ty),*);)*) => {
        /// The functions, which a library above calls.
        #[derive(Debug)]
        #[expect(missing_docs, reason = "they are documented in the headers, under the names beside them")]
        pub struct DeviceLibrary {
            $(pub $field: unsafe extern "C" fn($($arg),*) -> i32,)*
        }

        fn load() -> Result<DeviceLibrary, String> {
            const NAME: &CStr = c"libascendcl.so";
            // SAFETY: the name is a string; a library of this name that is loaded already is the one that is found.
            let handle = unsafe { libc::dlopen(NAME.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            if handle.is_null() {
                let why = "libascendcl.so cannot be loaded; start the program with `pto compat cann run`";
                return Err(why.to_owned());
            }
            Ok(DeviceLibrary {
                $($field: {
                    const NAME: &str = concat!(stringify!($name), "\0");
                    // SAFETY: the library stays loaded, and the name is a string.
                    let found = unsafe { libc::dlsym(handle, NAME.as_ptr().cast()) };
                    if found.is_null() {
                        return Err(format!(
                            "libascendcl.so lacks the function {}; use the library of the PTO Runtime that was built with this one",
                            stringify!($name)
                        ));
                    }
                    // SAFETY: the library has a function of this type under this name.
                    unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($arg),*) -> i32>(found)
                    }
                },)*
            })
        }
    };
}

functions! {
    get_device = aclrtGetDevice(*mut i32);
    device_count = aclrtGetDeviceCount(*mut u32);
    make_kernel = ptoAclKernelFromFunction(*const c_char, KernelEntry, u32, *mut usize);
    set_cost_word = ptoAclKernelCostWord(usize, usize);
    launch = ptoAclLaunchOperator(*const OperatorLaunch, Stream);
    report = ptoAclReport(*const c_char, i32, *const c_char);
}

/// The functions of `libascendcl.so`, which is loaded at the first call.
///
/// # Errors
/// What is missing.
pub fn device_library() -> Result<&'static DeviceLibrary, &'static str> {
    static LIBRARY: OnceLock<Result<DeviceLibrary, String>> = OnceLock::new();
    LIBRARY.get_or_init(load).as_ref().map_err(String::as_str)
}
