//! The kernel that runs on a core.

use core::ptr::with_exposed_provenance;

use pto_abi::block::BlockContext;
use pto_native::foreign::field::{RunState, TaskFrame};

use crate::core_registers::{set_thread_word, thread_word};

/// See the file.
pub(crate) struct RunningBlock {
    pub(crate) state: &'static RunState,
    pub(crate) frame: &'static TaskFrame,
    pub(crate) block: BlockContext,
    /// Which of the block's cores: AIC, AIV 0, AIV 1.
    pub(crate) slot: u8,
}

impl RunningBlock {
    /// This kernel begins on the core; what was there before.
    pub(crate) fn enter(own: &Self) -> usize {
        let before = thread_word();
        set_thread_word(core::ptr::from_ref(own).expose_provenance());
        before
    }

    /// It has returned.
    pub(crate) fn leave(before: usize) {
        set_thread_word(before);
    }

    /// The kernel on this core.
    pub(crate) fn here<'r>() -> Option<&'r Self> {
        let running: *const Self = with_exposed_provenance(thread_word());
        // SAFETY: null, or what `call::run` keeps while the kernel runs.
        unsafe { running.as_ref() }
    }
}

/// A word that is an address.
pub(crate) const fn word_address(word: u64) -> usize {
    const { assert!(size_of::<usize>() == 8) };
    usize::from_ne_bytes(word.to_ne_bytes())
}
