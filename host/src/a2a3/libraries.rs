//! Loads the vendor's libraries, by their absolute paths, and hides their symbols from the rest of the process. A library
//! stays loaded for as long as the process lives: the vendor's libraries start threads that nothing ends.

use std::ffi::{CStr, c_void};
use std::path::{Path, PathBuf};

use crate::shared_object::checked_shared_object;

use super::error::A2a3Error;
use super::library::Library;

/// What only the library of `bindings/acl` exports.
const OURS: &CStr = c"ptoAclLaunch";

/// A library that is loaded.
pub(super) struct Loaded {
    handle: *mut c_void,
    /// The file, as it was found.
    pub(super) path: PathBuf,
}

impl Loaded {
    /// Loads the first of the files of a library that can be loaded.
    pub(super) fn find(library: Library, home: Option<&Path>) -> Result<Self, A2a3Error> {
        let mut tried = Vec::new();
        for path in library.places(home) {
            match Self::open(&path) {
                Ok(loaded) if loaded.symbol(OURS).is_some() => {
                    return Err(A2a3Error::OwnLibrary { path });
                }
                Ok(loaded) => return Ok(loaded),
                Err(why) => tried.push(why),
            }
        }
        Err(A2a3Error::MissingLibrary { library, tried })
    }

    fn open(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        if !path.is_absolute() {
            return Err(format!("{shown}: the path is not absolute"));
        }
        if !path.is_file() {
            return Err(format!("{shown}: there is no such file"));
        }
        let name = checked_shared_object(path).map_err(|why| format!("{shown}: the file {why}"))?;
        let flags = libc::RTLD_NOW | libc::RTLD_LOCAL;
        // SAFETY: the name is a string; the vendor's constructors are trusted, as every caller of CANN trusts them.
        let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
        if handle.is_null() {
            return Err(loader_says(&shown.to_string()));
        }
        Ok(Self { handle, path: path.into() })
    }

    /// The address of a function; `None`: it has none of this name.
    pub(super) fn symbol(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the library is loaded and stays so, and the name is a string.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }
}

/// Why the last call of the loader failed; it names the file in most cases.
fn loader_says(path: &str) -> String {
    // SAFETY: returns null, or a string that is valid until the next call of the loader on this thread.
    let message = unsafe { libc::dlerror() };
    if message.is_null() {
        return format!("{path}: no reason given");
    }
    // SAFETY: not null, as above.
    let message = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
    if message.contains(path) { message } else { format!("{path}: {message}") }
}

#[cfg(test)]
mod tests {
    use super::Loaded;
    use crate::a2a3::A2a3Error;
    use crate::a2a3::Library;
    use std::path::Path;

    #[test]
    fn the_named_folder_comes_first_and_every_place_is_told() {
        let home = Path::new("/no/such/cann");
        assert_eq!(Library::Acl.places(Some(home))[0], home.join("lib64/libacl_rt.so"));
        let error = Loaded::find(Library::Hal, Some(home));
        let error = error.err().expect("nobody has this folder");
        let A2a3Error::MissingLibrary { tried, .. } = &error else { panic!("{error}") };
        assert!(tried.len() >= 2, "{tried:?}");
        let text = error.to_string();
        assert!(text.starts_with("libascend_hal.so of CANN cannot be loaded"), "{text}");
        let place = "/no/such/cann/lib64/libascend_hal.so: there is no such file";
        assert!(text.contains(place) && text.contains("ASCEND_HOME_PATH"), "{text}");
    }

    #[test]
    fn a_path_that_depends_on_the_current_folder_is_refused() {
        let error = Loaded::find(Library::Runtime, Some(Path::new("cann")));
        let text = error.err().expect("it is relative").to_string();
        assert!(text.contains("cann/lib64/libruntime.so: the path is not absolute"), "{text}");
    }
}
