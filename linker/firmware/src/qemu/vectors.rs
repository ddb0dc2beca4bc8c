//! The exception vectors, and the way back from an exception.
//!
//! ```text
//! SP_EL0 (ordinary code) --exception--> frame on the exception stack --> on_exception(frame, vector)
//!                                                     |
//!        pto_vcpu_main(index, RECOVERED) <--eret------' with a fresh stack: what was interrupted is given up
//! SP_EL1 (a handler)     --exception--> fresh exception stack --> on_double_exception, for good
//! ```
//! Interrupts stay masked: the nap's timer wakes WFI without being taken. One that comes is a defect, too.

use core::arch::global_asm;

use pto_abi::fw_image::qemu;

use crate::qemu::entry::ARRIVAL_RECOVERED;
use crate::qemu::exception::{SavedRegisters, on_double_exception, on_exception};

global_asm!(
    r#"
    .macro PTO_VECTOR number
    .balign 0x80
        sub     sp, sp, #{frame}
        stp     x0, x1, [sp]
        mov     x1, #\number
        b       pto_exception
    .endm

    .macro PTO_VECTOR_AGAIN number
    .balign 0x80
        mov     x1, #\number
        b       pto_exception_again
    .endm

    .section .text.pto_vectors, "ax"
    .balign 0x800
    .global pto_vectors
    pto_vectors:
        PTO_VECTOR 0
        PTO_VECTOR 1
        PTO_VECTOR 2
        PTO_VECTOR 3
        PTO_VECTOR_AGAIN 4
        PTO_VECTOR_AGAIN 5
        PTO_VECTOR_AGAIN 6
        PTO_VECTOR_AGAIN 7
        // From EL0, which is not used.
        PTO_VECTOR_AGAIN 8
        PTO_VECTOR_AGAIN 9
        PTO_VECTOR_AGAIN 10
        PTO_VECTOR_AGAIN 11
        PTO_VECTOR_AGAIN 12
        PTO_VECTOR_AGAIN 13
        PTO_VECTOR_AGAIN 14
        PTO_VECTOR_AGAIN 15

    .balign 0x80
    pto_exception:
        stp     x2, x3, [sp, #16]
        stp     x4, x5, [sp, #32]
        stp     x6, x7, [sp, #48]
        stp     x8, x9, [sp, #64]
        stp     x10, x11, [sp, #80]
        stp     x12, x13, [sp, #96]
        stp     x14, x15, [sp, #112]
        stp     x16, x17, [sp, #128]
        stp     x18, x19, [sp, #144]
        stp     x20, x21, [sp, #160]
        stp     x22, x23, [sp, #176]
        stp     x24, x25, [sp, #192]
        stp     x26, x27, [sp, #208]
        stp     x28, x29, [sp, #224]
        mrs     x2, sp_el0
        stp     x30, x2, [sp, #240]
        mrs     x2, esr_el1
        mrs     x3, elr_el1
        stp     x2, x3, [sp, #256]
        mrs     x2, far_el1
        mrs     x3, spsr_el1
        stp     x2, x3, [sp, #272]
        mov     x0, sp
        bl      {on_exception}
        add     sp, sp, #{frame}
        // Back with a fresh stack, interrupts masked, EL1 on SP_EL0.
        mrs     x0, tpidr_el1
        ldr     x2, ={stacks} + {stride} - {exception_part}
        mov     x3, #{stride}
        madd    x2, x0, x3, x2
        msr     sp_el0, x2
        adrp    x2, pto_vcpu_main
        add     x2, x2, :lo12:pto_vcpu_main
        msr     elr_el1, x2
        mov     x2, #0x3c4
        msr     spsr_el1, x2
        mov     x1, #{recovered}
        mov     x29, xzr
        mov     x30, xzr
        eret

    pto_exception_again:
        mrs     x0, tpidr_el1
        ldr     x2, ={stacks} + {stride}
        mov     x3, #{stride}
        madd    x2, x0, x3, x2
        mov     sp, x2
        bl      {on_double_exception}
        b       .
    .ltorg
    "#,
    frame = const size_of::<SavedRegisters>(),
    on_exception = sym on_exception,
    on_double_exception = sym on_double_exception,
    stacks = const qemu::STACKS_ADDRESS,
    stride = const qemu::STACK_STRIDE,
    exception_part = const qemu::EXCEPTION_STACK_BYTES + qemu::STACK_GAP,
    recovered = const ARRIVAL_RECOVERED,
);
