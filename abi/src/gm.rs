//! A window on global memory: checked access to memory that another agent may write at any time.
//!
//! Bytes are copied word by word with atomic accesses, so that two agents may copy the same bytes at once: what is read then is a mixture, and nothing
//! worse. Single values are read and written by volatile accesses. Live words are seen as references to structs made of atomics only. Nothing is ever seen
//! as a reference to plain data. The unsafe blocks of this crate are in this file, except for the list of those structs (`live.rs`).
//!
//! Why it is so: `docs/decisions/shared-memory.md`.

use bytemuck::Pod;

use crate::ids::GmAddr;
#[cfg(not(any(loom, shuttle)))]
use crate::sync::AtomicU64;
use crate::sync::processor;

/// A struct that consists of atomics only, valid for every bit pattern, so that a reference to it may
/// point to memory that others write.
///
/// # Safety
/// Every byte of the type is part of an atomic (or of a lock made of one) that accepts any bit pattern, and
/// the type has no padding.
#[cfg(not(any(loom, shuttle)))]
pub unsafe trait LiveWords {}

/// The first `N` times eight bytes of a live struct, for a writer of several fields at once. While others look, they must look by such words, too: in
/// Rust two accesses that overlap and are not the same size may not race.
#[cfg(not(any(loom, shuttle)))]
#[inline(always)]
pub(crate) const fn leading_words<T: LiveWords, const N: usize>(of: &T) -> &[AtomicU64; N] {
    const { assert!(8 * N <= size_of::<T>() && align_of::<T>() >= align_of::<AtomicU64>()) };
    // SAFETY: T is aligned as the words are and not smaller than they are together; it is made of atomics that accept any bit pattern, so that its
    // bytes may be seen as other atomics; the reference lives as long as the one it is made from.
    unsafe { &*core::ptr::from_ref(of).cast() }
}

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

// SAFETY: the window is a range of shared memory; all access through it is by atomics or volatile accesses
// of plain data, for which the contract of `from_raw` holds on every thread.
unsafe impl Send for GmWindow<'_> {}
// SAFETY: as for Send.
unsafe impl Sync for GmWindow<'_> {}

impl<'a> GmWindow<'a> {
    /// The window on `bytes` bytes at `start`, which are known as `address` on the device. Live structs are found where they are aligned: `start` is at a
    /// multiple of 64 unless only bytes are copied.
    ///
    /// # Safety
    /// The range is mapped, readable and writable for `'a`; all Rust code
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

    /// Copies bytes out, which others may write meanwhile. `None`: they are not all in the window; nothing was copied.
    #[must_use]
    pub fn read_bytes(&self, offset: u64, to: &mut [u8]) -> Option<()> {
        let lead = self.lead(offset, to.len())?;
        let (head, rest) = to.split_at_mut(lead);
        let (chunks, tail) = rest.as_chunks_mut();
        let (first, count) = (offset + head.len() as u64, chunks.len());
        let words = self.words(first, count)?;
        for (to, word) in chunks.iter_mut().zip(words) {
            *to = word.load(processor::Ordering::Relaxed).to_ne_bytes();
        }
        let tail_offset = first + size_of_val(words) as u64;
        self.read_edge(offset, head)?;
        self.read_edge(tail_offset, tail)
    }

    /// Copies bytes in, which others may read or write meanwhile. `None`: they do not fit the window; nothing was written.
    #[must_use]
    pub fn write_bytes(&self, offset: u64, from: &[u8]) -> Option<()> {
        let lead = self.lead(offset, from.len())?;
        let (head, rest) = from.split_at(lead);
        let (words, tail) = rest.as_chunks();
        let first = offset + head.len() as u64;
        for (word, from) in self.words(first, words.len())?.iter().zip(words) {
            word.store(u64::from_ne_bytes(*from), processor::Ordering::Relaxed);
        }
        let tail_offset = first + size_of_val(words) as u64;
        self.write_edge(offset, head)?;
        self.write_edge(tail_offset, tail)
    }

    /// How many of `length` bytes at `offset` are before the first whole word. `None`: the window does not hold them all.
    fn lead(&self, offset: u64, length: usize) -> Option<usize> {
        let at = self.pointer(offset, length as u64, 1)?.addr();
        Some((at.next_multiple_of(align_of::<processor::AtomicU64>()) - at).min(length))
    }

