//! The platform of the device `qemu`: the code of a firmware image that is specific to a bare-metal AArch64 machine. The
//! scheduling policy is in `pto_aicpu_fw`, the worker loop in `pto_aicore_kernels`, and the builders come from the image.
//!
//! ```text
//! entry.rs       first instructions of each vCPU       vectors.rs    exception vectors, and the way back
//! page_table.rs  identity map with guard gaps          exception.rs  what an exception or panic leaves
//! psci.rs        starts vCPUs, ends the machine        uart.rs       PL011
//! timer.rs       clock, GICv3, the nap                 semihosting.rs the exit status
//! serve.rs       boots, waits for launches             instance.rs   takes part as AICPU instance
//! worker.rs      takes part as AICore                  logging.rs    log -> log ring and UART
//! vcpu.rs        what belongs to one vCPU              registers.rs  system registers
//! solo.rs        all in turn, on one vCPU              wake.rs       ends the nap of another vCPU
//! builders.rs    small graphs to count and test with   address.rs   device addresses
//! device_builders.rs  what builders read of GM
//! ```
//! An image is one call of [`firmware!`](crate::firmware) in a `no_std`, `no_main` crate; `linker/images` is the default image.
pub mod builders;

#[cfg(target_os = "none")]
#[macro_use]
mod registers;
#[cfg(target_os = "none")]
mod address;
#[cfg(target_os = "none")]
mod device_builders;
#[cfg(target_os = "none")]
mod entry;
#[cfg(target_os = "none")]
mod exception;
#[cfg(target_os = "none")]
mod instance;
#[cfg(target_os = "none")]
mod logging;
#[cfg(target_os = "none")]
mod memory_calls;
#[cfg(target_os = "none")]
mod page_table;
#[cfg(target_os = "none")]
mod psci;
#[cfg(target_os = "none")]
mod semihosting;
#[cfg(target_os = "none")]
mod serve;
#[cfg(target_os = "none")]
mod solo;
#[cfg(target_os = "none")]
mod timer;
#[cfg(target_os = "none")]
mod uart;
#[cfg(target_os = "none")]
mod vcpu;
#[cfg(target_os = "none")]
mod vectors;
#[cfg(target_os = "none")]
mod wake;
#[cfg(target_os = "none")]
mod worker;

/// Whether the image records runs that ask for it. Without the feature it holds one copy of the firmware less for
/// each fanout strategy.
#[cfg(target_os = "none")]
const TRACES: bool = cfg!(feature = "tracing");
/// Whether the image has the streaming runtime, and with it the programs that need it.
#[doc(hidden)]
pub const STREAMS: bool = !cfg!(feature = "without-streaming");
/// Whether the image has the locked strategy of fanout in addition to the lock-free one, and with it a second copy of the scheduler.
#[cfg(target_os = "none")]
const LOCKED: bool = !cfg!(feature = "without-locked");
/// What an image says of itself.
#[doc(hidden)]
pub const FEATURES: u64 = if cfg!(feature = "tracing") { pto_abi::fw_image::FW_TRACES } else { 0 };
#[cfg(target_os = "none")]
#[doc(hidden)]
pub use serve::serve;

/// Makes a crate a firmware image with these builders, in the form of [`pto_graph::builder_set!`]: the set,
/// the image's identity (section `.note.pto`), and the function that every vCPU runs.
#[cfg(target_os = "none")]
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

        const PTO_NAMES: &[&str] = if $crate::qemu::STREAMS {
            &[$($name,)* $($($stream_name,)*)?]
        } else {
            &[$($name),*]
        };

        // SAFETY: the section holds this and nothing else; nothing reads it at run time.
        #[used]
        #[unsafe(link_section = ".note.pto")]
        static PTO_NOTE: $crate::abi::fw_image::FwElfNote<
            { $crate::abi::fw_image::names_bytes(PTO_NAMES) },
        > = $crate::abi::fw_image::FwElfNote::new($crate::abi::fw_image::FW_KIND_QEMU, PTO_NAMES)
            .with_features($crate::qemu::FEATURES);

        // SAFETY: the name is this project's own; `entry.rs` and `vectors.rs` call it with these arguments.
        #[unsafe(no_mangle)]
        extern "C" fn pto_vcpu_main(index: u64, arrival: u64) -> ! {
            $crate::qemu::serve(index, arrival, $set)
        }
    };
}
