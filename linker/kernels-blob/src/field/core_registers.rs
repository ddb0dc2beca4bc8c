//! The registers of a core that its kernels use: the clock, the timer, and the thread pointer, which nothing else uses.

use core::arch::asm;

/// How long a kernel that waits sleeps between two looks.
const SLEEP_NS: u64 = 20_000;
/// Looks before the first sleep.
const LOOKS: u32 = 100;
/// Nanoseconds of a tick of the device's clock, as kernels know it.
pub(crate) const TICK_NS: u64 = 20;
/// How long a task waits for its conditions, and a kernel for a flag, in ticks.
pub(crate) const TIMEOUT: u64 = 60_000_000_000 / TICK_NS;

/// The word that a core keeps for its kernel.
pub(crate) fn thread_word() -> usize {
    let word: usize;
    // SAFETY: reads a register that changes nothing.
    unsafe { asm!("mrs {}, tpidr_el0", out(reg) word, options(nomem, nostack, preserves_flags)) };
    word
}

/// Changes it.
pub(crate) fn set_thread_word(word: usize) {
    // SAFETY: the firmware has no variables of threads, so that the register is the kernels'.
    unsafe { asm!("msr tpidr_el0, {}", in(reg) word, options(nostack, preserves_flags)) };
}

/// The clock in ticks of [`TICK_NS`].
pub(crate) fn ticks() -> u64 {
    let (count, hz): (u64, u64);
    // SAFETY: reads the clock.
    unsafe {
        asm!("isb", "mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags))
    };
    // SAFETY: reads the frequency of the clock.
    unsafe { asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags)) };
    let per_second = u128::from(1_000_000_000 / TICK_NS);
    let scaled = u128::from(count) * per_second / u128::from(hz.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Waits a little, before look number `look` at what others write.
pub(crate) fn relax(look: u32) {
    if look < LOOKS {
        core::hint::spin_loop();
    } else {
        sleep();
    }
}

/// Sleeps, so that other cores run meanwhile: they share the processors of a host.
pub(crate) fn sleep() {
    let hz: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags)) };
    let ticks = SLEEP_NS * hz / 1_000_000_000;
    // SAFETY: the core's own timer, which its firmware sets anew whenever it sleeps; interrupts are masked, so that none is taken.
    unsafe {
        asm!("msr cntv_tval_el0, {}", "msr cntv_ctl_el0, {}", "isb", "wfi", "msr cntv_ctl_el0, xzr", in(reg) ticks, in(reg) 1_u64,
             options(nostack, preserves_flags));
    }
}

/// Ends the kernel with an exception, which is a fault of the run.
pub(crate) fn end_kernel() -> ! {
    // SAFETY: the core goes on in its exception handler.
    unsafe { asm!("brk #0xf03", options(noreturn)) }
}
