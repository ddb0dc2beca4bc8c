//! The structures of a graph image.

use bytemuck::{Pod, Zeroable};

use crate::shared_struct;

/// `GraphHeader::magic`: "PTOGRAF2", little-endian.
pub const GRAPH_MAGIC: u64 = u64::from_le_bytes(*b"PTOGRAF2");

shared_struct! {
    /// The header of a graph image.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub struct GraphHeader [size = 128, align = 8] {
        /// [`GRAPH_MAGIC`].
        0 => magic: u64,
        /// `ABI_MAJOR`.
        8 => abi_major: u16,
        /// `ABI_MINOR`.
        10 => abi_minor: u16,
        /// Size of this header.
        12 => header_bytes: u32,
        /// `layout::LAYOUT_HASH`.
        16 => layout_hash: u64,
        /// Size of the image.
        24 => total_bytes: u64,
        /// [`Checksum`](super::Checksum) of everything behind the header.
        32 => checksum: u64,
        /// `GraphFlags`.
        40 => flags: u32,
        /// How many tasks.
        44 => task_count: u32,
        /// How many edges.
        48 => edge_count: u64,
        /// How many argument words.
        56 => arg_words: u64,
        /// Where the tasks are, from the start of the image.
        64 => tasks_offset: u64,
        /// Where the producers are.
        72 => edges_offset: u64,
        /// Where the argument words are.
        80 => args_offset: u64,
        /// Not used; zero.
        88 => reserved: [u64; 5],
    }
}

shared_struct! {
    /// One task of a graph image.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct ImageTask [size = 24, align = 8] {
        /// GM address of the code; zero: `kernel_addrs[func_id]`.
        0 => kernel: u64,
        /// First argument word.
        8 => first_arg: u32,
        /// First edge.
        12 => first_edge: u32,
        /// Producers.
        16 => edge_count: u32,
        /// Which kernel.
        20 => func_id: u16,
        /// How many arguments.
        22 => arg_count: u8,
        /// A `CoreKind`.
        23 => kind: u8,
    }
}
