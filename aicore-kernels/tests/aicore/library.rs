//! Compiles the worker for this machine, and loads it.

use pto_abi::sync::{AtomicU32, Ordering};
use std::ffi::{CStr, CString, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use super::model::WorkerCalls;

/// The source of the loop.
pub(crate) const WORKER: &str = include_str!("../../aicore/worker.cpp");
const MACHINE: &str = include_str!("../../aicore/on_this_machine.cpp");

/// A loaded worker for one kind of core.
pub(crate) struct Library {
    handle: *mut c_void,
    is_cube: bool,
    file: PathBuf,
}

/// How a worker is entered. A worker that is stuck leaves by a panic of the model, through its frames.
type Entry = unsafe extern "C-unwind" fn(u64, u64);

impl Library {
    /// Compiles this source of the worker; the compiler's words, where it is refused.
    pub(crate) fn build(source: &str, is_cube: bool) -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("pto-worker-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for temporary files");
        let place = |name: &str| folder.join(name);
        fs::write(place("worker.cpp"), source).expect("it is written");
        fs::write(place("on_this_machine.cpp"), MACHINE).expect("it is written");
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let kind = if is_cube { "-D__DAV_CUBE__" } else { "-D__DAV_VEC__" };
        let compiled = Command::new("c++")
            .args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"])
            // A loop without one of its accesses may leave an argument alone.
            .arg("-Wno-unused-parameter")
            .args(["-fPIC", "-shared", "-DPTO_ON_THIS_MACHINE", kind])
            .arg("-I")
            .arg(root.join("aicore"))
            .arg("-I")
            .arg(root.join("../bindings/include"))
            .args([place("worker.cpp"), place("on_this_machine.cpp")])
            .arg("-o")
            .arg(place("worker.so"))
            .output()
            .expect("a C++ compiler is installed: apt-get install g++");
        if !compiled.status.success() {
            fs::remove_dir_all(&folder).expect("the folder is there");
            return Err(String::from_utf8_lossy(&compiled.stderr).into_owned());
        }
        let path = place("worker.so");
        let name = CString::new(path.to_string_lossy().as_bytes()).expect("no zero in a path");
        // SAFETY: the object was just compiled from sources that have no static constructors.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{} does not load", path.display());
        Ok(Self { handle, is_cube, file: path })
    }

    fn symbol(&self, name: &CStr) -> *mut c_void {
        // SAFETY: the library is loaded, and the name is a string.
        let symbol = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        assert!(!symbol.is_null(), "{name:?} is missing");
        symbol
    }

    /// Runs the worker until it leaves. The calls of its machine go to `calls`.
    pub(crate) fn run(&self, calls: &WorkerCalls, flags_base: u64, words: u64) {
        let bind = self.symbol(c"pto_core_bind");
        // SAFETY: `on_this_machine.cpp` declares it so.
        let bind = unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const WorkerCalls)>(bind)
        };
        let entry = if self.is_cube { c"pto_worker_0_mix_aic" } else { c"pto_worker_0_mix_aiv" };
        // SAFETY: `worker.cpp` declares it so.
        let entry = unsafe { std::mem::transmute::<*mut c_void, Entry>(self.symbol(entry)) };
        // SAFETY: the table outlives the call of the entry.
        unsafe { bind(calls) };
        // SAFETY: every access of the worker is a call of the table.
        unsafe { entry(flags_base, words) };
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: loaded by `build`, and nothing of it is used any more.
        unsafe { libc::dlclose(self.handle) };
        let folder = self.file.parent().expect("it was written into a folder");
        fs::remove_dir_all(folder).expect("the folder is there");
    }
}
