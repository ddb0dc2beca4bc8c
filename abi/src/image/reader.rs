//! Reading an image once, from its start to its end, in private copies: what was checked is what is used, also when another agent writes
//! the memory meanwhile.

use bytemuck::Pod;

use crate::gm::GmWindow;
use crate::graph_header::{GraphHeader, ImageTask};

/// Tasks, edges and argument words that are copied at once: 768, 256 and 512 bytes.
const TASKS: usize = 32;
const EDGES: usize = 64;
const ARGS: usize = 64;

/// Reads a part of an image from its start on.
pub struct EntryReader<'a, T, const N: usize> {
    image: GmWindow<'a>,
    offset: u64,
    end: u64,
    next: usize,
    held: usize,
    copies: [T; N],
}

impl<'a, T: Pod, const N: usize> EntryReader<'a, T, N> {
    pub(super) fn new(image: GmWindow<'a>, (offset, bytes): (u64, u64)) -> Self {
        let end = offset.saturating_add(bytes);
        Self { image, offset, end, next: 0, held: 0, copies: [T::zeroed(); N] }
    }

    /// The next values: at least one and at most `most` of them, or none at the end of the part.
    #[inline]
    pub fn up_to(&mut self, most: usize) -> &[T] {
        if self.next == self.held {
            let to = bytemuck::cast_slice_mut(&mut self.copies);
            let bytes = copy_some(&self.image, self.offset, self.end, to);
            self.offset += bytes as u64;
            (self.next, self.held) = (0, bytes / size_of::<T>());
        }
        let count = most.min(self.held - self.next);
        let values = self.copies.get(self.next..self.next + count).unwrap_or(&[]);
        self.next += count;
        values
    }
}

/// Copies the bytes between two offsets, as far as there is room; returns how many. Between them are whole values.
#[inline(never)]
fn copy_some(image: &GmWindow<'_>, offset: u64, end: u64, to: &mut [u8]) -> usize {
    let left = end.saturating_sub(offset);
    let bytes = usize::try_from(left).unwrap_or(usize::MAX).min(to.len());
    let copied = to.get_mut(..bytes).and_then(|to| image.read_settled(offset, to));
    if copied.is_some() { bytes } else { 0 }
}

/// The parts of an image.
pub struct ImageReaders<'a> {
    /// The tasks.
    pub tasks: EntryReader<'a, ImageTask, TASKS>,
    /// The producers of all tasks.
    pub producers: EntryReader<'a, u32, EDGES>,
    /// The arguments of all tasks.
    pub args: EntryReader<'a, u64, ARGS>,
}

impl<'a> ImageReaders<'a> {
    pub(super) fn new(image: GmWindow<'a>, header: &GraphHeader) -> Self {
        let [tasks, producers, args] = header.parts();
        Self {
            tasks: EntryReader::new(image, tasks),
            producers: EntryReader::new(image, producers),
            args: EntryReader::new(image, args),
        }
    }
}
