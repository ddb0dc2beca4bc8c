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

        #[cfg(any(target_os = "none", all(target_arch = "x86_64", target_os = "linux", panic = "abort")))]
        core::arch::global_asm!(
            ".section .pto.blob.header, \"a\"",
            ".balign 4096",
            ".global pto_blob",
            "pto_blob: .quad {magic}",
            ".short {major}, {minor}",
            ".long {count}",
            ".quad PTO_BLOB_END - . + 16",
            ".zero 40",
            magic = const $crate::abi::fw_image::KERNEL_BLOB_MAGIC,
            major = const $crate::abi::runtime::ABI_MAJOR,
            minor = const $crate::abi::runtime::ABI_MINOR,
            count = const KERNELS.len(),
        );

        $(
            #[cfg(any(target_os = "none", all(target_arch = "x86_64", target_os = "linux", panic = "abort")))]
            core::arch::global_asm!(
                ".section .pto.blob.table, \"a\"",
                ".quad {entry} - .",
                ".long {id}, {kind}",
                concat!("2: .ascii \"", $($name)*, "\""),
                ".zero {name_bytes} - (. - 2b)",
                entry = sym $entry,
                id = const $id,
                kind = const $crate::abi::CoreKind::$kind.get(),
                name_bytes = const $crate::abi::fw_image::KERNEL_NAME_BYTES,
            );
        )*

        /// A kernel that panics ends in an exception, which is a fault of the run.
        #[cfg(any(target_os = "none", all(target_arch = "x86_64", target_os = "linux", panic = "abort")))]
        #[panic_handler]
        fn on_panic(_: &core::panic::PanicInfo<'_>) -> ! {
            #[cfg(target_arch = "aarch64")]
            // SAFETY: ends the kernel with an exception.
            unsafe {
                core::arch::asm!("brk #0xf02", options(noreturn))
            }
            #[cfg(target_arch = "x86_64")]
            // SAFETY: ends the kernel with an exception.
            unsafe {
                core::arch::asm!("ud2", options(noreturn))
            }
        }

        // The target of the development machine leaves these to the C library, which a blob has not.
        #[cfg(all(target_arch = "x86_64", target_os = "linux", panic = "abort"))]
        core::arch::global_asm!(
            ".macro PTO_FUNCTION name",
            ".hidden \\name",
            ".global \\name",
            ".type \\name, @function",
            "\\name:",
            ".endm",
            ".text",
            "PTO_FUNCTION memcpy",
            "mov rax, rdi",
            "mov rcx, rdx",
            "rep movsb",
            "ret",
            "PTO_FUNCTION memmove",
            "mov rax, rdi",
            "mov rcx, rdx",
            // Forwards, if the target begins before the source or past its end.
            "mov r8, rdi",
            "sub r8, rsi",
            "cmp r8, rdx",
            "jb 2f",
            "rep movsb",
            "ret",
            "2: lea rdi, [rdi + rdx - 1]",
            "lea rsi, [rsi + rdx - 1]",
            "std",
            "rep movsb",
            "cld",
            "ret",
            "PTO_FUNCTION memset",
            "mov r8, rdi",
            "mov eax, esi",
            "mov rcx, rdx",
            "rep stosb",
            "mov rax, r8",
            "ret",
            "PTO_FUNCTION bcmp",
            "PTO_FUNCTION memcmp",
            "xor eax, eax",
            "xor ecx, ecx",
            "2: cmp rcx, rdx",
            "je 3f",
            "movzx eax, byte ptr [rdi + rcx]",
            "movzx r8d, byte ptr [rsi + rcx]",
            "inc rcx",
            "sub eax, r8d",
            "je 2b",
            "3: ret",
            "PTO_FUNCTION rust_eh_personality",
            "ud2",
        );
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
