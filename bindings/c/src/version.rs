//! Versions: of the library, and of the interface that host and firmware share.

use std::ffi::{CStr, c_char};

use pto_host::abi::layout::LAYOUT_HASH;
use pto_host::abi::runtime::{ABI_MAJOR, ABI_MINOR};

use crate::error::answer_to;

/// Versions of the library.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Versions {
    /// Of this header: raised when a function or structure changes its meaning.
    pub interface: u32,
    /// Of the interface that host and firmware share; firmware must have the same.
    pub abi_major: u32,
    /// Of the interface that host and firmware share; firmware must have at least this.
    pub abi_minor: u32,
    /// Not used; zero.
    pub reserved: u32,
    /// Hash of the layouts that host and firmware share.
    pub layout_hash: u64,
}

/// Version of this header.
pub const PTO_INTERFACE_VERSION: u32 = 1;

const TEXT: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(text) => text,
        Err(_) => c"",
    };

/// Gives the versions of the library; compare `interface` with PTO_INTERFACE_VERSION of the header.
///
/// Fails when `versions` is null. Thread safety: any thread.
///
/// # Safety
/// `versions` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_versions(versions: *mut Versions) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe {
        answer_to(versions, "versions", || {
            let value = Versions {
                interface: PTO_INTERFACE_VERSION,
                abi_major: ABI_MAJOR.into(),
                abi_minor: ABI_MINOR.into(),
                reserved: 0,
                layout_hash: LAYOUT_HASH,
            };
            Ok(value)
        })
    }
}

/// The release, such as "0.1.0".
///
/// Thread safety: any thread. The text is valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn pto_release() -> *const c_char {
    TEXT.as_ptr()
}
