//! Memory of the host that copies go from and to while the program goes on.

use std::alloc::{Layout, alloc_zeroed};
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use pto_abi::{GmAddr, GmWindow};

use super::byte_window::ByteWindow;
use crate::error::Error;

/// Bytes of the host, for copies of a stream. Clones are the same bytes. What is read while a copy writes them is not
/// specified.
#[derive(Clone)]
pub struct HostBuffer {
    memory: Arc<HostMemory>,
    offset: u64,
    bytes: u64,
}

/// The memory of a vector, or foreign memory, which its owner keeps.
struct HostMemory {
    start: *mut u8,
    bytes: u64,
    /// How many bytes the vector has room for; `None`: the memory is foreign.
    capacity: Option<usize>,
}

// SAFETY: the memory is reached by copies through `GmWindow`s only, which may be used on any thread.
unsafe impl Send for HostMemory {}
// SAFETY: as for Send.
unsafe impl Sync for HostMemory {}

impl HostBuffer {
    /// `bytes` zeros. They take no memory of the machine before they are touched.
    ///
    /// # Errors
    /// `HostMemory`: the process cannot have this many bytes.
    pub fn new(bytes: usize) -> Result<Self, Error> {
        if bytes == 0 {
            return Ok(Self::from(Vec::new()));
        }
        let refused = || Error::HostMemory { bytes };
        let layout = Layout::array::<u8>(bytes).map_err(|_| refused())?;
        // SAFETY: the layout has at least one byte.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            return Err(refused());
        }
        // SAFETY: the allocator of vectors gave it, with the layout of this many bytes, all of which are zero.
        Ok(Self::from(unsafe { Vec::from_raw_parts(start, bytes, bytes) }))
    }

    /// Memory that the caller owns.
    ///
    /// # Safety
    /// The `bytes` bytes at `start` can be read and written until every clone of this buffer is gone, and every command that
    /// uses it is over; no reference of Rust to them is used meanwhile.
    #[must_use]
    pub unsafe fn foreign(start: *mut u8, bytes: u64) -> Self {
        let memory = HostMemory { start, bytes, capacity: None };
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
        let memory = || Arc::clone(&self.memory);
        fits.then(|| Self { memory: memory(), offset: self.offset + offset, bytes })
    }

    /// A copy of the bytes.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(self.bytes).unwrap_or_default()];
        self.window().read(0, &mut bytes).expect("as many as the buffer has");
        bytes
    }

    /// Copies `from` to its beginning. `None`: there are more bytes than the buffer has; nothing was copied.
    #[must_use = "it says whether anything was copied"]
    pub fn write(&self, from: &[u8]) -> Option<()> {
        let fits = from.len() as u64 <= self.bytes;
        fits.then(|| self.window().write(0, from)).flatten()
    }

    /// The bytes, as copies reach them.
    pub(super) fn window(&self) -> ByteWindow<'_> {
        let HostMemory { start, bytes, .. } = *self.memory;
        // SAFETY: the memory has so many bytes, and lives as long as this borrow; a foreign one by the promise of `foreign`. Only copies of bytes go through
        // the window, for which its alignment does not matter.
        let window = unsafe { GmWindow::from_raw(start, bytes, GmAddr::NULL) };
        ByteWindow { window, offset: self.offset }
    }
}

impl From<Vec<u8>> for HostBuffer {
    /// Takes the vector over; nothing is copied.
    fn from(bytes: Vec<u8>) -> Self {
        let mut vector = ManuallyDrop::new(bytes);
        let (bytes, capacity) = (vector.len() as u64, Some(vector.capacity()));
        let memory = HostMemory { start: vector.as_mut_ptr(), bytes, capacity };
        Self { memory: Arc::new(memory), offset: 0, bytes }
    }
}

impl From<&[u8]> for HostBuffer {
    fn from(bytes: &[u8]) -> Self {
        Self::from(bytes.to_vec())
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
        if let Some(capacity) = self.capacity {
            // SAFETY: a vector of this capacity was taken over, and this is the last owner of its memory.
            drop(unsafe { Vec::from_raw_parts(self.start, 0, capacity) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::HostBuffer;
    use crate::error::Error;

    #[test]
    fn parts_are_the_same_bytes() {
        let buffer = HostBuffer::from(vec![1, 2, 3, 4, 5]);
        let part = buffer.part(1, 3).unwrap();
        assert_eq!(part.to_vec(), [2, 3, 4]);
        part.write(&[9]).unwrap();
        assert_eq!(buffer.to_vec(), [1, 9, 3, 4, 5]);
        assert!(part.write(&[0; 4]).is_none() && buffer.part(3, 3).is_none());
        assert!(part.part(u64::MAX, 0).is_none() && part.part(1, u64::MAX).is_none());
        assert_eq!(part.part(2, 1).unwrap().to_vec(), [4]);
        assert!(HostBuffer::new(0).unwrap().to_vec().is_empty());
    }

    #[test]
    fn a_vector_is_taken_over_and_not_copied() {
        let mut bytes = Vec::with_capacity(100);
        bytes.extend([1, 2, 3]);
        let address = bytes.as_ptr();
        let buffer = HostBuffer::from(bytes);
        assert_eq!(buffer.window().window.pointer(0, 3, 1).unwrap().cast_const(), address);
        assert_eq!(buffer.to_vec(), [1, 2, 3]);
    }

    #[test]
    fn bytes_that_the_process_cannot_have_are_an_error_with_their_number() {
        for bytes in [usize::MAX, 1 << 63, 1 << 62] {
            let error = HostBuffer::new(bytes).unwrap_err();
            assert!(
                matches!(error, Error::HostMemory { bytes: named } if named == bytes),
                "{error}"
            );
        }
        assert_eq!(HostBuffer::new(5).unwrap().to_vec(), [0; 5]);
    }
}
