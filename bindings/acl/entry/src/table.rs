//! Where the calls of each function go.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

use pto_acl_interface::{ArgumentRule, Check};

use super::refusing;
use super::row::EntryPoint;

/// Where the calls go, in the order of `ROWS`. Before a plug-in is loaded they are refused.
pub(crate) static TABLE: [AtomicPtr<c_void>; ROWS.len()] =
    [const { AtomicPtr::new(refusing::NO_PLUGIN) }; ROWS.len()];

/// Lets a function go there from now on.
pub(crate) fn set(index: usize, target: *mut c_void) {
    // Release: pairs with the Acquire load in `target`. The entry points load the entry with an ordinary load, whose target depends on its value.
    TABLE[index].store(target, Ordering::Release);
}

/// Where the calls of a function go.
pub(crate) fn target(index: usize) -> *mut c_void {
    // Acquire: pairs with the Release in `set`.
    TABLE[index].load(Ordering::Acquire)
}

include!(concat!(env!("OUT_DIR"), "/rows.rs"));
