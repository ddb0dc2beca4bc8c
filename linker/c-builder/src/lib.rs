//! A graph builder in C as a builder of a firmware image: `int build_graph_aicpu(Runtime *)` and the
//! `aicpu_runtime_*` functions that it calls (`include/pto_firmware.h`).
//!
//! ```text
//! CBuilder::build(graph) -> seat for (runtime, graph) -> build_graph_aicpu(runtime)
//!                                   ^                         |
//!                                   `---- aicpu_runtime_add_task(runtime, ..) finds the seat by the runtime
//! ```
//! `default.rs` holds the weak `build_graph_aicpu` of an image without one. Knows no platform: the platform says
//! where the runtime is.
#![no_std]

mod calls;
mod default;
mod seat;

use core::ffi::c_void;

use pto_abi::gm::GmWindow;
use pto_abi::graph::{BuildError, GraphBuilder};
use pto_abi::{Fault, symbol};

/// The name by which a launch asks for the builder in C.
pub const NAME: &str = "build_graph_aicpu";
/// Its symbol.
pub const SYMBOL: u64 = symbol::symbol(NAME);
/// What the weak default returns: there is no builder in C.
pub const NO_BUILDER: i32 = i32::MIN;

unsafe extern "C" {
    fn build_graph_aicpu(runtime: *mut c_void) -> i32;
}

/// The builder in C, for one launch.
#[derive(Clone, Copy, Debug)]
pub struct CBuilder {
    runtime: usize,
    generation: u32,
}

impl CBuilder {
    /// For the runtime at the start of `arena`, whose tasks have this generation.
    #[must_use]
    pub fn new(arena: GmWindow<'_>, generation: u32) -> Self {
        let start = arena.pointer(0, 1, 1);
        Self { runtime: start.map_or(0, <*mut u8>::expose_provenance), generation }
    }

    /// Runs the builder.
    ///
    /// # Errors
    /// The fault of the first call that failed; `BUILD_NO_BUILDER`; `LAUNCH_C_BUILDERS`; what the builder returned.
    pub fn build<G: GraphBuilder>(&self, graph: &mut G) -> Result<(), BuildError> {
        let mut calls = calls::Calls { graph, generation: self.generation, fault: None };
        let runtime = core::ptr::with_exposed_provenance_mut(self.runtime);
        // SAFETY: the function is linked in, with this signature (`include/pto_firmware.h`); what it does with
        // the runtime is its author's contract, as for any builder in C.
        let returned =
            seat::with(self.runtime, &mut calls, || unsafe { build_graph_aicpu(runtime) });
        // Four devices of one process may run a builder in C at once.
        let returned = returned.ok_or(Fault::LAUNCH_C_BUILDERS)?;
        match (calls.fault, returned) {
            (Some(fault), _) => Err(fault.into()),
            (None, 0) => Ok(()),
            (None, NO_BUILDER) => Err(Fault::BUILD_NO_BUILDER.into()),
            (None, code) => Err(BuildError::Failed(code)),
        }
    }
}

/// To be listed among an image's builders, so that its identity names the one in C: `"build_graph_aicpu" =>
/// pto_c_builder::listed`. Platforms that know the runtime's address call [`CBuilder::build`] instead.
///
/// # Errors
/// `BUILD_NO_BUILDER`, always: this platform has no builders in C.
pub fn listed<G: GraphBuilder>(_: &mut G) -> Result<(), BuildError> {
    Err(Fault::BUILD_NO_BUILDER.into())
}

#[cfg(test)]
mod tests;
