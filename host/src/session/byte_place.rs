//! Where the bytes of a copy are: in GM, or in a buffer of the host.

use pto_abi::GmWindow;

/// Where bytes begin. The window is all of the memory that they are in: atomic accesses to a word have one size only as long as everybody who accesses it
/// knows of the whole word.
pub(super) struct BytePlace<'w> {
    pub(super) window: GmWindow<'w>,
    pub(super) offset: u64,
}

impl BytePlace<'_> {
    pub(super) fn read(&self, at: u64, to: &mut [u8]) -> Option<()> {
        self.window.read_bytes(self.offset + at, to)
    }

    pub(super) fn write(&self, at: u64, from: &[u8]) -> Option<()> {
        self.window.write_bytes(self.offset + at, from)
    }
}
