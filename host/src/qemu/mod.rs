//! The device `qemu`: the firmware image on an emulated AArch64 machine, whose memory is shared with this
//! process.
//!
//! ```text
//! machine.rs  boot, launch, wait                 boot.rs     the boot block, from this side
//! process.rs  owns the QEMU process              memory.rs   RAM, shared with the machine
//! ```
//! The backend that drives it is `crate::backend::qemu`.
//!
//! GM is what the image and its stacks leave of RAM. Its addresses are the machine's; here everything goes through
//! windows that know both. Nothing has a name: RAM and image are files without one, and the process dies with the
//! thread that started it, so that nothing is left however this process ends.

pub mod boot;
pub mod machine;
pub mod memory;
pub mod process;

pub use machine::{BootTimes, QemuError, QemuMachine, QemuOptions, Timeouts};
