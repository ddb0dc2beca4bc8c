//! Stands in for the vendor's libraries, where there is no Ascend device: the functions that the device `a2a3` of `pto-host`
//! calls, under the same names, in one library that lies under the names of all three.
//!
//! ```text
//! acl.rs      aclrt*: devices, memory, streams      checks.rs   every structure, byte by byte
//! runtime.rs  rt*, rts*: binaries and launches      faults.rs   errors that are injected
//! hal.rs      hal*: cores and registers             ledger.rs   what is taken and not given back
//! machine.rs  the state of it all                   emulator.rs the process that plays AICPUs and AICores
//! memory.rs   device memory: a file without a name  json.rs     the description of a firmware
//! die.rs      what the device has
//! ```
//! It shares no code with the host that it checks: sizes and offsets stand here a second time, from the facts of the interface.
//! Environment: `PTO_STAND_IN_HOME` (the folder with `bin/pto-cann-emulator`; usually found next to the library),
//! `PTO_STAND_IN_CLUSTERS` (4), `PTO_STAND_IN_FAULTS` (see `faults.rs`).

mod acl;
mod checks;
mod die;
mod emulator;
mod faults;
mod hal;
mod json;
pub mod ledger;
mod machine;
mod memory;
mod runtime;

/// A code of the interface.
type Code = i32;
