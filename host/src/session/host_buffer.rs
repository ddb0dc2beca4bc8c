//! Memory of the host that copies go from and to while the program goes on.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::sync::Arc;

use pto_abi::{GmAddr, GmWindow};

/// Bytes of the host, for copies of a stream. Clones are the same bytes. What is read while a copy writes them is not
/// specified.
#[derive(Clone)]
pub struct HostBuffer {
    memory: Arc<HostMemory>,
    offset: u64,
    bytes: u64,
}

/// One allocation; or memory of somebody else, who keeps it.
struct HostMemory {
    start: *mut u8,
    bytes: u64,
    /// How it was allocated; `None`: it belongs to somebody else.
    layout: Option<Layout>,
}

// SAFETY: the memory is reached by copies through `GmWindow`s only, which may be used on any thread.
unsafe impl Send for HostMemory {}
// SAFETY: as for Send.
unsafe impl Sync for HostMemory {}

const ALIGN: usize = 64;

impl HostBuffer {
    /// `bytes` zeros.
    ///
    /// # Panics
    /// Where the process has no such memory, as every allocation of Rust.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes.max(1), ALIGN).expect("below isize::MAX bytes");
        // SAFETY: the layout has at least one byte.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        let memory = HostMemory { start, bytes: bytes as u64, layout: Some(layout) };
        Self { bytes: memory.bytes, memory: Arc::new(memory), offset: 0 }
    }

    /// Memory that the caller owns.
    ///
    /// # Safety
    /// The `bytes` bytes at `start` can be read and written until every clone of this buffer is gone, and every command that
    /// uses it is over; no reference of Rust to them is used meanwhile.
    #[must_use]
    pub unsafe fn foreign(start: *mut u8, bytes: u64) -> Self {
        let memory = HostMemory { start, bytes, layout: None };
        Self { memory: Arc::new(memory), offset: 0, bytes }
    }

    /// How many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The part of it at `offset`; `None`: it is not all in this one.
    #[must_use]
    pub fn part(&self, offset: u64, bytes: u64) -> Option<Self> {
        let fits = offset.checked_add(bytes)? <= self.bytes;
        let part = Self { memory: Arc::clone(&self.memory), offset: self.offset + offset, bytes };
        fits.then_some(part)
    }

    /// A copy of the bytes.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(self.bytes).unwrap_or_default()];
        self.window().read_bytes(0, &mut bytes).expect("as many as the buffer has");
        bytes
    }

    /// Copies `from` to its beginning. `None`: there are more bytes than the buffer has; nothing was copied.
    #[must_use = "it says whether anything was copied"]
    pub fn write(&self, from: &[u8]) -> Option<()> {
        self.window().write_bytes(0, from)
    }

    /// The bytes, as copies reach them.
    pub(super) fn window(&self) -> GmWindow<'_> {
        let HostMemory { start, bytes, .. } = *self.memory;
        // SAFETY: the allocation has so many bytes, and lives as long as this borrow; a foreign one by the promise of
        // `foreign`. Only copies of bytes go through the window, for which its alignment does not matter.
        let window = unsafe { GmWindow::from_raw(start, bytes, GmAddr::NULL) };
        window.part(self.offset, self.bytes).unwrap_or(GmWindow::empty())
    }
}

impl From<Vec<u8>> for HostBuffer {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from(bytes.as_slice())
    }
}

impl From<&[u8]> for HostBuffer {
    fn from(bytes: &[u8]) -> Self {
        let buffer = Self::new(bytes.len());
        buffer.write(bytes).expect("it has as many bytes");
        buffer
    }
}

impl From<&Self> for HostBuffer {
    fn from(buffer: &Self) -> Self {
        buffer.clone()
    }
}

impl fmt::Debug for HostBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostBuffer of {} bytes", self.bytes)
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if let Some(layout) = self.layout {
            // SAFETY: allocated in `new` with this layout; nobody uses it any more.
            unsafe { dealloc(self.start, layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::HostBuffer;

    #[test]
    fn parts_are_the_same_bytes() {
        let buffer = HostBuffer::from(vec![1, 2, 3, 4, 5]);
        let part = buffer.part(1, 3).unwrap();
        assert_eq!(part.to_vec(), [2, 3, 4]);
        part.write(&[9]).unwrap();
        assert_eq!(buffer.to_vec(), [1, 9, 3, 4, 5]);
        assert!(part.write(&[0; 4]).is_none() && buffer.part(3, 3).is_none());
        assert_eq!(part.part(2, 1).unwrap().to_vec(), [4]);
        assert!(HostBuffer::new(0).to_vec().is_empty());
    }
}
