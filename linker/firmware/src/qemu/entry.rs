//! The first instructions of each vCPU: stacks, floating point for kernels, vectors, MMU and caches; then
//! `pto_vcpu_main`, which never returns.
//!
//! ```text
//! pto_entry (vCPU 0, by QEMU, MMU off)          pto_entry_secondary (PSCI CPU_ON, context = index)
//!   zero .bss, build page tables  ---------.      |
//!                                          v      v
//!                      common: FP on, vectors, TPIDR = index, stacks, MMU on, pto_vcpu_main(index, COLD)
//! ```
//! With the MMU off memory is Device memory: no exclusives, no unaligned access (the target is strict-align).

use core::arch::global_asm;

use pto_abi::fw_image::qemu;

use crate::qemu::page_table;

/// `pto_vcpu_main`'s second argument: the vCPU comes from reset.
pub(crate) const ARRIVAL_COLD: u64 = 0;
/// `pto_vcpu_main`'s second argument: the vCPU comes out of an exception.
pub(crate) const ARRIVAL_RECOVERED: u64 = 1;

/// MAIR_EL1: attribute 0 Normal write-back, 1 Device-nGnRE.
const MAIR: u64 = 0x04FF;
/// TCR_EL1: 39-bit addresses, 4 KiB pages, tables in inner-shareable write-back memory, no TTBR1, 40-bit
/// physical addresses.
const TCR: u64 = 25 | 1 << 8 | 1 << 10 | 3 << 12 | 1 << 23 | 2 << 32;
/// SCTLR_EL1: its RES1 bits; MMU, data and instruction caches on; the stack pointer's alignment is checked.
const SCTLR: u64 = 0x30D0_0800 | 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 12;
/// CPACR_EL1: no trap of floating point and vectors.
const CPACR: u64 = 3 << 20;

global_asm!(
    r#"
    .section .text.pto_entry, "ax"
    .global pto_entry
    pto_entry:
        msr     daifset, #15
        mrs     x19, cntvct_el0
        // The compiler copies with vector registers, also in `prepare`.
        ldr     x0, ={cpacr}
        msr     cpacr_el1, x0
        isb
        adrp    x0, PTO_BSS_START
        add     x0, x0, :lo12:PTO_BSS_START
        adrp    x1, PTO_BSS_END
        add     x1, x1, :lo12:PTO_BSS_END
    1:  cmp     x0, x1
        b.hs    2f
        stp     xzr, xzr, [x0], #16
        b       1b
    2:  ldr     x0, ={stacks} + {stride}
        msr     spsel, #1
        mov     sp, x0
        mov     x0, x19
        bl      {prepare}
        mov     x20, #0
        b       3f

    .global pto_entry_secondary
    pto_entry_secondary:
        msr     daifset, #15
        mov     x20, x0
    3:  ldr     x0, ={cpacr}
        msr     cpacr_el1, x0
        adrp    x0, pto_vectors
        add     x0, x0, :lo12:pto_vectors
        msr     vbar_el1, x0
        msr     tpidr_el1, x20
        isb
        // Stacks: exceptions are taken on SP_EL1, everything else runs on SP_EL0.
        ldr     x0, ={stacks} + {stride}
        mov     x1, #{stride}
        madd    x0, x20, x1, x0
        msr     spsel, #1
        mov     sp, x0
        msr     spsel, #0
        sub     x0, x0, #{exception_part}
        mov     sp, x0
        // MMU. The caches hold nothing that was written before they were on, which reset guarantees.
        ldr     x0, ={mair}
        msr     mair_el1, x0
        ldr     x0, ={tcr}
        msr     tcr_el1, x0
        adrp    x0, {tables}
        add     x0, x0, :lo12:{tables}
        msr     ttbr0_el1, x0
        dsb     sy
        isb
        tlbi    vmalle1
        ic      iallu
        dsb     sy
        isb
        ldr     x0, ={sctlr}
        msr     sctlr_el1, x0
        isb
        mov     x0, x20
        mov     x1, #{cold}
        mov     x29, xzr
        mov     x30, xzr
        bl      pto_vcpu_main
        brk     #0xf00
    .ltorg
    "#,
    stacks = const qemu::STACKS_ADDRESS,
    stride = const qemu::STACK_STRIDE,
    exception_part = const qemu::EXCEPTION_STACK_BYTES + qemu::STACK_GAP,
    prepare = sym prepare,
    tables = sym page_table::TABLES,
    cpacr = const CPACR,
    mair = const MAIR,
    tcr = const TCR,
    sctlr = const SCTLR,
    cold = const ARRIVAL_COLD,
);

unsafe extern "C" {
    /// Where PSCI starts a vCPU; the context is its index.
    pub(crate) fn pto_entry_secondary();
}

/// On vCPU 0, MMU off: what must be ready before the MMU is on anywhere.
extern "C" fn prepare(entry_ticks: u64) {
    let ram_bytes = crate::qemu::vcpu::accept_boot_header(entry_ticks);
    page_table::build(ram_bytes);
}
