//! The memory of a copy: a window of GM, or of a buffer of the host.

use pto_abi::GmWindow;

/// A window, and an offset into it. The window covers all of the memory, not only the bytes of the copy, so that all accesses to a word are
/// atomic accesses of the same size.
pub(super) struct ByteWindow<'w> {
    pub(super) window: GmWindow<'w>,
    pub(super) offset: u64,
}

impl ByteWindow<'_> {
    pub(super) fn read(&self, at: u64, to: &mut [u8]) -> Option<()> {
        self.window.read_bytes(self.offset + at, to)
    }

    pub(super) fn write(&self, at: u64, from: &[u8]) -> Option<()> {
        self.window.write_bytes(self.offset + at, from)
    }
}
