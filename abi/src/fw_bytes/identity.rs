//! What a firmware image says of itself, as a structure.

use bytemuck::{Pod, Zeroable};

use crate::shared_struct::shared_struct;

/// `FwIdentity::magic`: "PTOFWIMG", little-endian.
pub const FW_MAGIC: u64 = u64::from_le_bytes(*b"PTOFWIMG");

shared_struct! {
    /// What a firmware image says of itself. The names of its builders follow, each ended by a zero byte.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub struct FwIdentity [size = 64, align = 8] {
        /// [`FW_MAGIC`].
        0 => magic: u64,
        /// `ABI_MAJOR`.
        8 => abi_major: u16,
        /// `ABI_MINOR`.
        10 => abi_minor: u16,
        /// Size of this struct.
        12 => identity_bytes: u32,
        /// `layout::LAYOUT_HASH`.
        16 => layout_hash: u64,
        /// The device that the image is for, padded with zeros.
        24 => kind: [u8; 16],
        /// How many builders are linked in.
        40 => builder_count: u32,
        /// Bytes of their names.
        44 => names_bytes: u32,
        /// Checksum of the file, as `pto fw build` seals it: the first eight bytes of the SHA-256 of the file with
        /// zero here. Zero: the file is not sealed.
        48 => checksum: u64,
        /// What else the image can do: [`FW_TRACES`](crate::fw_image::FW_TRACES). Other bits are zero.
        56 => features: u64,
    }
}
