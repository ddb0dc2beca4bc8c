//! The device `a2a3`: an Ascend 910B or 910C, driven through the vendor's libraries, which are loaded at run time.
//!
//! ```text
//! library.rs     which libraries, and where they may be
//! libraries.rs   loads them                             calls.rs     the functions that are used, by their names
//! layouts.rs     the structures that they take          codes.rs     what their codes mean
//! port.rs        one opened device: memory, streams     limits.rs    time-outs, each within the next
//! exchange.rs    which parts of an arena are copied
//! cores.rs       which cores, and where their registers are
//! bring_up.rs    image and kernels reach the device     recovery.rs  reset by force, and the probe
//! run.rs         one launch                            last_known.rs   the cores, after one that failed
//! ```
//! The backend that drives it is `crate::backend::a2a3`.
//!
//! Device memory is not mapped into this process: `dma.rs` copies. The runtime's arena has a copy on this side, of
//! which the parts that both sides use are copied before and after a launch (docs/how-to/hardware.md, docs/decisions/ascend-device.md).

pub(crate) mod bring_up;
pub(crate) mod calls;
pub(crate) mod codes;
pub(crate) mod cores;
pub(crate) mod dma;
pub(crate) mod error;
mod exchange;
pub(crate) mod last_known;
mod layouts;
mod libraries;
pub(crate) mod library;
pub(crate) mod limits;
pub(crate) mod port;
mod recovery;
pub(crate) mod run;

use std::ffi::{CStr, c_void};
use std::path::Path;

pub use error::A2a3Error;
pub use library::{HOME_VARIABLE, Library};

/// Loads the vendor's libraries and finds every function, without taking a device. `home` is the folder of CANN; `None`:
/// `$ASCEND_HOME_PATH`, else the folders of `LD_LIBRARY_PATH`.
///
/// # Errors
/// `MissingLibrary`, `MissingSymbols`, `OwnLibrary`, `Version`.
pub fn check(home: Option<&Path>) -> Result<(), A2a3Error> {
    calls::Calls::load(library::home_of(home).as_deref()).map(|_| ())
}

/// A function of the vendor's `libruntime.so`, by its name, of the file that a device uses: a stand-in for these libraries has functions of its own.
/// `None`: the library has none of this name.
///
/// # Errors
/// `MissingLibrary`, `OwnLibrary`.
pub fn function(home: Option<&Path>, name: &CStr) -> Result<Option<*mut c_void>, A2a3Error> {
    calls::function(library::home_of(home).as_deref(), name)
}
