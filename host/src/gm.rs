//! Global memory of a device: one anonymous mapping of this process, where device addresses are those of this
//! process, or part of the RAM of an emulated machine, where they are the machine's, or memory that only copies reach.
//!
//! What users own is read and written by [`Gm::read`] and [`Gm::write`]. The window of memory that only copies reach is a
//! copy on this side, for the runtime's arena; the backend sends and fetches it.
//!
//! Pages cost nothing until they are touched (`MAP_NORESERVE`), so that a device may have gigabytes.

use std::io;
use std::ops::Range;
use std::ptr::{self, NonNull};
#[cfg(any(feature = "qemu", feature = "a2a3"))]
use std::sync::Arc;

use pto_abi::{GmAddr, GmWindow};

#[cfg(feature = "a2a3")]
use crate::a2a3::dma::Dma;
use crate::address_state::AddressState;
use crate::error::Error;
#[cfg(feature = "qemu")]
use crate::qemu::memory::Ram;

/// Memory of a device.
pub(crate) enum Gm {
    /// GM of the simulator.
    Own(Mapping),
    /// GM of an emulated machine.
    #[cfg(feature = "qemu")]
    Machine(Arc<Ram>),
    /// GM of a device whose memory is not mapped here.
    #[cfg(feature = "a2a3")]
    Remote(Remote),
}

/// Memory that only copies reach.
#[cfg(feature = "a2a3")]
pub(crate) struct Remote {
    copy: Mapping,
    address: GmAddr,
    dma: Arc<dyn Dma>,
}

impl Gm {
    /// Maps `bytes` bytes of zeros, aligned to a page.
    pub(crate) fn map(bytes: u64) -> Result<Self, Error> {
        Mapping::new(bytes).map(Self::Own)
    }

    /// `bytes` bytes at `address` of a device, which hold zeros.
    #[cfg(feature = "a2a3")]
    pub(crate) fn remote(bytes: u64, address: GmAddr, dma: Arc<dyn Dma>) -> Result<Self, Error> {
        let copy = Mapping::new(bytes)?;
        Ok(Self::Remote(Remote { copy, address, dma }))
    }

    /// Whether only copies reach it.
    pub(crate) const fn is_remote(&self) -> bool {
        match self {
            #[cfg(feature = "a2a3")]
            Self::Remote(_) => true,
            _ => false,
        }
    }

    /// Copies to the device.
    pub(crate) fn write(&self, to: GmAddr, from: &[u8]) -> Result<(), Error> {
        let offset = self.offset(to, from.len() as u64)?;
        #[cfg(feature = "a2a3")]
        if let Self::Remote(remote) = self {
            return Ok(remote.dma.to_device(to, from)?);
        }
        self.window().write_bytes(offset, from).ok_or_else(|| outside(to, from.len() as u64))
    }

    /// Copies from the device.
    pub(crate) fn read(&self, from: GmAddr, to: &mut [u8]) -> Result<(), Error> {
        let bytes = to.len() as u64;
        let offset = self.offset(from, bytes)?;
        #[cfg(feature = "a2a3")]
        if let Self::Remote(remote) = self {
            return Ok(remote.dma.to_host(from, to)?);
        }
        self.window().read_bytes(offset, to).ok_or_else(|| outside(from, bytes))
    }

    /// Brings the window what the device holds in a range.
    pub(crate) fn fetch(&self, at: GmAddr, bytes: u64) -> Result<(), Error> {
        let offset = self.offset(at, bytes)?;
        if !self.is_remote() {
            return Ok(());
        }
        let mut copy = vec![0; usize::try_from(bytes).unwrap_or_default()];
        self.read(at, &mut copy)?;
        self.window().write_bytes(offset, &copy).ok_or_else(|| outside(at, bytes))
    }

