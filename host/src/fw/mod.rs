//! Firmware images on this side: what an image file is, whether a device may have it, and which one it has.
//!
//! ```text
//! file --inspect--> Image --verify--> (fits this host) --suits--> (fits the device) --flash--> Store
//!   (elf.rs, identity.rs, seal.rs)    (image.rs)                                              (store.rs, disk.rs)
//! ```
//! An image is one of three: firmware for `virt`, firmware for the CANN driver stack, or a blob of kernels
//! ([`ImageKind`]). A device `virt` needs a firmware and a blob; each flash makes a new [`Generation`] of the
//! pair, so that a rollback brings both back.

mod blob;
mod disk;
mod elf;
mod error;
mod identity;
mod image;
mod kind;
mod seal;
mod store;
#[cfg(test)]
mod tests;

pub use blob::{BlobKernel, KernelBlob};
pub use elf::{Section, Sizes};
pub use error::{ImageError, StoreError};
pub use image::Image;
pub use kind::{FlashDevice, ImageKind, Machine, Tracing};
pub use seal::{Seal, seal};
pub use store::{DeviceState, Entry, Flashed, Generation, HOME_VARIABLE, Store};
