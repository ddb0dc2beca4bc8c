//! Device memory: a file without a name, which the emulator maps as well, and what is allocated of it.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr;

/// Its size. Pages cost nothing until they are touched.
pub(crate) const BYTES: u64 = 4 << 30;
/// Where the device sees it: far from what its process has itself.
pub(crate) const ADDRESS: u64 = 0x12_0000_0000;
/// Where AICPU sees the control registers.
pub(crate) const REGISTERS: u64 = 0x11_0000_0000;
/// What a real device has at the end of each allocation, so that neighbours do not touch.
const GUARD: u64 = 64;

/// The memory of the device.
pub(crate) struct Memory {
    file: i32,
    start: *mut u8,
    /// By their address: bytes.
    pub(crate) blocks: BTreeMap<u64, u64>,
}

// SAFETY: the mapping belongs to this value, which the machine's lock protects.
unsafe impl Send for Memory {}

impl Memory {
    /// Memory of garbage, as a device has it.
    pub(crate) fn new() -> Option<Self> {
        // SAFETY: the name is a string.
        let file = unsafe { libc::memfd_create(c"pto-stand-in".as_ptr(), libc::MFD_CLOEXEC) };
        let end = libc::off_t::try_from(BYTES).ok()?;
        // SAFETY: sets the size of our own file.
        if file < 0 || unsafe { libc::ftruncate(file, end) } != 0 {
            return None;
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let (flags, bytes) = (libc::MAP_SHARED | libc::MAP_NORESERVE, usize::try_from(BYTES).ok()?);
        // SAFETY: a new mapping of our own file.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, file, 0) };
        let start = (start != libc::MAP_FAILED).then(|| start.cast())?;
        Some(Self { file, start, blocks: BTreeMap::new() })
    }

    /// The path by which another process opens the file.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file)
    }

    /// A block; `None`: there is no room.
    pub(crate) fn alloc(&mut self, bytes: u64) -> Option<u64> {
        let size = bytes.checked_next_multiple_of(64)?.checked_add(GUARD)?;
        let mut at = ADDRESS + 4096;
        for (start, taken) in &self.blocks {
            if at.checked_add(size)? <= *start {
                break;
            }
            at = (start + taken).next_multiple_of(4096);
        }
        if at.checked_add(size)? > ADDRESS + BYTES {
            return None;
        }
        self.blocks.insert(at, size - GUARD);
        // What an allocation holds is not defined: whoever relies on zeros is to find out.
        let garbage = usize::try_from(bytes.min(1 << 16)).ok()?;
        // SAFETY: the block is within the mapping.
        unsafe { ptr::write_bytes(self.pointer(at)?, 0xCD, garbage) };
        Some(at)
    }

    /// Whether a range lies in one block.
    pub(crate) fn holds(&self, address: u64, bytes: u64) -> bool {
        let block = self.blocks.range(..=address).next_back();
        let end = address.checked_add(bytes);
        block.is_some_and(|(start, size)| end.is_some_and(|end| end <= start + size))
    }

    /// Where this process sees an address; to be asked for addresses in GM only.
    pub(crate) fn pointer(&self, address: u64) -> Option<*mut u8> {
        let offset = address.checked_sub(ADDRESS).filter(|offset| *offset < BYTES)?;
        Some(self.start.wrapping_add(usize::try_from(offset).ok()?))
    }

    /// The bytes of a range that lies in one block.
    pub(crate) fn read(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        if !self.holds(address, bytes as u64) {
            return None;
        }
        let from = self.pointer(address)?;
        let mut read = vec![0; bytes];
        // SAFETY: the range lies in a block, and so in the mapping; nothing else refers to the new vector.
        unsafe { ptr::copy_nonoverlapping(from, read.as_mut_ptr(), bytes) };
        Some(read)
    }

    /// Writes to a range that lies in one block.
    pub(crate) fn write(&self, address: u64, from: *const c_void, bytes: usize) -> Option<()> {
        let to = self.pointer(address).filter(|_| self.holds(address, bytes as u64))?;
        // SAFETY: the target lies in a block; the source is the caller's, which the interface obliges to be readable.
        unsafe { ptr::copy_nonoverlapping(from.cast(), to, bytes) };
        Some(())
    }

    /// Whether an address of the host is one of the device's.
    pub(crate) fn is_device(&self, address: u64) -> bool {
        (ADDRESS..ADDRESS + BYTES).contains(&address)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let bytes = usize::try_from(BYTES).unwrap_or(0);
        // SAFETY: the mapping is ours, and nobody uses it any more.
        unsafe { libc::munmap(self.start.cast(), bytes) };
        // SAFETY: the file is ours.
        unsafe { libc::close(self.file) };
    }
}