    /// The words at `at` as the device holds them, also where only copies reach them.
    pub(crate) fn read_words<const N: usize>(&self, at: GmAddr) -> Result<[u64; N], Error> {
        let mut words = [0_u64; N];
        self.read(at, bytemuck::cast_slice_mut(&mut words))?;
        Ok(words)
    }

    /// Zeros a range, the copy of it on this side as well. Where it has at least `large` bytes, with new pages that take no memory before
    /// they are touched.
    pub(crate) fn zero(&self, at: GmAddr, bytes: u64, large: u64) -> Result<(), Error> {
        #[cfg(feature = "a2a3")]
        if let (Self::Remote(remote), true) = (self, bytes > 0) {
            remote.dma.fill(at, bytes, 0)?;
        }
        let start = self.offset(at, bytes)?;
        let end = start + bytes;
        if let Self::Own(mapping) = self
            && let Some(pages) = mapping.renew(start..end, large)
        {
            self.write_zeros(at, start..pages.start)?;
            return self.write_zeros(at, pages.end..end);
        }
        self.write_zeros(at, start..end)
    }

    /// Says that the system may back this range with huge pages: whatever runs in it walks through more memory than the processor has translations for.
    pub(crate) fn prefer_huge_pages(&self, at: GmAddr, bytes: u64) {
        if let Self::Own(mapping) = self
            && let Ok(start) = self.offset(at, bytes)
        {
            mapping.prefer_huge_pages(start..start + bytes);
        }
    }

    /// Zeros these bytes of a range at `at` by writing them.
    fn write_zeros(&self, at: GmAddr, bytes: Range<u64>) -> Result<(), Error> {
        static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
        let (window, Range { start: mut offset, end }) = (self.window(), bytes);
        while offset < end {
            let step = (end - offset).min(ZEROS.len() as u64);
            let zeros = usize::try_from(step).ok().and_then(|step| ZEROS.get(..step));
            let written = zeros.and_then(|zeros| window.write_bytes(offset, zeros));
            written.ok_or_else(|| outside(at, end - offset))?;
            offset += step;
        }
        Ok(())
    }

    fn offset(&self, address: GmAddr, bytes: u64) -> Result<u64, Error> {
        self.window().offset_of(address, bytes).ok_or_else(|| outside(address, bytes))
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.window().bytes()
    }

    /// The device address of the first byte.
    pub(crate) fn address(&self) -> GmAddr {
        self.window().address()
    }

    /// All of it.
    pub(crate) fn window(&self) -> GmWindow<'_> {
        // SAFETY: the window is returned with the lifetime of this borrow.
        unsafe { self.lasting_window() }
    }

    /// All of it, for agents whose lifetimes the compiler cannot see.
    ///
    /// # Safety
    /// The caller keeps this `Gm` alive for as long as the window, or anything made from it, is used.
    pub(crate) unsafe fn lasting_window(&self) -> GmWindow<'static> {
        match self {
            // SAFETY: the caller promises the lifetime.
            Self::Own(mapping) => unsafe { mapping.lasting_window() },
            #[cfg(feature = "a2a3")]
            // SAFETY: the caller promises the lifetime.
            Self::Remote(Remote { copy, address, .. }) => unsafe { copy.window_at(*address) },
            #[cfg(feature = "qemu")]
            Self::Machine(ram) => {
                // SAFETY: the caller promises the lifetime.
                let gm = unsafe { ram.lasting_gm() };
                gm.expect("`QemuOptions::check` has seen that RAM holds GM")
            }
        }
    }
}

fn outside(address: GmAddr, bytes: u64) -> Error {
    Error::CopyOutOfRange { address, bytes, state: AddressState::OutsideGm }
}

/// A page. A system with larger ones refuses what is not aligned to them.
const PAGE: u64 = 4096;
/// From this size on, new pages are cheaper than writing zeros to a user's block, because much of such a block is never touched.
pub(crate) const LARGE: u64 = 4 << 20;
/// The same size for an arena: a small run does not touch most of it.
pub(crate) const LARGE_ARENA: u64 = 128 << 10;

