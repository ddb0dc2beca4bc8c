//! PSCI by HVC, as QEMU provides it: starts vCPUs.

use core::arch::asm;

use crate::qemu::entry::pto_entry_secondary;

/// `CPU_ON`, 64-bit.
const CPU_ON: u64 = 0xC400_0003;

/// Starts vCPU `index` at its entry; `false`: the machine refuses.
pub(crate) fn start(index: u64) -> bool {
    // With GICv3, QEMU numbers vCPUs in affinity groups of 16.
    let affinity = index & 15 | (index >> 4) << 8;
    let entry = (pto_entry_secondary as *const ()).addr() as u64;
    let result: i64;
    // SAFETY: CPU_ON starts another vCPU at `entry` with `index` in x0, which is what the entry expects; the
    // call clobbers at most the registers that the SMC calling convention names.
    unsafe {
        asm!(
            "hvc #0",
            inout("x0") CPU_ON => result,
            inout("x1") affinity => _,
            inout("x2") entry => _,
            inout("x3") index => _,
            clobber_abi("C"),
        );
    }
    result == 0
}
