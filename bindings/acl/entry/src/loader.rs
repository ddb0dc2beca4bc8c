//! The calls of the system's loader.

use std::ffi::{CStr, CString, c_void};
use std::path::{Path, PathBuf};

/// A library that is loaded, and stays so.
pub(crate) struct Library(*mut c_void);

/// Among which names a library finds what it needs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Names {
    /// Those of the process; it adds none to them.
    OfProcess,
    /// Its own and those of what it loads: no name of the process, so that libraries of equal names do not meet.
    OfItsOwn,
}

impl Library {
    /// Loads a file. Every symbol that it needs is looked up at once, and one that is not there is an error.
    pub(crate) fn open(file: &Path, names: Names) -> Result<Self, String> {
        let text = CString::new(file.as_os_str().as_encoded_bytes())
            .map_err(|_| format!("{} has a zero byte in its name", file.display()))?;
        let flags = libc::RTLD_NOW | libc::RTLD_LOCAL;
        let handle = match names {
            // SAFETY: the name is a string; whoever names a plug-in trusts what it does when it is loaded.
            Names::OfProcess => unsafe { libc::dlopen(text.as_ptr(), flags) },
            // SAFETY: as above.
            Names::OfItsOwn => unsafe { libc::dlmopen(libc::LM_ID_NEWLM, text.as_ptr(), flags) },
        };
        if handle.is_null() { Err(loader_says(file)) } else { Ok(Self(handle)) }
    }

    /// The address of a function; `None`: it has none of this name.
    pub(crate) fn symbol(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the library is loaded and stays so, and the name is a string.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }
}

/// Why the last call of the loader failed.
fn loader_says(file: &Path) -> String {
    // SAFETY: returns null, or a string that is valid until the next call of the loader on this thread.
    let message = unsafe { libc::dlerror() };
    if message.is_null() {
        return format!("{} cannot be loaded", file.display());
    }
    // SAFETY: not null, as above.
    unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
}

/// The file that this code was loaded from, without links in its path.
pub(crate) fn own_file() -> Option<PathBuf> {
    // SAFETY: all fields of the structure may be zero.
    let mut found = unsafe { std::mem::zeroed::<libc::Dl_info>() };
    let here = own_file as *const c_void;
    // SAFETY: the place is valid, and any address may be asked for.
    if unsafe { libc::dladdr(here, &raw mut found) } == 0 || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name is a string that lives as long as the library.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    Path::new(name.to_str().ok()?).canonicalize().ok()
}
