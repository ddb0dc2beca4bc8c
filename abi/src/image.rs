//! The graph image: how a graph that the host built travels to the firmware.
//!
//! ```text
//! GraphHeader | ImageTask[task_count] | producers u32[edge_count] | argument words u64[arg_words]
//! ```
//! Edges stand with their consumer: task `i` owns `edge_count` producers from `first_edge`. Edges and arguments of the
//! tasks follow each other without gaps, so that who reads an image goes through each part once. The loader checks what
//! it reads on the way ([`SealedImage`], [`ImageTaskCheck`]); [`CheckedImage`] is for everybody else.

mod checksum;
mod walk;

use bytemuck::{Pod, Zeroable};

pub use self::checksum::Checksum;
pub use self::walk::{CheckedImage, ImageReaders, ImageTaskCheck, Reader};

use crate::fault::Fault;
use crate::gm::GmWindow;
use crate::kinds::GraphFlags;
use crate::layout::LAYOUT_HASH;
use crate::limits::{MAX_IMAGE_EDGES, MAX_TASKS};
use crate::runtime::{ABI_MAJOR, ABI_MINOR};
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
        /// [`Checksum`] of everything behind the header.
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

impl GraphHeader {
    /// The header of an image with these counts; without the checksum.
    #[must_use]
    pub const fn new(flags: GraphFlags, task_count: u32, edge_count: u64, arg_words: u64) -> Self {
        let [tasks_offset, edges_offset, args_offset, total_bytes] =
            offsets(task_count, edge_count, arg_words);
        Self {
            magic: GRAPH_MAGIC,
            abi_major: ABI_MAJOR,
            abi_minor: ABI_MINOR,
            header_bytes: 128,
            layout_hash: LAYOUT_HASH,
            total_bytes,
            checksum: 0,
            flags: flags.bits(),
            task_count,
            edge_count,
            arg_words,
            tasks_offset,
            edges_offset,
            args_offset,
            reserved: [0; 5],
        }
    }

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

/// Where the parts of an image with these counts stand: tasks, edges, arguments, end.
#[must_use]
pub const fn offsets(task_count: u32, edge_count: u64, arg_words: u64) -> [u64; 4] {
    let tasks = size_of::<GraphHeader>() as u64;
    let edges = tasks + task_count as u64 * size_of::<ImageTask>() as u64;
    let args = (edges + edge_count * 4).next_multiple_of(8);
    [tasks, edges, args, args + arg_words * 8]
}

/// What a fault in an image or header found, and what it expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which field.
    pub fault: Fault,
    /// What stands there.
    pub found: u64,
    /// What should stand there, or the bound.
    pub expected: u64,
}

/// Fails with `fault` unless `found == expected`.
///
/// # Errors
/// The refusal.
pub const fn expect_equal(fault: Fault, found: u64, expected: u64) -> Result<(), Refusal> {
    if found == expected { Ok(()) } else { Err(Refusal { fault, found, expected }) }
}

/// Fails with `fault` unless `found <= bound`.
///
/// # Errors
/// The refusal.
pub const fn expect_at_most(fault: Fault, found: u64, bound: u64) -> Result<(), Refusal> {
    if found <= bound { Ok(()) } else { Err(Refusal { fault, found, expected: bound }) }
}

/// An image whose header has been checked. Holding it proves: header, counts and offsets agree with the size. It proves
/// nothing of what stands behind the header: [`check_sum`](Self::check_sum) finds damage, and [`ImageTaskCheck`] checks tasks.
#[derive(Clone, Copy)]
pub struct SealedImage<'a> {
    window: GmWindow<'a>,
    header: GraphHeader,
}

impl<'a> SealedImage<'a> {
    /// Checks the header.
    ///
    /// # Errors
    /// The first field that is wrong, what stands there and what should.
    pub fn open(window: GmWindow<'a>) -> Result<Self, Refusal> {
        let mut header = GraphHeader::zeroed();
        if window.read_bytes(0, bytemuck::bytes_of_mut(&mut header)).is_none() {
            let expected = size_of::<GraphHeader>() as u64;
            return Err(Refusal {
                fault: Fault::GRAPH_TOTAL_BYTES,
                found: window.bytes(),
                expected,
            });
        }
        check_header(&header, window.bytes())?;
        Ok(Self { window, header })
    }

    /// The header.
    #[must_use]
    pub const fn header(&self) -> &GraphHeader {
        &self.header
    }

    /// How many tasks.
    #[must_use]
    pub const fn task_count(&self) -> u32 {
        self.header.task_count
    }

