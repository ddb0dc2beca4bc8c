//! A blob of kernels for an AArch64 device: its header and its table.

use bytemuck::{Pod, Zeroable};

use crate::shared_struct::shared_struct;

/// `KernelBlobHeader::magic`: "PTOKERNL", little-endian.
pub const KERNEL_BLOB_MAGIC: u64 = u64::from_le_bytes(*b"PTOKERNL");
/// Bytes of a kernel's name in a blob.
pub const KERNEL_NAME_BYTES: usize = 48;

shared_struct! {
    /// The start of a blob of kernels: position-independent code for GM, to be copied to any page. Its
    /// table of [`KernelBlobEntry`] follows.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub struct KernelBlobHeader [size = 64, align = 8] {
        /// [`KERNEL_BLOB_MAGIC`].
        0 => magic: u64,
        /// `ABI_MAJOR`.
        8 => abi_major: u16,
        /// `ABI_MINOR`.
        10 => abi_minor: u16,
        /// How many kernels.
        12 => kernel_count: u32,
        /// Size of the blob.
        16 => total_bytes: u64,
        /// As `FwIdentity::checksum`, of the blob's file.
        24 => checksum: u64,
        /// Not used; zero.
        32 => reserved: [u64; 4],
    }
}

shared_struct! {
    /// One kernel of a blob.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub struct KernelBlobEntry [size = 64, align = 8] {
        /// Its code, from the start of this entry (a distance, so that the blob needs no relocation).
        0 => distance: u64,
        /// Its func id.
        8 => func_id: u32,
        /// The `CoreKind` that it is for.
        12 => kind: u32,
        /// Its name, padded with zeros.
        16 => name: [u8; KERNEL_NAME_BYTES],
    }
}
