//! A function of the interface, as the table of the entry points has it.

use std::ffi::CStr;

use pto_acl_interface::Check;

/// What the build knows of a function.
pub(crate) struct EntryPoint {
    pub(crate) name: &'static CStr,
    /// Whether it returns an error code.
    pub(crate) has_code: bool,
    /// What its arguments have to be, whatever the device is.
    pub(crate) checks: &'static [Check],
}