    /// So many words; where there is none, the offset may be that of any byte.
    fn words(&self, offset: u64, count: usize) -> Option<&'a [processor::AtomicU64]> {
        let align = if count == 0 { 1 } else { align_of::<processor::AtomicU64>() };
        let at = self.pointer(offset, 8 * count as u64, align)?;
        if count == 0 {
            return Some(&[]);
        }
        // SAFETY: `pointer` checked range and alignment; a slice of atomics may point to memory that others write; the memory lives for 'a.
        Some(unsafe { core::slice::from_raw_parts(at.cast(), count) })
    }

    /// Returns `count` bytes from `offset` on.
    fn bytes_at(&self, offset: u64, count: usize) -> Option<&'a [processor::AtomicU8]> {
        let at = self.pointer(offset, count as u64, 1)?;
        // SAFETY: as in `words`.
        Some(unsafe { core::slice::from_raw_parts(at.cast(), count) })
    }

    /// The word that the byte at `offset` is part of, and which of its bytes that is. `None`: the window does not hold all of the word.
    fn word_around(&self, offset: u64) -> Option<(&'a processor::AtomicU64, usize)> {
        let at = self.pointer(offset, 1, 1)?.addr() % align_of::<processor::AtomicU64>();
        let word = self.words(offset.checked_sub(at as u64)?, 1)?.first()?;
        Some((word, at))
    }

    /// Reads some bytes of one word. A word that the window holds is accessed as a whole by all agents: atomic accesses of different sizes may not race.
    fn read_edge(&self, offset: u64, to: &mut [u8]) -> Option<()> {
        let Some((word, at)) = self.word_around(offset).filter(|_| !to.is_empty()) else {
            let bytes = self.bytes_at(offset, to.len())?;
            to.iter_mut()
                .zip(bytes)
                .for_each(|(to, byte)| *to = byte.load(processor::Ordering::Relaxed));
            return Some(());
        };
        to.copy_from_slice(
            word.load(processor::Ordering::Relaxed).to_ne_bytes().get(at..at + to.len())?,
        );
        Some(())
    }

    /// Writes some bytes of one word, as [`read_edge`](Self::read_edge) reads them; the others stay what others make of them.
    fn write_edge(&self, offset: u64, from: &[u8]) -> Option<()> {
        let Some((word, at)) = self.word_around(offset).filter(|_| !from.is_empty()) else {
            let bytes = self.bytes_at(offset, from.len())?;
            bytes
                .iter()
                .zip(from)
                .for_each(|(byte, from)| byte.store(*from, processor::Ordering::Relaxed));
            return Some(());
        };
        let changed = |word: u64| {
            let mut bytes = word.to_ne_bytes();
            bytes.get_mut(at..at + from.len())?.copy_from_slice(from);
            Some(u64::from_ne_bytes(bytes))
        };
        word.fetch_update(processor::Ordering::Relaxed, processor::Ordering::Relaxed, changed)
            .ok()
            .map(|_| ())
    }

    /// Copies bytes out that no agent writes meanwhile: those of an image, which the host has written before the launch.
    #[must_use]
    pub(crate) fn read_settled(&self, offset: u64, to: &mut [u8]) -> Option<()> {
        let from = self.pointer(offset, to.len() as u64, 1)?;
        // SAFETY: `pointer` checked the source range; `to` is a live exclusive slice, so they do not
        // overlap (nothing in GM is reached by references to plain data).
        unsafe { core::ptr::copy_nonoverlapping(from.cast_const(), to.as_mut_ptr(), to.len()) };
        Some(())
    }

    /// Live words at `offset`.
    #[cfg(not(any(loom, shuttle)))]
    #[must_use]
    pub fn live<T: LiveWords>(&self, offset: u64) -> Option<&'a T> {
        let at = self.pointer(offset, size_of::<T>() as u64, align_of::<T>())?.cast::<T>();
        // SAFETY: `pointer` checked range and alignment; T is made of atomics, so a shared reference may
        // point to memory that others write; the memory lives for 'a.
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
