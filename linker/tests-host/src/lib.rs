//! Boots the firmware images on an emulated machine and runs graphs on them.
//!
//! ```text
//! images.rs   builds and reads the images: ELF, kernel blob     memory.rs  RAM, shared with the machine
//! code.rs     what code there is in an image
//! qemu.rs     owns the QEMU process                             boot.rs    the boot block, from the host's side
//! machine.rs  VirtMachine: boot, launch, wait                   session.rs kernels, tables, arena, runs
//! graphs.rs   graphs of known shape, as image and as words
//! ```
//! `memory`, `qemu`, `boot` and `machine` are what the host's device `virt` is made of.

pub mod boot;
pub mod code;
pub mod graphs;
pub mod images;
pub mod machine;
pub mod memory;
pub mod qemu;
pub mod session;

pub use images::{Images, KernelBlob};
pub use machine::{VirtError, VirtMachine, VirtOptions};
pub use session::{Session, Setup};
