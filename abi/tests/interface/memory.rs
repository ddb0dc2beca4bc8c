//! Ordinary memory as GM.

use std::alloc::{Layout, alloc_zeroed, dealloc};

use pto_abi::{GmAddr, GmWindow};

/// First address of the tests' GM.
pub(crate) const GM: GmAddr = GmAddr(0x4000_0000);

/// Passes `test` a window on `bytes` zeros.
pub(crate) fn with_gm<R>(bytes: u64, test: impl FnOnce(GmWindow<'_>) -> R) -> R {
    let layout = Layout::from_size_align(usize::try_from(bytes.max(64)).unwrap(), 4096).unwrap();
    // SAFETY: the layout has a size above zero.
    let start = unsafe { alloc_zeroed(layout) };
    assert!(!start.is_null());
    // SAFETY: the memory is mapped until the end of this function, is aligned to a page, and is reached
    // through windows only.
    let result = test(unsafe { GmWindow::from_raw(start, bytes, GM) });
    // SAFETY: allocated above with this layout; `test` cannot keep the window.
    unsafe { dealloc(start, layout) };
    result
}
