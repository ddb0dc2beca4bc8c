//! The platform of the image `cann`: the code of a firmware image that is specific to the AICPU of an Ascend device and its
//! driver stack (CANN). The scheduling policy is in `pto_aicpu_fw`, and the builders come from the image.
//!
//! ```text
//! exports.rs    firmware!: entry symbols, identity, panic handler
//! entry.rs      one AICPU instance, from the driver's call to its return
//! install.rs    the image writes itself to where the driver stack looks for libraries
//! launch.rs     LaunchWords -> AcceptedWords: nothing that the host wrote is trusted
//! platform.rs   policy -> control registers            registers.rs  their blocks, a2a3 and a5
//! barrier.rs    the only dsb, isb and dc               coherence.rs  what to maintain when, for the host's DMA
//! builders.rs   what builders read of GM               clock.rs      the system counter
//! logging.rs    log -> the instance's log ring
//! ```
//! An image is one call of [`firmware!`](crate::firmware) in a `cdylib` crate; `linker/images` is the default one. The contract
//! with the driver stack is in [`entry`].
pub mod barrier;
pub mod builders;
pub mod clock;
pub mod coherence;
pub mod entry;
mod exports;
#[cfg(target_os = "linux")]
mod install;
pub mod launch;
pub mod logging;
pub mod platform;
pub mod registers;
