//! Makes functions in C and C++ graph builders of a firmware image.
//!
//! ```text
//! c_builder!    int f(Runtime *) of include/pto_firmware.h: Runtime is the arena's first block
//! cpp_builder!  int f(Runtime *) of bindings/include/runtime.h: Runtime is a class Runtime on the stack (object.rs)
//!     -> build_c, build_cpp -> slot for (runtime, build) -> f(runtime)
//!                                 ^                            |
//!                                 `--- aicpu_runtime_add_task(runtime, ..), aicpu_build_api, pto_stream_* (calls.rs)
//! ```
//! `device.rs` wraps the builders of a platform, so that they see the arena and the words of the host. Nothing here
//! knows a platform.
mod build_slots;
mod calls;
mod device;
mod object;

use core::ffi::{c_int, c_void};

use pto_abi::Fault;
use pto_graph::{BuildError, HostedBuilder};
use pto_native::foreign::Build;

pub use device::{DeviceBuilders, DeviceReads};
/// A builder program in C or C++.
pub type Program = unsafe extern "C" fn(runtime: *mut c_void) -> c_int;

/// Runs a builder in C.
///
/// # Errors
/// The fault of the first call that failed; what the builder returned; `LAUNCH_C_BUILDERS`; `BUILD_NO_BUILDER` where the
/// builder does not run on a device.
///
/// # Safety
/// The program is one for the arena's `Runtime`; what it does with it is its author's contract.
pub unsafe fn build_c<G: HostedBuilder>(graph: &mut G, program: Program) -> Result<(), BuildError> {
    let arena = graph.arena().and_then(|arena| arena.pointer(0, 1, 1));
    let runtime: *mut c_void = arena.ok_or(Fault::BUILD_NO_BUILDER)?.cast();
    // SAFETY: as the caller says.
    unsafe { run(graph, runtime, program) }
}

/// Runs a builder in C++.
///
/// # Errors
/// As [`build_c`].
///
/// # Safety
/// The program is one for `class Runtime`.
pub unsafe fn build_cpp<G: HostedBuilder>(
    graph: &mut G,
    program: Program,
) -> Result<(), BuildError> {
    let mut object = object::of(graph).ok_or(Fault::BUILD_NO_BUILDER)?;
    let runtime: *mut c_void = (&raw mut object).cast();
    // SAFETY: as the caller says.
    unsafe { run(graph, runtime, program) }
}

/// # Safety
/// The program is one for this runtime.
unsafe fn run<G: HostedBuilder>(
    graph: &mut G,
    runtime: *mut c_void,
    program: Program,
) -> Result<(), BuildError> {
    let mut build = Build::new(graph);
    // SAFETY: the program is linked in, with this signature, and for this runtime, as the caller says.
    let call = || unsafe { program(runtime) };
    // Four devices of one process may run a builder in C at once.
    let code = build_slots::with(runtime, &mut build, call).ok_or(Fault::LAUNCH_C_BUILDERS)?;
    build.end(code)
}

/// A builder for `firmware!` of a function in C (`include/pto_firmware.h`): `c_builder!(name = "symbol");`.
#[macro_export]
macro_rules! c_builder {
    ($name:ident = $symbol:literal) => {
        $crate::foreign_builder!($name, $symbol, build_c);
    };
}

/// A builder for `firmware!` of a plugin in C++ (`bindings/include/runtime.h`): `cpp_builder!(name = "symbol");`.
#[macro_export]
macro_rules! cpp_builder {
    ($name:ident = $symbol:literal) => {
        $crate::foreign_builder!($name, $symbol, build_cpp);
    };
}

/// What [`c_builder!`] and [`cpp_builder!`] have in common.
#[doc(hidden)]
#[macro_export]
macro_rules! foreign_builder {
    ($name:ident, $symbol:literal, $build:ident) => {
        #[doc = concat!("The builder `", $symbol, "`, which is not Rust.")]
        fn $name<G: $crate::graph::HostedBuilder>(
            graph: &mut G,
        ) -> Result<(), $crate::graph::BuildError> {
            unsafe extern "C" {
                #[link_name = $symbol]
                fn program(runtime: *mut core::ffi::c_void) -> core::ffi::c_int;
            }
            // SAFETY: the image that names the symbol says that it is a builder of this kind.
            unsafe { $crate::c_builder::$build(graph, program) }
        }
    };
}

#[cfg(test)]
mod tests;
