//! The calls that a compiler makes to copy and to fill memory, instead of those that come with the language for machines without a system: these go byte by
//! byte where the two ends are not aligned alike, and in steps of eight bytes otherwise.
//!
//! A builder calls them often: a view of a tensor has more than a hundred bytes. On an Ascend device they are the C library's, which go in steps of 64 bytes
//! with vector registers; these go in steps of 32 with two pairs of registers. Invariant: until the MMU is on, memory is Device memory, and each caller
//! has both ends aligned to eight bytes (`entry::prepare`).

use core::arch::global_asm;

global_asm!(
    r#"
    .section .text.pto_memory_calls, "ax"
    .global memcpy
    .type memcpy, %function
    memcpy:
        mov     x3, x0
        subs    x2, x2, #32
        b.lo    2f
    1:  ldp     x4, x5, [x1], #16
        ldp     x6, x7, [x1], #16
        stp     x4, x5, [x3], #16
        stp     x6, x7, [x3], #16
        subs    x2, x2, #32
        b.hs    1b
        // The lowest five bits of what is left are those of the count.
    2:  tbz     x2, #4, 3f
        ldp     x4, x5, [x1], #16
        stp     x4, x5, [x3], #16
    3:  tbz     x2, #3, 4f
        ldr     x4, [x1], #8
        str     x4, [x3], #8
    4:  tbz     x2, #2, 5f
        ldr     w4, [x1], #4
        str     w4, [x3], #4
    5:  tbz     x2, #1, 6f
        ldrh    w4, [x1], #2
        strh    w4, [x3], #2
    6:  tbz     x2, #0, 7f
        ldrb    w4, [x1]
        strb    w4, [x3]
    7:  ret
    .size memcpy, . - memcpy

    .global memset
    .type memset, %function
    memset:
        mov     x3, x0
        and     x1, x1, #0xff
        mov     x4, #0x0101010101010101
        mul     x1, x1, x4
        subs    x2, x2, #32
        b.lo    2f
    1:  stp     x1, x1, [x3], #16
        stp     x1, x1, [x3], #16
        subs    x2, x2, #32
        b.hs    1b
    2:  tbz     x2, #4, 3f
        stp     x1, x1, [x3], #16
    3:  tbz     x2, #3, 4f
        str     x1, [x3], #8
    4:  tbz     x2, #2, 5f
        str     w1, [x3], #4
    5:  tbz     x2, #1, 6f
        strh    w1, [x3], #2
    6:  tbz     x2, #0, 7f
        strb    w1, [x3]
    7:  ret
    .size memset, . - memset
    "#
);