    /// Whether every producer stands before its consumers, as the header claims.
    #[must_use]
    pub const fn is_topological(&self) -> bool {
        self.header.flags & GraphFlags::TOPOLOGICAL.bits() != 0
    }

    /// Reads the parts from their starts.
    #[must_use]
    pub fn readers(&self) -> ImageReaders<'a> {
        ImageReaders::new(self)
    }

    /// The check of its tasks.
    #[must_use]
    pub const fn record_check(&self) -> ImageTaskCheck {
        ImageTaskCheck::new(self)
    }

    /// Checks the checksum.
    ///
    /// # Errors
    /// `GRAPH_CHECKSUM`.
    #[inline(never)]
    pub fn check_sum(&self) -> Result<(), Refusal> {
        let mut sum = Checksum::new();
        let from = self.header.tasks_offset;
        // `open` has found that it is whole words, to the end of the image.
        let body = (from, self.header.total_bytes.saturating_sub(from));
        let mut words = Reader::<u64, 64>::new(self.window, body);
        loop {
            let some = words.up_to(usize::MAX);
            if some.is_empty() {
                break;
            }
            some.iter().for_each(|word| sum.add(*word));
        }
        expect_equal(Fault::GRAPH_CHECKSUM, self.header.checksum, sum.finish())
    }
}

fn check_header(header: &GraphHeader, bytes: u64) -> Result<(), Refusal> {
    expect_equal(Fault::GRAPH_MAGIC, header.magic, GRAPH_MAGIC)?;
    expect_equal(Fault::GRAPH_ABI_MAJOR, header.abi_major.into(), ABI_MAJOR.into())?;
    expect_at_most(Fault::GRAPH_ABI_MINOR, header.abi_minor.into(), ABI_MINOR.into())?;
    let header_bytes = size_of::<GraphHeader>() as u64;
    expect_equal(Fault::GRAPH_HEADER_BYTES, header.header_bytes.into(), header_bytes)?;
    expect_equal(Fault::GRAPH_LAYOUT_HASH, header.layout_hash, LAYOUT_HASH)?;
    expect_equal(Fault::GRAPH_TOTAL_BYTES, header.total_bytes, bytes)?;
    expect_at_most(Fault::GRAPH_TASK_COUNT, header.task_count.into(), MAX_TASKS.into())?;
    expect_at_most(Fault::GRAPH_EDGE_COUNT, header.edge_count, MAX_IMAGE_EDGES)?;
    expect_at_most(Fault::GRAPH_ARG_WORDS, header.arg_words, bytes / 8)?;
    check_offsets(header)?;
    for word in header.reserved {
        expect_equal(Fault::GRAPH_RESERVED, word, 0)?;
    }
    let unknown = header.flags & !GraphFlags::all().bits();
    if unknown != 0 {
        let (found, expected) = (header.flags.into(), GraphFlags::all().bits().into());
        return Err(Refusal { fault: Fault::GRAPH_FLAGS, found, expected });
    }
    Ok(())
}

/// The parts follow each other without gaps; which equation fails alone tells which field is wrong.
fn check_offsets(header: &GraphHeader) -> Result<(), Refusal> {
    let GraphHeader { tasks_offset, edges_offset, args_offset, total_bytes, .. } = *header;
    expect_equal(Fault::GRAPH_TASKS_OFFSET, tasks_offset, size_of::<GraphHeader>() as u64)?;
    let tasks = u64::from(header.task_count) * size_of::<ImageTask>() as u64;
    let edges = tasks_offset.wrapping_add(tasks);
    let args = edges_offset.wrapping_add(header.edge_count * 4).wrapping_add(7) & !7;
    let end = args_offset.wrapping_add(header.arg_words * 8);
    match (edges == edges_offset, args == args_offset, end == total_bytes) {
        (false, true, true) => {
            let expected = edges_offset.wrapping_sub(tasks_offset) / size_of::<ImageTask>() as u64;
            expect_equal(Fault::GRAPH_TASK_COUNT, header.task_count.into(), expected)?;
        }
        (true, false, true) => {
            let expected = args_offset.wrapping_sub(edges_offset) / 4;
            expect_equal(Fault::GRAPH_EDGE_COUNT, header.edge_count, expected)?;
        }
        (true, true, false) => {
            let expected = total_bytes.wrapping_sub(args_offset) / 8;
            expect_equal(Fault::GRAPH_ARG_WORDS, header.arg_words, expected)?;
        }
        _ => {}
    }
    expect_equal(Fault::GRAPH_EDGES_OFFSET, edges_offset, edges)?;
    expect_equal(Fault::GRAPH_ARGS_OFFSET, args_offset, args)?;
    expect_equal(Fault::GRAPH_TOTAL_BYTES, total_bytes, end)
}
