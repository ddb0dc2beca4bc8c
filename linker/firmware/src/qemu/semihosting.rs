//! The end of the machine, with an exit status, by semihosting.

use core::arch::asm;

/// `SYS_EXIT_EXTENDED`.
const SYS_EXIT_EXTENDED: u64 = 0x20;
/// `ADP_Stopped_ApplicationExit`.
const APPLICATION_EXIT: u64 = 0x2_0026;

/// Ends the machine; QEMU exits with the low 8 bits of `status`.
pub(crate) fn exit(status: u64) -> ! {
    let block = [APPLICATION_EXIT, status];
    loop {
        // SAFETY: semihosting reads the two words at x1, and does not return.
        unsafe {
            asm!(
                "hlt #0xF000",
                in("x0") SYS_EXIT_EXTENDED,
                in("x1") block.as_ptr(),
                options(nostack, readonly)
            );
        }
    }
}
