//! The image, loaded as the driver stack loads it.

use std::ffi::{CStr, CString, c_void};

/// An entry symbol.
pub(crate) type Entry = unsafe extern "C" fn(*mut c_void) -> i32;

/// A loaded image with the entry symbols of the launch sequence.
pub(crate) struct Image {
    /// `StaticTileFwkBackendKernelServer`.
    pub(crate) stub: Entry,
    /// `DynTileFwkBackendKernelServerInit`.
    pub(crate) init: Entry,
    /// `DynTileFwkBackendKernelServer`.
    pub(crate) server: Entry,
    /// `pto_aicpu_run_launch`.
    pub(crate) run_launch: Entry,
}

impl Image {
    /// Loads the image for the life of the process.
    pub(crate) fn load(path: &str) -> Result<Self, String> {
        let handle = open(path)?;
        Ok(Self {
            stub: entry(handle, c"StaticTileFwkBackendKernelServer")?,
            init: entry(handle, c"DynTileFwkBackendKernelServerInit")?,
            server: entry(handle, c"DynTileFwkBackendKernelServer")?,
            run_launch: entry(handle, c"pto_aicpu_run_launch")?,
        })
    }
}

/// Loads a library for the life of the process.
pub(crate) fn open(path: &str) -> Result<*mut c_void, String> {
    let name = CString::new(path).map_err(|error| error.to_string())?;
    // SAFETY: the name is a C string; an image has no constructors besides the compiler's.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    if handle.is_null() { Err(last_error()) } else { Ok(handle) }
}

/// An entry of a loaded library.
pub(crate) fn entry(handle: *mut c_void, name: &CStr) -> Result<Entry, String> {
    let symbol = symbol(handle, name)?;
    // SAFETY: the symbol of this name is a function of this type in every image.
    Ok(unsafe { std::mem::transmute::<*mut c_void, Entry>(symbol) })
}

/// The address of a function of a loaded library.
pub(crate) fn symbol(handle: *mut c_void, name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: the handle is that of a loaded library, the name a C string.
    let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if symbol.is_null() { Err(last_error()) } else { Ok(symbol) }
}

fn last_error() -> String {
    // SAFETY: returns null or a C string that is valid until the next call on this thread.
    let message = unsafe { libc::dlerror() };
    if message.is_null() {
        return "no reason given".to_owned();
    }
    // SAFETY: not null, as above.
    unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
}
