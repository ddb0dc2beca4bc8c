//! The scratch memory of the cores ([`pto_graph::plan::task::scratch`]): a core takes a free slot for the time of a task.
//!
//! There are as many slots as cores, so that a core always finds one. A slot keeps the kernel that was accepted in it last: most
//! tasks of a program find theirs there.

use core::mem::MaybeUninit;

use pto_abi::sync::{AtomicU64, Ordering};
use pto_graph::plan::task::scratch as layout;

use super::shared::shared_word;
use crate::args::{load, size, store};
use crate::tile::{Interpreter, Kernel};

/// A kernel that was accepted.
pub(super) struct AcceptedKernel {
    pub(super) machine: Interpreter,
    pub(super) kernel: Kernel,
}

/// Words in front of the accepted kernel: where its code is, and how many bytes; zero: there is none.
const HEAD_WORDS: usize = 8;
const _: () = assert!(size_of::<AcceptedKernel>() + HEAD_WORDS * 8 <= layout::KERNEL_WORDS * 8);
const _: () = assert!(align_of::<AcceptedKernel>() <= 8);

/// A slot that this core has taken.
pub(super) struct Scratch<'a> {
    flag: &'a AtomicU64,
    /// The line of the flag.
    line: u64,
    base: u64,
    frame_words: usize,
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire of the exchange in `take`, so that the next core sees what was kept.
        self.flag.store(0, Ordering::Release);
    }
}

impl Scratch<'_> {
    /// Takes a free slot, the search for which begins where `hint` says; `None`: there are more cores than slots.
    ///
    /// # Safety
    /// The scratch memory is mapped at `pool`, laid out as [`layout`] says, and reached through this type only.
    pub(super) unsafe fn take(pool: u64, hint: u64) -> Option<Self> {
        // SAFETY: the caller promises the memory.
        let head = |at: usize| unsafe { load::<u64>(pool, at) };
        let slots = size(head(layout::PLACES));
        let slot_words = size(head(layout::PLACE_WORDS));
        // Concurrent tasks have different words, so their searches begin at different slots.
        let first = size(hint / 64).checked_rem(slots)?;
        (first..slots).chain(0..first).find_map(|number| {
            let at = layout::FLAGS + number * layout::FLAG_WORDS;
            let line = pool.wrapping_add(8 * at as u64);
            // SAFETY: the caller promises the memory: each slot has its flag.
            let flag = unsafe { shared_word(line, 0) };
            // Acquire: pairs with the Release of `drop`.
            flag.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).ok()?;
            let at = layout::places_at(slots) + number * slot_words;
            let frame_words = slot_words.saturating_sub(layout::KERNEL_WORDS);
            Some(Self { flag, line, base: pool.wrapping_add(8 * at as u64), frame_words })
        })
    }

    /// Adds the cycles of a kernel to those of the slot.
    pub(super) fn add_cycles(&mut self, cycles: u64) {
        // SAFETY: the word is in the line of the flag, and belongs to the core that has the slot.
        let before = unsafe { load::<u64>(self.line, layout::CYCLES) };
        // SAFETY: the word is in the line of the flag, and belongs to the core that has the slot.
        unsafe { store(self.line, layout::CYCLES, before.wrapping_add(cycles)) }
    }

    /// The kernel with this code, accepted, and the memory in which it is executed; `None`: the code is none.
    ///
    /// # Safety
    /// `bytes` bytes of code are mapped, and they do not change.
    pub(super) unsafe fn load(
        &mut self,
        code: u64,
        bytes: u64,
    ) -> Option<(&AcceptedKernel, &mut [u64])> {
        // SAFETY: the slot is this core's; its head is there.
        let head = |at: usize| unsafe { load::<u64>(self.base, at) };
        let kept = self.base.wrapping_add(8 * HEAD_WORDS as u64);
        let kept =
            core::ptr::with_exposed_provenance_mut::<MaybeUninit<AcceptedKernel>>(size(kept));
        if [head(0), head(1)] != [code, bytes] {
            // SAFETY: the caller promises the code.
            let loaded = unsafe { accept(code, bytes)? };
            // SAFETY: the slot is this core's, aligned, and has room for it. What was there needs no drop.
            unsafe { kept.write(MaybeUninit::new(loaded)) };
            for (at, word) in [code, bytes].into_iter().enumerate() {
                // SAFETY: the head is there.
                unsafe { store(self.base, at, word) };
            }
        }
        // SAFETY: the slot is this core's, and nothing else refers to what is kept in it.
        let kept = unsafe { &*kept };
        // SAFETY: the head says that a kernel was written here, by this core or by one that had the slot before.
        let loaded = unsafe { kept.assume_init_ref() };
        let frame = self.base.wrapping_add(8 * layout::KERNEL_WORDS as u64);
        let frame = core::ptr::with_exposed_provenance_mut::<u64>(size(frame));
        // SAFETY: the words after the kernel are the frame's, and this core's.
        let frame = unsafe { core::slice::from_raw_parts_mut(frame, self.frame_words) };
        Some((loaded, frame))
    }
}

/// Accepts the bytes of a kernel.
///
/// # Safety
/// `bytes` bytes are mapped, and they do not change.
#[cold]
#[inline(never)]
unsafe fn accept(code: u64, bytes: u64) -> Option<AcceptedKernel> {
    let code = core::ptr::with_exposed_provenance::<u8>(size(code));
    // SAFETY: the caller promises the bytes.
    let code = unsafe { core::slice::from_raw_parts(code, size(bytes)) };
    Some(AcceptedKernel { machine: Interpreter::new(), kernel: Kernel::accept(code).ok()? })
}
