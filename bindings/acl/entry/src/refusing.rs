//! What calls get that no plug-in takes.

use std::ffi::{CString, c_char, c_void};
use std::sync::OnceLock;

use super::row::EntryPoint;

/// The code of a library that cannot work.
const INTERNAL: i32 = 507_000;
/// The code of what a device cannot do.
pub(crate) const UNSUPPORTED: i32 = 207_000;

/// Why there is no plug-in.
static WHY: OnceLock<CString> = OnceLock::new();

/// For each function before anything is loaded.
pub(crate) const NO_PLUGIN: *mut c_void = no_plugin as *mut c_void;

/// What a function returns that no plug-in takes; `None`: there is one that takes it.
pub(crate) fn code_of(target: *mut c_void) -> Option<i32> {
    let is = |function: *mut c_void| target == function;
    if is(NO_PLUGIN) {
        return Some(INTERNAL);
    }
    is(unsupported as *mut c_void).then_some(UNSUPPORTED)
}

extern "C" fn no_plugin() -> i32 {
    INTERNAL
}

extern "C" fn unsupported() -> i32 {
    UNSUPPORTED
}

/// A null pointer, or the number 0.
extern "C" fn nothing() -> usize {
    0
}

extern "C" fn no_number() -> f32 {
    0.0
}

/// `aclGetRecentErrMsg`: every call failed for the one reason.
extern "C" fn why() -> *const c_char {
    WHY.get().map_or(std::ptr::null(), |text| text.as_ptr())
}

/// Keeps why no plug-in could be loaded, for `aclGetRecentErrMsg`.
pub(crate) fn keep(text: &str) {
    WHY.get_or_init(|| CString::new(text.replace('\0', " ")).unwrap_or_default());
}

/// What a function does without a plug-in.
pub(crate) fn without_plugin(row: &EntryPoint) -> *mut c_void {
    match row.name.to_bytes() {
        b"aclGetRecentErrMsg" => why as *mut c_void,
        _ if row.has_code => NO_PLUGIN,
        _ => without_result(row),
    }
}

/// What a function does that the library of a real device lacks.
pub(crate) fn lacking(row: &EntryPoint) -> *mut c_void {
    if row.has_code { unsupported as *mut c_void } else { without_result(row) }
}

fn without_result(row: &EntryPoint) -> *mut c_void {
    match row.name.to_bytes() {
        b"aclFloat16ToFloat" => no_number as *mut c_void,
        _ => nothing as *mut c_void,
    }
}
