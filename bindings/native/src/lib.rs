//! What other languages need of the host: code in C and C++ on the simulator, and `class Runtime`.
//!
//! ```text
//! kernels.rs        a function, a shared object (shared_object.rs) or a relocatable one (relocatable.rs) as a Kernel
//! kernel_table.rs   the kernels that a shared object lists
//! builders.rs       builder programs that come and go
//! draft.rs          a graph, written down without a borrow of the device
//! device.rs         a device for use from any thread
//! field/            class Runtime of include/runtime.h: orchestrations, AICPU builder plugins, copy-back
//! guard.rs          calls of foreign code that come back from a signal
//! failure.rs        code, name, message, remedy
//! ```
//! The C interface (`bindings/c`) and the Python package (`bindings/python`) stand on it.

#[cfg(feature = "devices")]
mod builders;
#[cfg(feature = "devices")]
mod device;
#[cfg(feature = "devices")]
mod draft;
mod failure;
#[cfg(feature = "devices")]
pub mod field;
#[cfg(feature = "devices")]
mod guard;
pub mod kernel_table;
pub mod kernels;
mod relocatable;
mod shared_object;

#[cfg(feature = "devices")]
pub use builders::{Builders, Program};
#[cfg(feature = "devices")]
pub use device::{SharedDevice, building, open_device, streaming};
#[cfg(feature = "devices")]
pub use draft::{DraftTask, GraphDraft, checked};
pub use failure::{Failure, FailureKind, HOST_CODES};
#[cfg(feature = "devices")]
pub use guard::{ForeignFn, call_guarded, call_guarded_often, called_back};
pub use shared_object::SharedObject;
