//! The library that takes the calls.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};

/// Arguments of one call, at most: six in registers, the others on the stack.
pub(crate) const MOST_ARGUMENTS: usize = 14;

/// A function of the interface, as this machine calls any of them: up to six words in registers, a number, the other words on the stack.
/// A function that takes fewer does not look at the others.
type EntryPointFn =
    extern "C" fn(u64, u64, u64, u64, u64, u64, f64, u64, u64, u64, u64, u64, u64, u64, u64) -> u64;

/// The functions that a record calls.
pub(crate) struct AclLibrary {
    functions: BTreeMap<String, EntryPointFn>,
    message: Option<extern "C" fn() -> *const c_char>,
}

impl AclLibrary {
    /// Loads the library, and finds these functions.
    pub(crate) fn load<'n>(names: impl Iterator<Item = &'n str>) -> Result<Self, String> {
        // SAFETY: the name is a string; the user of this program trusts the library that it loads.
        let handle =
            unsafe { libc::dlopen(c"libascendcl.so".as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if handle.is_null() {
            // SAFETY: null, or a string that is valid until the next call of the loader on this thread.
            let why = unsafe { libc::dlerror() };
            // SAFETY: as above; the loader has failed, so that there is one.
            let why = unsafe { CStr::from_ptr(why) }.to_string_lossy().into_owned();
            return Err(format!(
                "the library cannot be loaded: {why}; start this program with `pto compat cann replay`"
            ));
        }
        let find = |name: &str| {
            let text = CString::new(name).ok()?;
            // SAFETY: the library is loaded and stays so, and the name is a string.
            let address = unsafe { libc::dlsym(handle, text.as_ptr()) };
            (!address.is_null()).then_some(address)
        };
        let mut functions = BTreeMap::new();
        for name in names {
            let address =
                find(name).ok_or_else(|| format!("the library lacks the function {name}"))?;
            // SAFETY: on both machines that this is built for, a C function finds its words and its number where this type puts them.
            let function = unsafe { std::mem::transmute::<*mut c_void, EntryPointFn>(address) };
            functions.insert(name.to_owned(), function);
        }
        let message = find("aclGetRecentErrMsg").map(|address| {
            // SAFETY: the interface has this type for it.
            unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> *const c_char>(address) }
        });
        Ok(Self { functions, message })
    }

    /// Calls a function.
    pub(crate) fn call(&self, name: &str, words: &[u64], number: f64) -> u64 {
        let Some(function) = self.functions.get(name) else { return 0 };
        let mut w = [0; MOST_ARGUMENTS];
        for (argument, word) in w.iter_mut().zip(words) {
            *argument = *word;
        }
        // On AArch64 eight words go into registers: the first two after the number are the seventh and the eighth there as well.
        function(
            w[0], w[1], w[2], w[3], w[4], w[5], number, w[6], w[7], w[8], w[9], w[10], w[11],
            w[12], w[13],
        )
    }

    /// What the library says of the last call of this thread that failed.
    pub(crate) fn message(&self) -> String {
        let text = self.message.map_or(std::ptr::null(), |message| message());
        if text.is_null() {
            return String::new();
        }
        // SAFETY: the interface gives a string that is valid until the next call of this thread.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
        text.lines().next().unwrap_or_default().to_owned()
    }
}
