//! What other languages need of the host: code in C and C++ on the simulator, and `class Runtime`.
//!
//! ```text
//! kernels.rs        a function, a shared object (shared_object.rs) or a relocatable one (relocatable.rs) as a Kernel
//! builders.rs       builder programs that come and go
//! draft.rs          a graph, written down without a borrow of the device
//! device.rs         a device for use from any thread
//! field/            class Runtime of include/runtime.h: orchestrations, AICPU builder plugins, copy-back
//! guard.rs          calls of foreign code that come back from a signal
//! failure.rs        code, name, message, remedy
//! ```
//! The C interface (`bindings/c`) and the Python package (`bindings/python`) stand on it.

mod builders;
mod device;
mod draft;
mod failure;
pub mod field;
mod guard;
pub mod kernels;
mod relocatable;
mod shared_object;

pub use builders::{Builders, Program};
pub use device::{SharedDevice, building, streaming};
pub use draft::{DraftTask, GraphDraft, checked};
pub use failure::{Failure, FailureKind, HOST_CODES};
pub use shared_object::SharedObject;
