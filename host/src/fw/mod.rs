//! Firmware images on this side: what an image file is, whether a device may have it, and which one it has.
//!
//! ```text
//! file --inspect--> Image --verify--> (fits this host) --suits--> (fits the device) --flash--> Store
//!   (elf.rs, identity.rs, seal.rs)    (image.rs)                                              (store.rs, disk.rs)
//! ```
//! An image is one of four: firmware for `qemu`, firmware for the CANN driver stack, a blob of kernels, or a program for AICores, which has such a
//! blob and the worker loop ([`ImageKind`], `aicore` puts it together). A device `qemu` needs a firmware and a blob; each flash makes a new [`Generation`] of the
//! pair, so that a rollback brings both back.

mod aicore;
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

pub use aicore::{AicoreKernel, AicoreWorker, pack_aicore, text_bytes};
pub use blob::{BlobKernel, KernelBlob};
pub use elf::{Section, Sizes};
pub use error::{ImageError, StoreError};
pub use image::Image;
pub use kind::{FlashDevice, ImageKind, Machine, Tracing};
pub use seal::{Seal, seal};
pub use store::{DeviceState, Entry, Flashed, Generation, HOME_VARIABLE, Store};
