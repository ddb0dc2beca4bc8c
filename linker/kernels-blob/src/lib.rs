//! [`kernel_blob!`] makes a blob: kernels as one piece of position-independent code for an AArch64 device.
//!
//! ```text
//! KernelBlobHeader | KernelBlobEntry[kernel_count] | code and constants
//! ```
//! The host copies the blob to a page of GM. The address of a kernel is the address of its entry plus the distance in the entry. The
//! table is written in assembly, because Rust has no constant for the distance between two symbols. `blob.ld` refuses code that needs
//! a relocation, and writable data.
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
    (library; $($own:tt)*) => {
        $crate::library::kernels! { [$crate::kernel_blob] library { $($own)* } }
    };
    (library { $($own_id:literal $own_kind:ident $own_name:literal $own_entry:path;)* } $(
        $id:literal $constant:ident $name:ident $kind:ident $summary:literal $args:tt => $body:tt;
    )*) => {
        $crate::kernel_blob! { @all
            $($id $kind [stringify!($name)] $crate::library::library::entry::$name;)*
            $($own_id $own_kind [$own_name] $own_entry;)*
        }
    };
    ($($id:literal $kind:ident $name:literal $entry:path;)*) => {
        $crate::kernel_blob! { @all $($id $kind [$name] $entry;)* }
    };
    (@all $($id:literal $kind:ident [$($name:tt)*] $entry:path;)*) => {
        /// The kernels in the blob: func id, name and code.
        const KERNELS: &[(u32, &str, $crate::KernelFn)] = &[$(($id, $($name)*, $entry)),*];

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
                concat!("2: .ascii \"", $($name)*, "\""),
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
