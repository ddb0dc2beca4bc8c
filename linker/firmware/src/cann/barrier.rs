//! Barriers and cache maintenance of the AICPU: the only module with `dsb`, `isb` and `dc` in this image.
//! (facts/hardware.md, Memory attributes and coherence.)
//!
//! On another machine than AArch64 there are no device memory and no device cores: all of this is empty, and
//! the unit tests run in one thread.

/// Bytes of a line, on AICPU and AICore.
pub const LINE_BYTES: usize = 64;

/// Every store before it is visible to the cores before any store after it: between what a core is to read and
/// its doorbell.
#[inline]
pub fn before_doorbell() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier; it touches no register and no memory. The asm block is also a compiler barrier.
    unsafe {
        core::arch::asm!("dsb st", options(nostack, preserves_flags));
    }
    in_order();
}

/// No load after it is satisfied before the loads before it: between the status of a core and what the core
/// wrote.
#[inline]
pub fn after_status() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as in `before_doorbell`.
    unsafe {
        core::arch::asm!("dsb ld", options(nostack, preserves_flags));
    }
    in_order();
}

/// Of an image for the development machine, whose processor keeps the order of stores, and that of loads: the compiler is to keep it as well.
#[inline]
fn in_order() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: no instruction; the asm block is a compiler barrier.
    unsafe {
        core::arch::asm!("", options(nostack, preserves_flags));
    }
}

/// Writes back and drops every line that holds one of `bytes` bytes at `start`: what the host's DMA wrote
/// since is read afterwards, and what AICPU wrote is where the DMA finds it.
///
/// # Safety
/// The range is mapped.
#[inline(never)]
pub unsafe fn clean_and_invalidate(start: *const u8, bytes: usize) {
    let first = start.addr() & !(LINE_BYTES - 1);
    let end = start.addr().saturating_add(bytes);
    let mut line = first;
    while line < end {
        // SAFETY: the line holds a byte of the range, which the caller says is mapped.
        unsafe { clean_and_invalidate_line(line) };
        line += LINE_BYTES;
    }
    complete();
}

/// # Safety
/// `address` is mapped.
#[inline]
unsafe fn clean_and_invalidate_line(address: usize) {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the address is mapped, by this function's contract; Linux lets user space use `dc civac`. No
    // contents change for anybody who keeps to the coherence rules.
    unsafe {
        core::arch::asm!("dc civac, {}", in(reg) address, options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "aarch64"))]
    let _ = address;
}

/// Maintenance before it has taken effect, and nothing after it was fetched or loaded ahead of it.
#[inline]
fn complete() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as in `before_doorbell`.
    unsafe {
        core::arch::asm!("dsb sy", "isb", options(nostack, preserves_flags));
    }
}
