//! An image whose header has been checked, and the making of such headers.

use bytemuck::Zeroable;

use super::checksum::Checksum;
use super::mismatch::{FieldMismatch, expect_at_most, expect_equal};
use super::reader::{EntryReader, ImageReaders};
use super::task_check::ImageTaskCheck;
use crate::fault::Fault;
use crate::gm::GmWindow;
use crate::graph_header::{GRAPH_MAGIC, GraphHeader, ImageTask, offsets};
use crate::kinds::GraphFlags;
use crate::layout::LAYOUT_HASH;
use crate::limits::{MAX_IMAGE_EDGES, MAX_TASKS};
use crate::runtime::{ABI_MAJOR, ABI_MINOR};

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
}

/// An image whose header has been checked. Holding it proves: header, counts and offsets agree with the size. It proves
/// nothing of what follows the header: [`check_sum`](Self::check_sum) finds damage, and [`ImageTaskCheck`] checks tasks.
#[derive(Clone, Copy)]
pub struct SealedImage<'a> {
    pub(super) window: GmWindow<'a>,
    header: GraphHeader,
}

impl<'a> SealedImage<'a> {
    /// Checks the header.
    ///
    /// # Errors
    /// The first field that is wrong, with the value found and the one expected.
    pub fn open(window: GmWindow<'a>) -> Result<Self, FieldMismatch> {
        let mut header = GraphHeader::zeroed();
        if window.read_bytes(0, bytemuck::bytes_of_mut(&mut header)).is_none() {
            let expected = size_of::<GraphHeader>() as u64;
            return Err(FieldMismatch {
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

    /// Whether every producer comes before its consumers, as the header claims.
    #[must_use]
    pub const fn is_topological(&self) -> bool {
        self.header.is_topological()
    }

    /// Reads the parts from their starts.
    #[must_use]
    pub fn readers(&self) -> ImageReaders<'a> {
        ImageReaders::new(self.window, &self.header)
    }

    /// The check of its tasks.
    #[must_use]
    pub const fn task_check(&self) -> ImageTaskCheck {
        ImageTaskCheck::new(&self.header)
    }

    /// Checks the checksum.
    ///
    /// # Errors
    /// `GRAPH_CHECKSUM`.
    #[inline(never)]
    pub fn check_sum(&self) -> Result<(), FieldMismatch> {
        let mut sum = Checksum::new();
        let from = self.header.tasks_offset;
        // `open` has found that it is whole words, to the end of the image.
        let body = (from, self.header.total_bytes.saturating_sub(from));
        let mut words = EntryReader::<u64, 64>::new(self.window, body);
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

fn check_header(header: &GraphHeader, bytes: u64) -> Result<(), FieldMismatch> {
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
        return Err(FieldMismatch { fault: Fault::GRAPH_FLAGS, found, expected });
    }
    Ok(())
}

/// The parts follow each other without gaps; the one equation that fails shows which field is wrong.
fn check_offsets(header: &GraphHeader) -> Result<(), FieldMismatch> {
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