/// From this size on an arena may have huge pages. A small one would take, and have zeroed, more memory than it touches.
pub(crate) const HUGE_ARENA: u64 = 8 << 20;
/// A huge page, of the size that most systems have.
const HUGE_PAGE: u64 = 2 << 20;

/// A mapping, unmapped on drop.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone; all access goes through `GmWindow`s, which may be used
// on any thread.
unsafe impl Send for Mapping {}
// SAFETY: as for Send.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(bytes: u64) -> Result<Self, Error> {
        let refused = |source| Error::MapGm { bytes, source };
        // A slice or an allocation of Rust never exceeds isize::MAX, and no more is ever mapped.
        let length = usize::try_from(bytes).ok().filter(|length| isize::try_from(*length).is_ok());
        let length = length.ok_or_else(|| refused(io::ErrorKind::OutOfMemory.into()))?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // GM may be larger than the memory of this machine: only what is touched is taken. miri knows no such mapping.
        let unreserved = if cfg!(miri) { 0 } else { libc::MAP_NORESERVE };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | unreserved;
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(refused(io::Error::last_os_error()));
        }
        let start = NonNull::new(start.cast::<u8>());
        let start = start.ok_or_else(|| refused(io::ErrorKind::AddrNotAvailable.into()))?;
        Ok(Self { start, bytes: length })
    }

    /// Replaces the whole pages of this range by new pages of zeros, which take no memory before they are touched. Returns the replaced range;
    /// `None`: that is not worth it, or the system refuses.
    fn renew(&self, range: Range<u64>, large: u64) -> Option<Range<u64>> {
        let pages = range.start.next_multiple_of(PAGE)..range.end / PAGE * PAGE;
        let bytes = pages.end.checked_sub(pages.start).filter(|bytes| *bytes >= large)?;
        if cfg!(miri) || range.end > self.bytes as u64 {
            return None;
        }
        let (offset, length) = (usize::try_from(pages.start).ok()?, usize::try_from(bytes).ok()?);
        let first_page = self.start.as_ptr().wrapping_add(offset).cast();
        // Where the system refuses, such as for pages that are locked, the mapping is as before. Elsewhere than on Linux the call promises no zeros.
        #[cfg(target_os = "linux")]
        // SAFETY: the pages are of this mapping, which is private and anonymous, and hold plain bytes that the caller wants to be zeros.
        let is_new = unsafe { libc::madvise(first_page, length, libc::MADV_DONTNEED) } == 0;
        #[cfg(not(target_os = "linux"))]
        let is_new = false;
        is_new.then_some(pages)
    }

    /// Asks for huge pages where they lie in this range as a whole. A system without them says no, and nothing else changes.
    fn prefer_huge_pages(&self, range: Range<u64>) {
        let first = self.start.as_ptr().expose_provenance() as u64;
        let start = (first + range.start).next_multiple_of(HUGE_PAGE) - first;
        let end = ((first + range.end) / HUGE_PAGE * HUGE_PAGE).saturating_sub(first);
        let bytes = end.min(self.bytes as u64).saturating_sub(start);
        let (Ok(offset), Ok(length)) = (usize::try_from(start), usize::try_from(bytes)) else {
            return;
        };
        let first_page = self.start.as_ptr().wrapping_add(offset);
        #[cfg(all(target_os = "linux", not(miri)))]
        if length > 0 {
            // SAFETY: the pages are of this mapping; their bytes stay as they are.
            unsafe { libc::madvise(first_page.cast(), length, libc::MADV_HUGEPAGE) };
        }
        #[cfg(not(all(target_os = "linux", not(miri))))]
        let _ = (first_page, length);
    }

    /// # Safety
    /// The caller keeps this alive for as long as the window, or anything made from it, is used.
    unsafe fn lasting_window(&self) -> GmWindow<'static> {
        // On the simulator the device address is the address in this process.
        let address = GmAddr(self.start.as_ptr().expose_provenance() as u64);
        // SAFETY: the caller promises the lifetime.
        unsafe { self.window_at(address) }
    }

    /// # Safety
    /// As [`lasting_window`](Self::lasting_window).
    unsafe fn window_at(&self, address: GmAddr) -> GmWindow<'static> {
        // SAFETY: the mapping is readable and writable, aligned to a page, and reached through windows and
        // kernels' raw pointers only; the caller promises the lifetime.
        unsafe { GmWindow::from_raw(self.start.as_ptr(), self.bytes as u64, address) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `map` made this mapping of exactly this length, and nothing borrows it any more.
        let result = unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert_eq!(result, 0, "munmap: {}", io::Error::last_os_error());
    }
}

