//! The part of the host library that all other languages share: kernels and builders as machine code, and `class Runtime`.
//!
//! ```text
//! kernels.rs        a function, a shared object (shared_object.rs) or a relocatable one (relocatable.rs) as a Kernel
//! kernel_table.rs   the kernels that a shared object lists
//! constants.rs      constants that an object has, read from its file
//! program.rs        the native kernels of a program file
//! builders.rs       builder programs that are registered and removed while the device is open
//! draft.rs          a graph that is collected without a borrow of the device
//! device.rs         a device for use from any thread
//! stitch/           what sessions and programs of the host need in other languages: tensors that calls take, names
//! field/            class Runtime of include/runtime.h: orchestrations, AICPU builder plugins, copy-back
//! guard.rs          calls of foreign code that return an error if the code raises a signal
//! raw_access.rs     programs that follow addresses of the device as pointers
//! failure.rs        code, name, message, remedy
//! foreign/          what all of them and the images share: the functions that builders in C and C++ call, and the bytes that they see
//! ```
//! The C interface (`bindings/c`) and the Python package (`bindings/python`) are built on this crate.
//! Without its features it is [`foreign`] alone, which needs no `std`: that is what images take.
#![cfg_attr(not(feature = "kernels"), no_std)]

#[cfg(feature = "devices")]
mod builders;
#[cfg(feature = "kernels")]
pub mod constants;
#[cfg(feature = "devices")]
mod device;
#[cfg(feature = "devices")]
mod draft;
#[cfg(feature = "kernels")]
mod failure;
#[cfg(feature = "devices")]
pub mod field;
pub mod foreign;
#[cfg(feature = "devices")]
mod guard;
#[cfg(feature = "kernels")]
pub mod kernel_table;
#[cfg(feature = "kernels")]
pub mod kernels;
#[cfg(feature = "kernels")]
pub mod program;
#[cfg(feature = "devices")]
mod raw_access;
#[cfg(feature = "kernels")]
mod relocatable;
#[cfg(feature = "kernels")]
mod shared_object;
#[cfg(feature = "devices")]
pub mod stitch;

#[cfg(feature = "devices")]
pub use builders::{HostedBuilders, Program};
#[cfg(feature = "devices")]
pub use device::{SharedDevice, building, open_device, open_qemu, streaming};
#[cfg(feature = "devices")]
pub use draft::{GraphDraft, checked};
#[cfg(feature = "kernels")]
pub use failure::{Failure, FailureKind, HOST_CODES};
#[cfg(feature = "devices")]
pub use guard::{ForeignFn, call_guarded, call_guarded_often, called_back, copy_guarded};
#[cfg(feature = "devices")]
pub use raw_access::{Decoy, Watched};
#[cfg(feature = "kernels")]
pub use shared_object::SharedObject;
