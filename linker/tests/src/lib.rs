//! Boots the firmware images on an emulated machine and runs graphs on them.
//!
//! ```text
//! images.rs   builds and reads the images: ELF, kernel blob     session.rs  kernels, tables, arena, runs
//! code.rs     what code there is in an image                    graphs.rs   graphs of known shape
//! goldens.rs  tables of numbers that are kept
//! ```
//! The machine itself (memory, QEMU, boot block, launch) is `pto_host::virt`.

pub mod code;
pub mod goldens;
pub mod graphs;
pub mod images;
pub mod session;

pub use pto_host::virt::{boot, machine, memory, qemu};

pub use images::{Images, KernelBlob};
pub use pto_host::virt::{VirtError, VirtMachine, VirtOptions};
pub use session::{Session, Setup};