#[cfg(test)]
mod tests {
    use super::{Gm, LARGE};
    use crate::error::Error;

    #[test]
    fn memory_is_zero_aligned_and_writable() {
        let gm = Gm::map(1 << 20).unwrap();
        assert_eq!(gm.address().0 % 4096, 0);
        let window = gm.window();
        assert_eq!(window.read::<u64>((1 << 20) - 8), Some(0));
        window.write(8, &7_u64).unwrap();
        assert_eq!(window.read::<u64>(8), Some(7));
        assert!(window.read::<u64>((1 << 20) - 7).is_none());
    }

    #[test]
    fn huge_pages_change_no_byte_and_are_asked_for_inside_of_the_mapping_only() {
        let gm = Gm::map(9 << 20).unwrap();
        let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(9 << 20).collect();
        gm.write(gm.address(), &bytes).unwrap();
        for (offset, length) in [(0, 9 << 20), (4096, 8 << 20), (5, 100), (3 << 20, 1 << 20)] {
            gm.prefer_huge_pages(gm.address().offset(offset), length);
        }
        gm.prefer_huge_pages(gm.address(), u64::MAX / 2);
        let mut found = vec![0; 9 << 20];
        gm.read(gm.address(), &mut found).unwrap();
        assert!(found == bytes);
    }

    #[test]
    fn a_large_range_is_zero_again_and_no_other_byte() {
        let gm = Gm::map(16 << 20).unwrap();
        let ones = vec![1_u8; 16 << 20];
        gm.write(gm.address(), &ones).unwrap();
        let (start, bytes) = (4096 - 3, (8 << 20) + 5);
        gm.zero(gm.address().offset(start), bytes, LARGE).unwrap();
        let mut found = vec![7_u8; 16 << 20];
        gm.read(gm.address(), &mut found).unwrap();
        for (at, byte) in (0..).zip(&found) {
            assert_eq!(*byte, u8::from(!(start..start + bytes).contains(&at)), "byte {at}");
        }
    }

    /// The system does not give new pages for those that are locked.
    #[test]
    #[cfg(target_os = "linux")]
    fn what_the_system_refuses_to_renew_is_written() {
        let gm = Gm::map(16 << 20).unwrap();
        gm.write(gm.address(), &vec![1_u8; 16 << 20]).unwrap();
        let page = gm.window().pointer(8 << 20, 4096, 4096).unwrap();
        // SAFETY: the page is of this mapping.
        let locked = unsafe { libc::mlock(page.cast(), 4096) };
        assert_eq!(locked, 0, "a page may be locked");
        gm.zero(gm.address(), 16 << 20, LARGE).unwrap();
        let mut found = vec![7_u8; 16 << 20];
        gm.read(gm.address(), &mut found).unwrap();
        assert!(found.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error_with_the_size() {
        for bytes in [0, 1 << 62, u64::MAX] {
            let error = Gm::map(bytes).err().expect("no machine maps this");
            assert!(matches!(error, Error::MapGm { bytes: named, .. } if named == bytes));
        }
    }
}
