//! The weak `build_graph_aicpu` of an image without a builder in C: it says so.

#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    ".section .text.build_graph_aicpu, \"ax\", %progbits",
    ".p2align 2",
    ".weak build_graph_aicpu",
    ".type build_graph_aicpu, %function",
    "build_graph_aicpu:",
    "mov w0, #0x80000000",
    "ret",
    ".size build_graph_aicpu, . - build_graph_aicpu",
    ".text",
);

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
core::arch::global_asm!(
    ".section .text.build_graph_aicpu, \"ax\", @progbits",
    ".weak build_graph_aicpu",
    ".type build_graph_aicpu, @function",
    "build_graph_aicpu:",
    "mov eax, 0x80000000",
    "ret",
    ".size build_graph_aicpu, . - build_graph_aicpu",
    ".text",
);
