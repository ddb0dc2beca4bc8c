//! The program of AICores as one image: the worker, which the driver loads, and kernels, whose code goes to GM.
//!
//! ```text
//! .note.pto     the identity, of the kind "aicore-dav-c220"
//! .blob         KernelBlobHeader | KernelBlobEntry[kernel_count] | the code of each kernel, at multiples of 64 bytes
//! .pto.worker   the worker's ELF file, as the linker made it
//! ```
//! `check.rs` says what an object must be so that a core can run it, `pack.rs` puts objects together.

mod check;
mod pack;

use pto_abi::CoreKind;

pub use check::text_bytes;
pub use pack::pack_aicore;

/// `FwIdentity::kind` of such an image, for an Ascend 910B or 910C.
pub(super) const KIND: [u8; 16] = *b"aicore-dav-c220\0";
/// The section with the worker.
pub(super) const WORKER_SECTION: &str = ".pto.worker";

/// One kernel for an image, as the linker made it.
#[derive(Clone, Copy, Debug)]
pub struct AicoreKernel<'a> {
    /// The kernel's name: 1 to 47 bytes.
    pub name: &'a str,
    /// The kernel's func id, below `MAX_FUNC_ID`.
    pub func_id: u32,
    /// The core kind that it is for.
    pub kind: CoreKind,
    /// The file that it is in, for errors.
    pub file: &'a str,
    /// The ELF file.
    pub object: &'a [u8],
}

/// The worker for an image, as the linker made it.
#[derive(Clone, Copy, Debug)]
pub struct AicoreWorker<'a> {
    /// The file that it is in, for errors.
    pub file: &'a str,
    /// The ELF file.
    pub object: &'a [u8],
}
