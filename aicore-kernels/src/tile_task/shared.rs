//! Words in GM that several cores reach.

use pto_abi::sync::AtomicU64;

use crate::args::size;

/// A word that several cores reach.
///
/// # Safety
/// The word is there, aligned, and reached by atomics only as long as `'a`.
pub(super) unsafe fn shared_word<'a>(base: u64, at: usize) -> &'a AtomicU64 {
    let word = core::ptr::with_exposed_provenance_mut::<u64>(size(base)).wrapping_add(at);
    // SAFETY: the caller promises the word.
    unsafe { AtomicU64::from_ptr(word) }
}
