//! What is taken and not given back, for tests: `pto_stand_in_ledger` and `pto_stand_in_inject`.

use std::ffi::{CStr, c_char};

use crate::faults::Faults;
use crate::machine::machine;

/// What is open.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Calls of `aclInit` without their end.
    pub inits: u64,
    /// Contexts.
    pub contexts: u64,
    /// Blocks of device memory.
    pub blocks: u64,
    /// Streams.
    pub streams: u64,
    /// Binaries.
    pub binaries: u64,
    /// Processes that play the device.
    pub processes: u64,
    /// AICore binaries, which nothing gives back.
    pub registered: u64,
    /// Launches so far.
    pub launches: u64,
    /// Resets by force so far.
    pub resets: u64,
}

/// Writes what is open to `to`.
///
/// # Safety
/// `to` points to a [`Ledger`].
// SAFETY: the name is ours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_stand_in_ledger(to: *mut Ledger) {
    let machine = machine();
    let ledger = Ledger {
        inits: machine.inits.into(),
        contexts: machine.contexts.into(),
        blocks: machine.memory.as_ref().map_or(0, |memory| memory.blocks.len() as u64),
        streams: machine.streams.len() as u64,
        binaries: machine.binaries.len() as u64,
        processes: u64::from(machine.emulator.is_some()),
        registered: machine.registered.len() as u64,
        launches: machine.launches,
        resets: machine.resets,
    };
    // SAFETY: by this function's contract.
    unsafe { to.write(ledger) };
}

/// Replaces the faults that are still to come.
///
/// # Safety
/// `faults` is a string.
// SAFETY: the name is ours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_stand_in_inject(faults: *const c_char) {
    // SAFETY: by this function's contract.
    let text = unsafe { CStr::from_ptr(faults) }.to_string_lossy();
    machine().faults = Faults::parse(&text);
}
