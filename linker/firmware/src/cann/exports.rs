//! [`firmware!`](crate::firmware): makes a crate a firmware image.

/// Makes a `cdylib` crate a firmware image with these builders, in the form of
/// [`pto_graph::builder_set!`]: the set, the image's identity (section `.note.pto`), the entry symbols (see
/// [`entry`](crate::cann::entry)) and the panic handler, which no image reaches.
///
/// On a development machine, or where panics unwind, the crate is an empty library: an image is built with
/// `--profile firmware --target aarch64-unknown-linux-gnu`.
#[macro_export]
macro_rules! firmware {
    (
        $(#[$meta:meta])* $vis:vis struct $set:ident { $( $name:literal => $build:path ),* $(,)? }
        $( stream { $( $stream_name:literal => $stream_build:path ),* $(,)? } )?
    ) => {
        $crate::graph::builder_set! {
            $(#[$meta])* $vis struct $set { $( $name => $build ),* }
            $( stream { $( $stream_name => $stream_build ),* } )?
        }

        #[cfg(not(all(any(target_arch = "aarch64", target_arch = "x86_64"), target_os = "linux", panic = "abort")))]
        extern crate std;

        #[cfg(all(any(target_arch = "aarch64", target_arch = "x86_64"), target_os = "linux", panic = "abort"))]
        mod pto_cann_image {
            use core::ffi::c_void;

            const NAMES: &[&str] = &[$($name,)* $($($stream_name,)*)?];

            // SAFETY: the section holds this and nothing else; nothing reads it at run time.
            #[used]
            #[unsafe(link_section = ".note.pto")]
            static NOTE: $crate::abi::fw_image::FwElfNote<
                { $crate::abi::fw_image::names_bytes(NAMES) },
            > = $crate::abi::fw_image::FwElfNote::new($crate::abi::launch_words::FW_KIND_CANN, NAMES);

            // SAFETY: the name is that of the launch sequence, and no other function here has it.
            #[unsafe(no_mangle)]
            extern "C" fn StaticTileFwkBackendKernelServer(_args: *mut c_void) -> i32 {
                0
            }

            // SAFETY: the name is that of the launch sequence, and no other function here has it.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn DynTileFwkBackendKernelServerInit(args: *mut c_void) -> i32 {
                // SAFETY: the host's launch keeps the contract of `init`.
                unsafe { $crate::cann::entry::init(args) }
            }

            // SAFETY: the name is that of the launch sequence, and no other function here has it.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn DynTileFwkBackendKernelServer(args: *mut c_void) -> i32 {
                // SAFETY: the host's launch keeps the contract of `run_args`.
                unsafe { $crate::cann::entry::run_args(args, super::$set) }
            }

            // SAFETY: the name is this project's own.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn pto_aicpu_run_launch(words: *mut c_void) -> i32 {
                // SAFETY: the caller keeps the contract of `run_launch`.
                unsafe { $crate::cann::entry::run_launch(words, super::$set) }
            }

            // Division of 128 bits comes ready-made, with unwind tables that name this. Nothing unwinds here; hidden, so that
            // no other library of the process finds it.
            #[cfg(target_arch = "aarch64")]
            $crate::personality!("%function", "brk #0xf03");
            #[cfg(target_arch = "x86_64")]
            $crate::personality!("@function", "ud2");

            #[panic_handler]
            fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
                $crate::cann::entry::unreachable_panic()
            }
        }
    };
}

/// The function that unwind tables name: one instruction, which raises an exception.
#[doc(hidden)]
#[macro_export]
macro_rules! personality {
    ($function:literal, $exception:literal) => {
        ::core::arch::global_asm!(
            ".hidden rust_eh_personality",
            ".global rust_eh_personality",
            concat!(".type rust_eh_personality, ", $function),
            concat!("rust_eh_personality: ", $exception),
            ".size rust_eh_personality, . - rust_eh_personality",
        );
    };
}
