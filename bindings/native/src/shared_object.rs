//! Shared objects: loaded from a file or from bytes, unloaded on drop.

use std::ffi::{CStr, CString, c_void};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use pto_host::{check_shared_object, checked_shared_object};

use crate::failure::{Failure, FailureKind};

/// A loaded shared object.
#[derive(Debug)]
pub struct SharedObject {
    handle: NonNull<c_void>,
    name: String,
}

// SAFETY: the handle is used for dlsym and dlclose, which any thread may call.
unsafe impl Send for SharedObject {}
// SAFETY: as for Send.
unsafe impl Sync for SharedObject {}

impl SharedObject {
    /// Loads a file. Its constructors run, and it is trusted as any code of this process.
    ///
    /// # Errors
    /// `LOAD_FAILED`, with what the loader says.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        // Without a slash the loader would look elsewhere.
        let full = path.canonicalize().map_err(|error| refused(&name, &error.to_string()))?;
        let full = checked_shared_object(&full).map_err(|why| unusable(&name, &why))?;
        load(&full, name)
    }

    /// Loads bytes; `name` is what messages call them. The same bytes loaded twice are two objects, each with its own
    /// variables.
    ///
    /// # Errors
    /// `LOAD_FAILED`, with what the loader says.
    pub fn from_bytes(bytes: &[u8], name: &str) -> Result<Self, Failure> {
        check_shared_object(bytes).map_err(|why| unusable(name, &why))?;
        let io = |error: std::io::Error| refused(name, &error.to_string());
        // SAFETY: the name is a C string; the call touches no memory of ours.
        let fd = unsafe { libc::memfd_create(c"pto-code".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io(std::io::Error::last_os_error()));
        }
        // SAFETY: memfd_create has just made it, and it has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut file = File::from(fd);
        file.write_all(bytes).map_err(io)?;
        load(&unique_path(file.as_raw_fd()), name.to_owned())
    }

    /// The address of a symbol; `None`: it has none of this name.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<NonNull<c_void>> {
        let name = CString::new(name).ok()?;
        // SAFETY: the handle is open as long as `self` lives; the name is a C string.
        NonNull::new(unsafe { libc::dlsym(self.handle.as_ptr(), name.as_ptr()) })
    }

    /// The address of a function.
    ///
    /// # Errors
    /// `SYMBOL_MISSING`.
    pub fn function(&self, name: &str) -> Result<NonNull<c_void>, Failure> {
        self.symbol(name).ok_or_else(|| {
            let message = format!("{} has no function `{name}`", self.name);
            Failure::new(FailureKind::SYMBOL_MISSING, message)
        })
    }

    /// What messages call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for SharedObject {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and nothing uses it afterwards.
        unsafe { libc::dlclose(self.handle.as_ptr()) };
    }
}

/// The loader recognises what it has by its path, and an unloaded object may stay (symbols that are unique in a
/// process keep it). A number of a closed file comes again, so the path says which load it is: as `/./` and `//`.
fn unique_path(fd: i32) -> CString {
    static LOADS: AtomicU32 = AtomicU32::new(0);
    let load = LOADS.fetch_add(1, Ordering::Relaxed);
    let bits = u32::BITS - load.leading_zeros();
    let number: String =
        (0..bits).map(|bit| if load >> bit & 1 == 1 { "./" } else { "/" }).collect();
    let path = format!("/proc/self/fd/{number}./{fd}");
    CString::new(path).unwrap_or_default()
}

fn load(path: &CStr, name: String) -> Result<SharedObject, Failure> {
    // What dlerror says belongs to the call before it, on this thread; the lock is for loaders that share it.
    static LOADER: Mutex<()> = Mutex::new(());
    let _loader = LOADER.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // SAFETY: the path is a C string; loading code is what the caller asks for.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    match NonNull::new(handle) {
        Some(handle) => Ok(SharedObject { handle, name }),
        None => Err(refused(&name, &loader_says())),
    }
}

fn loader_says() -> String {
    // SAFETY: no arguments; the text is valid until the next call of the loader on this thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the loader does not say why".to_owned();
    }
    // SAFETY: dlerror returns a C string.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // The path of bytes says nothing to a reader.
    match text.split_once(": ") {
        Some((path, rest)) if path.starts_with("/proc/self/fd") => rest.to_owned(),
        _ => text,
    }
}

/// What the check of the file says, as a failure.
fn unusable(name: &str, why: &str) -> Failure {
    refused(name, &format!("the file {why}"))
}

fn refused(name: &str, why: &str) -> Failure {
    Failure::new(FailureKind::LOAD_FAILED, format!("{name} cannot be loaded: {why}"))
}

#[cfg(test)]
mod tests {
    use super::{SharedObject, unique_path};
    use crate::failure::FailureKind;

    #[test]
    fn what_is_no_shared_object_is_named() {
        let failure = SharedObject::from_bytes(b"no ELF", "kernels/add.so").unwrap_err();
        assert!(failure.is(FailureKind::LOAD_FAILED));
        assert!(failure.message.starts_with("kernels/add.so cannot be loaded: "), "{failure}");
        assert!(!failure.message.contains("/proc"), "{failure}");
        assert!(SharedObject::open("/no/such.so".as_ref()).is_err());
    }

    /// The loader would end the process with SIGBUS.
    #[test]
    fn a_part_of_a_shared_object_is_refused_from_bytes_and_from_a_file() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let library = maps.lines().find(|line| line.ends_with("/libc.so.6")).unwrap();
        let whole = std::fs::read(library.split_whitespace().next_back().unwrap()).unwrap();
        let file = std::env::temp_dir().join(format!("pto-part-{}.so", std::process::id()));
        std::fs::write(&file, &whole[..9000]).unwrap();
        let refused =
            [SharedObject::from_bytes(&whole[..9000], "part.so"), SharedObject::open(&file)];
        std::fs::remove_file(&file).unwrap();
        for failure in refused.map(Result::unwrap_err) {
            assert!(failure.is(FailureKind::LOAD_FAILED), "{failure}");
            let why = "cannot be loaded: the file is no shared object: Invalid ELF section header";
            assert!(failure.message.contains(why), "{failure}");
        }
    }

    #[test]
    fn no_two_loads_have_the_same_path() {
        let paths: std::collections::BTreeSet<_> = (0..100).map(|_| unique_path(3)).collect();
        assert_eq!(paths.len(), 100);
    }
}
