//! Kernels in tile IR with the vendor's library, which does not know it: a call that loads such a file is refused by name. Every other file goes to the
//! vendor's library.

use std::ffi::{CStr, CString, c_char, c_void};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicPtr, Ordering};

use pto_acl_interface::TileCode;

use super::errors;
use super::refusing;
use super::row::EntryPoint;

/// As many bytes of a file are looked at.
const FIRST: u64 = 4096;

type FromFile = extern "C" fn(*const c_char, *mut c_void, *mut c_void) -> i32;
type FromData = extern "C" fn(*const u8, usize, *mut c_void, *mut c_void) -> i32;

/// A function that loads code: its name, and the vendor's function, or its substitute.
struct Loading {
    name: &'static CStr,
    vendors: AtomicPtr<c_void>,
}

impl Loading {
    const fn new(name: &'static CStr) -> Self {
        Self { name, vendors: AtomicPtr::new(refusing::NO_PLUGIN) }
    }

    /// The code of a file that is refused; `None`: it is not in tile IR.
    fn refuse(&self, first: &[u8]) -> Option<i32> {
        let form = match TileCode::of(first)? {
            TileCode::Program => "a program file of this project",
            TileCode::Text => "a text of kernels in tile IR",
        };
        let text = format!(
            "the code is {form}, which the library of the device a2a3 cannot load: that is the vendor's, and the tile machine is in the firmware of this project. \
             Run the program with `pto program run FILE --device a2a3`, or set PTO_ACL_DEVICE to a2a3sim or qemu"
        );
        errors::keep(self.name, refusing::UNSUPPORTED, &text);
        Some(refusing::UNSUPPORTED)
    }

    fn vendors(&self) -> *mut c_void {
        // Acquire: pairs with the Release in `watch`.
        self.vendors.load(Ordering::Acquire)
    }
}

static FROM_FILE: Loading = Loading::new(c"aclrtBinaryLoadFromFile");
static FROM_DATA: Loading = Loading::new(c"aclrtBinaryLoadFromData");
static FROM_FILE_OF_RUNTIME: Loading = Loading::new(c"rtsBinaryLoadFromFile");

/// What a function of the vendor's library is called through: itself, or here what looks at the code before.
pub(crate) fn watch(row: &EntryPoint, vendors: *mut c_void) -> *mut c_void {
    let all = [
        (&FROM_FILE, from_file as *mut c_void),
        (&FROM_DATA, from_data as *mut c_void),
        (&FROM_FILE_OF_RUNTIME, from_file_of_runtime as *mut c_void),
    ];
    let Some((loading, own)) = all.into_iter().find(|(loading, _)| loading.name == row.name) else {
        return vendors;
    };
    // Release: pairs with the Acquire in `vendors`.
    loading.vendors.store(vendors, Ordering::Release);
    own
}

extern "C" fn from_file(path: *const c_char, options: *mut c_void, binary: *mut c_void) -> i32 {
    load_file(&FROM_FILE, path, options, binary)
}

extern "C" fn from_file_of_runtime(
    path: *const c_char,
    options: *mut c_void,
    binary: *mut c_void,
) -> i32 {
    load_file(&FROM_FILE_OF_RUNTIME, path, options, binary)
}

fn load_file(
    loading: &Loading,
    path: *const c_char,
    options: *mut c_void,
    binary: *mut c_void,
) -> i32 {
    let first = if path.is_null() { Vec::new() } else { first_of(path) };
    loading.refuse(&first).unwrap_or_else(|| {
        // SAFETY: the vendor's function of this name has this type, and its substitute reads nothing.
        let vendors = unsafe { std::mem::transmute::<*mut c_void, FromFile>(loading.vendors()) };
        vendors(path, options, binary)
    })
}

extern "C" fn from_data(
    data: *const u8,
    bytes: usize,
    options: *mut c_void,
    binary: *mut c_void,
) -> i32 {
    let first = bytes.min(usize::try_from(FIRST).unwrap_or(0));
    let first = if data.is_null() {
        &[]
    } else {
        // SAFETY: the caller passes as many bytes, and changes none during the call.
        unsafe { std::slice::from_raw_parts(data, first) }
    };
    FROM_DATA.refuse(first).unwrap_or_else(|| {
        // SAFETY: as in `load_file`.
        let vendors = unsafe { std::mem::transmute::<*mut c_void, FromData>(FROM_DATA.vendors()) };
        vendors(data, bytes, options, binary)
    })
}

/// The first bytes of a file; none if it cannot be read, which the vendor's library reports.
fn first_of(path: *const c_char) -> Vec<u8> {
    // SAFETY: the caller passes a string.
    let path = CString::from(unsafe { CStr::from_ptr(path) });
    let path = std::ffi::OsStr::from_bytes(path.as_bytes());
    let mut first = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(FIRST).read_to_end(&mut first));
    if read.is_ok() { first } else { Vec::new() }
}
