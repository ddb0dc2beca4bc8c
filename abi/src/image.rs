//! The graph image: how a graph that the host built travels to the firmware.
//!
//! ```text
//! GraphHeader | TaskRecord[task_count] | producers u32[edge_count] | argument words u64[arg_words]
//! ```
//! Edges stand with their consumer: record `i` owns `edge_count` producers from `first_edge`. The firmware
//! checks the whole image once ([`CheckedImage::check`]); what it holds then needs no further check.

use bytemuck::{Pod, Zeroable};

use crate::fault::Fault;
use crate::gm::GmWindow;
use crate::kinds::GraphFlags;
use crate::layout::LAYOUT_HASH;
use crate::limits::{MAX_IMAGE_EDGES, MAX_TASKS};
use crate::runtime::{ABI_MAJOR, ABI_MINOR};
use crate::shared_struct;

/// `GraphHeader::magic`: "PTOGRAF1", little-endian.
pub const GRAPH_MAGIC: u64 = u64::from_le_bytes(*b"PTOGRAF1");

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
        /// How many records.
        44 => task_count: u32,
        /// How many edges.
        48 => edge_count: u64,
        /// How many argument words.
        56 => arg_words: u64,
        /// Where the records are, from the start of the image.
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
    pub struct TaskRecord [size = 24, align = 8] {
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

/// Where the parts of an image with these counts stand: records, edges, arguments, end.
#[must_use]
pub const fn offsets(task_count: u32, edge_count: u64, arg_words: u64) -> [u64; 4] {
    let tasks = size_of::<GraphHeader>() as u64;
    let edges = tasks + task_count as u64 * size_of::<TaskRecord>() as u64;
    let args = (edges + edge_count * 4).next_multiple_of(8);
    [tasks, edges, args, args + arg_words * 8]
}

/// A checksum over little-endian 64-bit words, four lanes wide, so that a check costs less than the copy.
/// It finds damage, not malice: everything it covers is checked for range as well.
#[derive(Clone, Copy, Debug)]
pub struct Checksum {
    lanes: [u64; 4],
    words: u64,
}

impl Checksum {
    /// The checksum of nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { lanes: [1, 2, 3, 4], words: 0 }
    }

    /// Adds one word.
    #[inline]
    pub const fn add(&mut self, word: u64) {
        let lane = &mut self.lanes[(self.words & 3) as usize];
        *lane = (*lane ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        self.words += 1;
    }

    /// Adds a word for each lane: where a whole number of such groups stands before it, what [`add`](Self::add) makes of
    /// them, for less.
    #[inline]
    const fn add_group(&mut self, words: [u64; 4]) {
        let mut lane = 0;
        while lane < 4 {
            let mixed = (self.lanes[lane] ^ words[lane]).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            self.lanes[lane] = mixed.rotate_left(29);
            lane += 1;
        }
        self.words += 4;
    }

    /// The sum.
    #[must_use]
    pub const fn finish(&self) -> u64 {
        let mut sum = self.words;
        let mut i = 0;
        while i < 4 {
            sum = (sum ^ self.lanes[i]).wrapping_mul(0xBF58_476D_1CE4_E5B9).rotate_left(31);
            i += 1;
        }
        sum
    }

    /// The sum of `bytes`, the last word padded with zeros.
    #[must_use]
    pub fn of(bytes: &[u8]) -> u64 {
        let mut sum = Self::new();
        let (groups, rest) = bytes.as_chunks::<32>();
        for group in groups {
            let (words, _) = group.as_chunks::<8>();
            let mut lanes = [0; 4];
            for (lane, word) in lanes.iter_mut().zip(words) {
                *lane = u64::from_le_bytes(*word);
            }
            sum.add_group(lanes);
        }
        for chunk in rest.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            sum.add(u64::from_le_bytes(word));
        }
        sum.finish()
    }
}

impl Default for Checksum {
    fn default() -> Self {
        Self::new()
    }
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

/// A graph image that has been checked. Holding it proves: header, counts and offsets agree with the size;
/// the checksum matches; every record's arguments and edges lie in the image; every producer exists; where
/// `TOPOLOGICAL` is claimed, every producer stands before its consumer. It does not prove that the graph
/// has no cycle (the host finds cycles; on the device they end as `STALL_DEADLOCK`), nor that the memory
/// stays as it is: reads are by copy, and a later change is caught by the checks of `add_task`/`add_edge`.
#[derive(Clone, Copy)]
pub struct CheckedImage<'a> {
    window: GmWindow<'a>,
    header: GraphHeader,
    flags: GraphFlags,
}

impl<'a> CheckedImage<'a> {
    /// Checks an image.
    ///
    /// # Errors
    /// The first field that is wrong, what stands there and what should.
    pub fn check(window: GmWindow<'a>) -> Result<Self, Refusal> {
        let header: GraphHeader = window.read(0).ok_or(Refusal {
            fault: Fault::GRAPH_TOTAL_BYTES,
            found: window.bytes(),
            expected: size_of::<GraphHeader>() as u64,
        })?;
        let flags = check_header(&header, window.bytes())?;
        let image = Self { window, header, flags };
        image.check_sum()?;
        image.check_records()?;
        Ok(image)
    }

