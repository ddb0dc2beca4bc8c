//! The structures of a graph image, and the offsets of its parts.

use bytemuck::{Pod, Zeroable};

use crate::kinds::GraphFlags;
use crate::shared_struct::shared_struct;

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
        /// [`Checksum`](crate::image::Checksum) of everything after the header.
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

impl GraphHeader {
    /// Offset and size in bytes of tasks, edges and arguments, as the header has them.
    #[must_use]
    pub const fn parts(&self) -> [(u64, u64); 3] {
        let tasks = self.task_count as u64 * size_of::<ImageTask>() as u64;
        [
            (self.tasks_offset, tasks),
            (self.edges_offset, self.edge_count.saturating_mul(4)),
            (self.args_offset, self.arg_words.saturating_mul(8)),
        ]
    }

    /// Whether every producer comes before its consumers, as the header claims.
    #[must_use]
    pub const fn is_topological(&self) -> bool {
        self.flags & GraphFlags::TOPOLOGICAL.bits() != 0
    }
}

/// The offsets of the parts of an image with these counts: tasks, edges, arguments, end.
#[must_use]
pub const fn offsets(task_count: u32, edge_count: u64, arg_words: u64) -> [u64; 4] {
    let tasks = size_of::<GraphHeader>() as u64;
    let edges = tasks + task_count as u64 * size_of::<ImageTask>() as u64;
    let args = (edges + edge_count * 4).next_multiple_of(8);
    [tasks, edges, args, args + arg_words * 8]
}
