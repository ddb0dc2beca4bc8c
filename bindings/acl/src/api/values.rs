//! Data types and half-precision numbers.

use std::ffi::{CStr, c_char};

use crate::common::entry::values;
use crate::device::element::{Element, narrow, widen};

values! {
    // 0 for a type that has no whole bytes.
    fn aclDataTypeSize(data: i32) -> usize, 0, { Ok(Element::of(data).map_or(0, Element::bytes)) }
}

/// Half precision as single precision. Every result is a valid number, so none can report a failure: no fault can be asked for.
// SAFETY: the interface defines this name, and no other function here has the same name.
#[unsafe(no_mangle)]
extern "C" fn aclFloat16ToFloat(half: u16) -> f32 {
    widen(half)
}

/// Single precision as half precision. No fault can be asked for, as above.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn aclFloatToFloat16(value: f32) -> u16 {
    narrow(value)
}

/// Text of the program, or nothing.
pub(super) fn said(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller of the entry point vouches for the zero at the end.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
