//! RAM of an emulated machine: memory without a name, mapped here and by QEMU. Nothing of it is left,
//! however this process ends.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

use pto_abi::fw_image::{BootBlock, qemu};
use pto_abi::{GmAddr, GmWindow};

/// RAM of the machine that is no GM.
pub(crate) const BYTES_BEFORE_GM: u64 = qemu::GM_ADDRESS - qemu::RAM_ADDRESS;
/// The largest GM of the machine.
pub(crate) const MAX_GM_BYTES: u64 = qemu::MAX_RAM_BYTES - BYTES_BEFORE_GM;

/// Memory without a name with these bytes, for a process that is given its descriptor.
///
/// # Errors
/// What the system says.
pub fn nameless_file(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(create(name)?);
    file.write_all(bytes)?;
    Ok(file.into())
}

fn create(name: &str) -> io::Result<OwnedFd> {
    let name = CString::new(name)?;
    // SAFETY: the name is a string; the result is checked.
    let descriptor = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open, and this is its only owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// A mapping, unmapped on drop.
pub struct Ram {
    file: OwnedFd,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone; all access goes through `GmWindow`s, which may be used on any
// thread.
unsafe impl Send for Ram {}
// SAFETY: as for Send.
unsafe impl Sync for Ram {}

impl Ram {
    /// `bytes` bytes of zeros; pages cost nothing until they are touched.
    ///
    /// # Errors
    /// What the system says.
    pub fn new(bytes: u64) -> io::Result<Self> {
        Self::mapped(bytes, std::ptr::null_mut(), 0)
    }

    /// The same, at the addresses of this process that it has in the machine. One RAM of a process can be there.
    ///
    /// # Errors
    /// What the system says; `AlreadyExists` where something else has the addresses.
    pub fn in_place(bytes: u64) -> io::Result<Self> {
        let at = usize::try_from(qemu::RAM_ADDRESS).map_err(|_| io::ErrorKind::InvalidInput)?;
        let address = std::ptr::with_exposed_provenance_mut::<libc::c_void>(at);
        let ram = Self::mapped(bytes, address, libc::MAP_FIXED_NOREPLACE)?;
        // A kernel of before Linux 4.17 takes the address as a wish.
        let is_there = ram.start.as_ptr().addr() == at;
        if is_there { Ok(ram) } else { Err(io::ErrorKind::AlreadyExists.into()) }
    }

    fn mapped(bytes: u64, address: *mut libc::c_void, more_flags: libc::c_int) -> io::Result<Self> {
        let too_large = || io::Error::from(io::ErrorKind::InvalidInput);
        let length = usize::try_from(bytes).map_err(|_| too_large())?;
        let file = create("pto-qemu-ram")?;
        let end = libc::off_t::try_from(bytes).map_err(|_| too_large())?;
        // SAFETY: sets the size of our own file.
        if unsafe { libc::ftruncate(file.as_raw_fd(), end) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | more_flags;
        // SAFETY: a mapping that replaces none, at an address of the kernel's choice or at `address`, touches no existing memory.
        let start = unsafe { libc::mmap(address, length, protection, flags, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast::<u8>());
        let start = start.ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))?;
        Ok(Self { file, start, bytes: length })
    }

    /// The file, to be inherited by QEMU.
    #[must_use]
    pub const fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Size in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// All of it, as the machine sees it.
    #[must_use]
    pub const fn window(&self) -> GmWindow<'_> {
        // SAFETY: the window borrows the mapping, which is readable and writable, aligned to a page, and
        // reached through windows only on this side.
        unsafe { GmWindow::from_raw(self.start.as_ptr(), self.bytes(), GmAddr(qemu::RAM_ADDRESS)) }
    }

    /// Makes the pages through which host and image meet what they are before the first boot.
    pub fn clear_boot_block(&self) {
        let at = qemu::BOOT_BLOCK_ADDRESS - qemu::RAM_ADDRESS;
        let written = self.window().write_bytes(at, &[0; size_of::<BootBlock>()]);
        debug_assert!(written.is_some(), "RAM holds the boot block");
    }

    /// GM, for who keeps this alive for as long as the window, or anything made from it, is used.
    ///
    /// # Safety
    /// The caller does so.
    pub(crate) unsafe fn lasting_gm(&self) -> Option<GmWindow<'static>> {
        let offset = qemu::GM_ADDRESS - qemu::RAM_ADDRESS;
        // SAFETY: as in `window`; the caller promises the lifetime.
        let all = unsafe {
            GmWindow::from_raw(self.start.as_ptr(), self.bytes(), GmAddr(qemu::RAM_ADDRESS))
        };
        all.part(offset, self.bytes().checked_sub(offset)?)
    }

    /// GM: what the image and its stacks leave.
    #[must_use]
    pub fn gm(&self) -> Option<GmWindow<'_>> {
        let offset = qemu::GM_ADDRESS - qemu::RAM_ADDRESS;
        self.window().part(offset, self.bytes().checked_sub(offset)?)
    }

    /// The boot block.
    #[must_use]
    pub fn boot_block(&self) -> Option<&BootBlock> {
        self.window().live(qemu::BOOT_BLOCK_ADDRESS - qemu::RAM_ADDRESS)
    }
}

impl Drop for Ram {
    fn drop(&mut self) {
        // SAFETY: `new` made this mapping of exactly this length, and nothing borrows it any more.
        let result = unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert_eq!(result, 0, "munmap: {}", io::Error::last_os_error());
    }
}
