//! A window on global memory: checked access to memory that another agent may write at any time.
//!
//! All reading and writing of plain data is by volatile copies, never by references; live words are seen as
//! references to structs made of atomics only. The unsafe blocks of this crate stand here, but for the list of those
//! structs (`live.rs`).

use bytemuck::Pod;

use crate::ids::GmAddr;

/// A struct that consists of atomics only, valid for every bit pattern, so that a reference to it may
/// stand on memory that others write.
///
/// # Safety
/// Every byte of the type is part of an atomic (or of a lock made of one) that accepts any bit pattern, and
/// the type has no padding.
#[cfg(not(any(loom, shuttle)))]
pub unsafe trait LiveWords {}

/// Asks the processor for the line of something that is about to be written, where that is worth an instruction. Nothing changes.
#[inline(always)]
pub(crate) fn about_to_write<T>(at: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: it is a hint: whatever the address, no memory changes that a program sees.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(core::ptr::from_ref(at).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}

/// A range of GM that this agent can reach.
#[derive(Clone, Copy)]
pub struct GmWindow<'a> {
    start: *mut u8,
    bytes: u64,
    address: GmAddr,
    memory: core::marker::PhantomData<&'a ()>,
}

// SAFETY: the window is a range of shared memory; all access through it is by atomics or volatile copies
// of plain data, for which the contract of `from_raw` holds on every thread.
unsafe impl Send for GmWindow<'_> {}
// SAFETY: as for Send.
unsafe impl Sync for GmWindow<'_> {}

impl<'a> GmWindow<'a> {
    /// The window on `bytes` bytes at `start`, which are known as `address` on the device.
    ///
    /// # Safety
    /// The range is mapped, readable and writable for `'a`; `start` is aligned to 64 bytes; all Rust code
    /// reaches it through windows or raw pointers only, never through references to plain data.
    #[must_use]
    pub const unsafe fn from_raw(start: *mut u8, bytes: u64, address: GmAddr) -> Self {
        Self { start, bytes, address, memory: core::marker::PhantomData }
    }

    /// A window on nothing.
    #[must_use]
    pub const fn empty() -> Self {
        // Aligned as windows are; no byte of it is ever reached.
        let start = core::ptr::without_provenance_mut(64);
        Self { start, bytes: 0, address: GmAddr::NULL, memory: core::marker::PhantomData }
    }

    /// Size in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The device address of the first byte.
    #[must_use]
    pub const fn address(&self) -> GmAddr {
        self.address
    }

    /// The offset of `bytes` bytes at the device address `address`, if the window holds them.
    #[must_use]
    pub fn offset_of(&self, address: GmAddr, bytes: u64) -> Option<u64> {
        let offset = address.0.checked_sub(self.address.0)?;
        (offset.checked_add(bytes)? <= self.bytes).then_some(offset)
    }

    /// The part of the window at `offset`.
    #[must_use]
    pub fn part(&self, offset: u64, bytes: u64) -> Option<Self> {
        let start = self.pointer(offset, bytes, 1)?;
        Some(Self { start, bytes, address: self.address.offset(offset), memory: self.memory })
    }

    /// Copies a plain value out.
    #[must_use]
    pub fn read<T: Pod>(&self, offset: u64) -> Option<T> {
        let from = self.pointer(offset, size_of::<T>() as u64, align_of::<T>())?.cast::<T>();
        // SAFETY: `pointer` checked range and alignment; T is plain data, any bytes make one; volatile,
        // because another agent may write (a torn value is then checked by its reader like any other).
        Some(unsafe { from.read_volatile() })
    }

    /// Copies a plain value in. `None`: it does not fit the window; nothing was written.
    #[must_use]
    pub fn write<T: Pod>(&self, offset: u64, value: &T) -> Option<()> {
        let to = self.pointer(offset, size_of::<T>() as u64, align_of::<T>())?.cast::<T>();
        // SAFETY: `pointer` checked range and alignment; T is plain data.
        unsafe { to.write_volatile(*value) };
        Some(())
    }

    /// Copies bytes out. `None`: they are not all in the window; nothing was copied.
    #[must_use]
    pub fn read_bytes(&self, offset: u64, to: &mut [u8]) -> Option<()> {
        let from = self.pointer(offset, to.len() as u64, 1)?;
        // SAFETY: `pointer` checked the source range; `to` is a live exclusive slice, so they do not
        // overlap (nothing in GM is reached by references to plain data).
        unsafe { core::ptr::copy_nonoverlapping(from.cast_const(), to.as_mut_ptr(), to.len()) };
        Some(())
    }

    /// Copies bytes in. `None`: they do not fit the window; nothing was written.
    #[must_use]
    pub fn write_bytes(&self, offset: u64, from: &[u8]) -> Option<()> {
        let to = self.pointer(offset, from.len() as u64, 1)?;
        // SAFETY: as in `read_bytes`, the other way.
        unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        Some(())
    }

    /// Live words at `offset`.
    #[cfg(not(any(loom, shuttle)))]
    #[must_use]
    pub fn live<T: LiveWords>(&self, offset: u64) -> Option<&'a T> {
        let at = self.pointer(offset, size_of::<T>() as u64, align_of::<T>())?.cast::<T>();
        // SAFETY: `pointer` checked range and alignment; T is made of atomics, so a shared reference may
        // stand on memory that others write; the memory lives for 'a.
        Some(unsafe { &*at })
    }

    /// A table of live words at `offset`.
    #[cfg(not(any(loom, shuttle)))]
    #[must_use]
    pub fn live_slice<T: LiveWords>(&self, offset: u64, count: usize) -> Option<&'a [T]> {
        let bytes = (size_of::<T>() as u64).checked_mul(count as u64)?;
        let at = self.pointer(offset, bytes, align_of::<T>())?.cast::<T>();
        // SAFETY: as in `live`, for `count` of them; the size was computed without overflow.
        Some(unsafe { core::slice::from_raw_parts(at, count) })
    }

    /// The address in this process of `bytes` bytes at `offset`.
    #[must_use]
    pub fn pointer(&self, offset: u64, bytes: u64, align: usize) -> Option<*mut u8> {
        if offset.checked_add(bytes)? > self.bytes {
            return None;
        }
        let at = self.start.wrapping_add(usize::try_from(offset).ok()?);
        at.addr().is_multiple_of(align).then_some(at)
    }
}
