//! The function that an unwinder would call for frames of Rust. Nothing unwinds in an image, but the compiler's own
//! arithmetic (a remainder of 128 bits, which the streaming runtime takes) comes compiled with a reference to it.

#[cfg(all(target_arch = "aarch64", target_os = "linux"))]
core::arch::global_asm!(
    ".section .text.rust_eh_personality, \"ax\", %progbits",
    ".p2align 2",
    ".weak rust_eh_personality",
    ".hidden rust_eh_personality",
    ".type rust_eh_personality, %function",
    "rust_eh_personality:",
    "brk #0xf02",
    ".size rust_eh_personality, . - rust_eh_personality",
    ".text",
);