    /// How many tasks.
    #[must_use]
    pub const fn task_count(&self) -> u32 {
        self.header.task_count
    }

    /// How many edges.
    #[must_use]
    pub const fn edge_count(&self) -> u64 {
        self.header.edge_count
    }

    /// How many argument words.
    #[must_use]
    pub const fn arg_words(&self) -> u64 {
        self.header.arg_words
    }

    /// Whether every producer stands before its consumers.
    #[must_use]
    pub const fn is_topological(&self) -> bool {
        self.flags.contains(GraphFlags::TOPOLOGICAL)
    }

    /// Record `index`; zeros past the end.
    #[must_use]
    #[inline]
    pub fn record(&self, index: u32) -> TaskRecord {
        let offset = u64::from(index) * size_of::<TaskRecord>() as u64;
        self.window.read(self.header.tasks_offset + offset).unwrap_or(TaskRecord::zeroed())
    }

    /// The producer at edge `index`.
    #[must_use]
    #[inline]
    pub fn producer(&self, index: u32) -> u32 {
        self.window.read(self.header.edges_offset + u64::from(index) * 4).unwrap_or(u32::MAX)
    }

    /// Argument word `index`.
    #[must_use]
    #[inline]
    pub fn arg(&self, index: u64) -> u64 {
        self.window.read(self.header.args_offset + index * 8).unwrap_or(0)
    }

    fn check_sum(&self) -> Result<(), Refusal> {
        let mut sum = Checksum::new();
        let mut offset = self.header.tasks_offset;
        while let Some(words) = self.window.read::<[u64; 4]>(offset)
            && offset + 32 <= self.header.total_bytes
        {
            sum.add_group(words);
            offset += 32;
        }
        while offset < self.header.total_bytes {
            sum.add(self.window.read(offset).unwrap_or(0));
            offset += 8;
        }
        expect_equal(Fault::GRAPH_CHECKSUM, self.header.checksum, sum.finish())
    }

    fn check_records(&self) -> Result<(), Refusal> {
        let mut next_edge = 0_u64;
        for index in 0..self.header.task_count {
            let record = self.record(index);
            let args_end = u64::from(record.first_arg) + u64::from(record.arg_count);
            expect_at_most(Fault::GRAPH_RECORD_ARGS, args_end, self.header.arg_words)?;
            expect_equal(Fault::GRAPH_RECORD_EDGES, u64::from(record.first_edge), next_edge)?;
            next_edge += u64::from(record.edge_count);
            expect_at_most(Fault::GRAPH_RECORD_EDGES, next_edge, self.header.edge_count)?;
            self.check_producers(index, &record)?;
        }
        expect_equal(Fault::GRAPH_EDGE_COUNT, self.header.edge_count, next_edge)
    }

    fn check_producers(&self, index: u32, record: &TaskRecord) -> Result<(), Refusal> {
        for edge in record.first_edge..record.first_edge.saturating_add(record.edge_count) {
            let producer = self.producer(edge);
            let last = u64::from(self.header.task_count - 1);
            expect_at_most(Fault::GRAPH_EDGE_PRODUCER, u64::from(producer), last)?;
            if self.is_topological() && producer >= index {
                let found = u64::from(producer);
                let expected = u64::from(index);
                return Err(Refusal { fault: Fault::GRAPH_FLAGS, found, expected });
            }
        }
        Ok(())
    }
}

fn check_header(header: &GraphHeader, bytes: u64) -> Result<GraphFlags, Refusal> {
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
    GraphFlags::from_bits(header.flags).ok_or(Refusal {
        fault: Fault::GRAPH_FLAGS,
        found: header.flags.into(),
        expected: GraphFlags::all().bits().into(),
    })
}

/// The parts follow each other without gaps; which equation fails alone tells which field is wrong.
fn check_offsets(header: &GraphHeader) -> Result<(), Refusal> {
    let GraphHeader { tasks_offset, edges_offset, args_offset, total_bytes, .. } = *header;
    expect_equal(Fault::GRAPH_TASKS_OFFSET, tasks_offset, size_of::<GraphHeader>() as u64)?;
    let records = u64::from(header.task_count) * size_of::<TaskRecord>() as u64;
    let edges = tasks_offset.wrapping_add(records);
    let args = edges_offset.wrapping_add(header.edge_count * 4).wrapping_add(7) & !7;
    let end = args_offset.wrapping_add(header.arg_words * 8);
    match (edges == edges_offset, args == args_offset, end == total_bytes) {
        (false, true, true) => {
            let expected = edges_offset.wrapping_sub(tasks_offset) / size_of::<TaskRecord>() as u64;
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
