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

/// Makes a `no_std`, `no_main` binary a blob of kernels: `kernel_blob! { 20 AIV "scale" kernels::scale; .. }`,
/// func id, core kind, name (at most 48 bytes) and `unsafe extern "C" fn(*const u64)`. Its build script links it
/// as `linker/kernels/build.rs` does.
#[macro_export]
macro_rules! kernel_blob {
    ($($id:literal $kind:ident $name:literal $entry:path;)*) => {
        /// The kernels in the blob: names and code.
        const KERNELS: &[(&str, unsafe extern "C" fn(*const u64))] = &[$(($name, $entry)),*];

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
            const _: () = assert!(
                $name.len() <= $crate::abi::fw_image::KERNEL_NAME_BYTES,
                "the kernel's name is too long"
            );

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
