//! The calls of the system's loader.

use std::ffi::{CStr, c_void};
use std::path::{Path, PathBuf};

use super::shared_object::checked_shared_object;

/// A library that is loaded, and stays so.
pub(crate) struct LoadedLibrary(*mut c_void);

/// Among which names a library finds what it needs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SymbolScope {
    /// Those of the process; it adds none to them.
    OfProcess,
    /// First its own and those of what it loads, and then those of the process: its calls of a function that it has reach its own, whatever else
    /// has the name.
    OfItsOwn,
}

impl LoadedLibrary {
    /// Loads a file. Every symbol that it needs is looked up at once, and one that is not there is an error.
    pub(crate) fn open(file: &Path, names: SymbolScope) -> Result<Self, String> {
        let checked = checked_shared_object(file);
        let text = checked.map_err(|why| format!("the file {} {why}", file.display()))?;
        let scope = match names {
            SymbolScope::OfProcess => 0,
            SymbolScope::OfItsOwn => libc::RTLD_DEEPBIND,
        };
        let flags = libc::RTLD_NOW | libc::RTLD_LOCAL | scope;
        // SAFETY: the name is a string; the user who names a plug-in trusts its code.
        let handle = unsafe { libc::dlopen(text.as_ptr(), flags) };
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

/// Whether a function is one of this library.
pub(crate) fn is_own(function: *const c_void) -> bool {
    let base = |address: *const c_void| described(address).map(|found| found.dli_fbase);
    base(function).is_some_and(|found| Some(found) == base(is_own as *const c_void))
}

/// What the loader knows of an address.
fn described(address: *const c_void) -> Option<libc::Dl_info> {
    // SAFETY: all fields of the structure may be zero.
    let mut found = unsafe { std::mem::zeroed::<libc::Dl_info>() };
    // SAFETY: the pointer is valid, and any address may be asked for.
    let is_known = unsafe { libc::dladdr(address, &raw mut found) } != 0;
    is_known.then_some(found)
}

/// The file that this code was loaded from, without links in its path.
pub(crate) fn own_file() -> Option<PathBuf> {
    let found = described(own_file as *const c_void)?;
    if found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name is a string that lives as long as the library.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    Path::new(name.to_str().ok()?).canonicalize().ok()
}
