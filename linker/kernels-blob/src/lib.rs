//! [`kernel_blob!`]: kernels as one position-independent blob for an AArch64 device.
//!
//! ```text
//! KernelBlobHeader | KernelBlobEntry[kernel_count] | code and constants
//! ```
//! It is copied to a page of GM; a kernel's address is its entry's plus the entry's distance. The table is
//! written in assembly, because Rust has no constant for the distance between two symbols. `blob.ld` refuses
//! what would need a relocation, and what is writable.
#![no_std]

#[doc(hidden)]
pub use pto_abi as abi;
#[doc(hidden)]
pub use pto_aicore_kernels as library;
/// From a task's words to operands, for kernels.
pub use pto_aicore_kernels::{KernelFn, args, view};

/// Makes a `no_std`, `no_main` binary a blob of kernels: `kernel_blob! { 64 AIV "scale" kernels::scale; .. }`,
/// func id, core kind, name (at most 47 bytes) and `unsafe extern "C" fn(*const u64)`. With `library;` in front the
/// kernels of the library are in it as well, under their own func ids. Its build script links it as
/// `linker/kernels-blob/build.rs` does.
#[macro_export]
macro_rules! kernel_blob {
    (library; $($id:literal $kind:ident $name:literal $entry:path;)*) => {
        $crate::kernel_blob! {
            0 AIV "add" $crate::library::elementwise::add;
            1 AIV "add_scalar" $crate::library::elementwise::add_scalar;
            2 AIV "mul" $crate::library::elementwise::mul;
            3 AIV "exp" $crate::library::elementwise::exp;
            4 AIV "row_max" $crate::library::reduce::row_max;
            5 AIV "row_sum" $crate::library::reduce::row_sum;
            6 AIC "matmul" $crate::library::matmul::matmul;
            7 AIC "matmul_acc" $crate::library::matmul::matmul_acc;
            8 AIC "matmul_add" $crate::library::matmul::matmul_add;
            9 AIC "attention_qk" $crate::library::attention::products::attention_qk;
            10 AIV "attention_softmax_partial"
                $crate::library::attention::softmax::attention_softmax_partial;
            11 AIC "attention_pv" $crate::library::attention::products::attention_pv;
            12 AIV "attention_update" $crate::library::attention::update::attention_update;
            13 AIC "empty_aic" $crate::library::probe::empty_aic;
            14 AIV "empty_aiv" $crate::library::probe::empty_aiv;
            15 AIC "dag_node_aic" $crate::library::probe::dag_node_aic;
            16 AIV "dag_node_aiv" $crate::library::probe::dag_node_aiv;
            17 AIV "spin_aiv" $crate::library::probe::spin_aiv;
            18 AIC "spin_aic" $crate::library::probe::spin_aic;
            19 AIV "cholesky_potrf" $crate::library::cholesky::potrf;
            20 AIV "cholesky_trsm" $crate::library::cholesky::trsm;
            21 AIC "cholesky_syrk" $crate::library::cholesky::syrk;
            22 AIC "cholesky_gemm" $crate::library::cholesky::gemm;
            23 AIV "newton_start" $crate::library::newton::newton_start;
            24 AIV "newton_residual" $crate::library::newton::newton_residual;
            25 AIV "newton_norm" $crate::library::newton::newton_norm;
            26 AIV "copy" $crate::library::layer::copy;
            27 AIV "rms_norm" $crate::library::layer::rms_norm;
            28 AIV "rope" $crate::library::layer::rope;
            29 AIV "silu_mul" $crate::library::layer::silu_mul;
            30 AIV "moe_route" $crate::library::experts::moe_route;
            31 AIV "moe_list" $crate::library::experts::moe_list;
            32 AIV "moe_gather" $crate::library::experts::moe_gather;
            33 AIC "moe_matmul" $crate::library::experts::moe_matmul;
            34 AIV "moe_silu_mul" $crate::library::experts::moe_silu_mul;
            35 AIV "moe_scatter" $crate::library::experts::moe_scatter;
            36 AIC "decode_value" $crate::library::layer::decode_value;
            37 AIV "decode_rotate" $crate::library::layer::decode_rotate;
            38 AIC "part_aic" $crate::library::parts::part_aic;
            39 AIV "part_aiv" $crate::library::parts::part_aiv;
            $($id $kind $name $entry;)*
        }
    };
    ($($id:literal $kind:ident $name:literal $entry:path;)*) => {
        /// The kernels in the blob: func id, name and code.
        const KERNELS: &[(u32, &str, $crate::KernelFn)] = &[$(($id, $name, $entry)),*];

        const _: () = $crate::check(KERNELS);

        #[cfg(target_os = "none")]
        core::arch::global_asm!(
            ".section .pto.blob.header, \"a\"",
            ".balign 4096",
            ".global pto_blob",
            "pto_blob: .quad {magic}",
            ".short {major}, {minor}",
            ".word {count}",
            ".quad PTO_BLOB_END - . + 16",
            ".zero 40",
            magic = const $crate::abi::fw_image::KERNEL_BLOB_MAGIC,
            major = const $crate::abi::runtime::ABI_MAJOR,
            minor = const $crate::abi::runtime::ABI_MINOR,
            count = const KERNELS.len(),
        );

        $(
            #[cfg(target_os = "none")]
            core::arch::global_asm!(
                ".section .pto.blob.table, \"a\"",
                ".quad {entry} - .",
                ".word {id}, {kind}",
                concat!("2: .ascii \"", $name, "\""),
                ".zero {name_bytes} - (. - 2b)",
                entry = sym $entry,
                id = const $id,
                kind = const $crate::abi::CoreKind::$kind.get(),
                name_bytes = const $crate::abi::fw_image::KERNEL_NAME_BYTES,
            );
        )*

        /// A kernel that panics ends in an exception, which is a fault of the run.
        #[cfg(target_os = "none")]
        #[panic_handler]
        fn on_panic(_: &core::panic::PanicInfo<'_>) -> ! {
            // SAFETY: ends the kernel with an exception.
            unsafe { core::arch::asm!("brk #0xf02", options(noreturn)) }
        }
    };
}

/// Refuses a table that no device could use, where it is compiled.
///
/// # Panics
/// A func id that is too large or that is there twice, a name that is empty or too long.
#[doc(hidden)]
pub const fn check(kernels: &[(u32, &str, KernelFn)]) {
    let mut index = 0;
    while index < kernels.len() {
        let (func_id, name, _) = kernels[index];
        assert!((func_id as usize) < abi::limits::MAX_FUNC_ID, "a func id beyond MAX_FUNC_ID");
        assert!(!name.is_empty(), "a kernel without a name");
        // A zero ends it.
        assert!(name.len() < abi::fw_image::KERNEL_NAME_BYTES, "a kernel's name is too long");
        let mut other = 0;
        while other < index {
            assert!(kernels[other].0 != func_id, "two kernels have the same func id");
            other += 1;
        }
        index += 1;
    }
}
