//! The one crate that a firmware crate of your own depends on. It has the interface of graph builders, the func ids of the
//! kernel library, and [`firmware!`], which makes the crate an image for the platform that it is built for.
//!
//! ```
//! use pto_firmware::{BuildError, CoreKind, GraphBuilder, TaskSpec, func};
//!
//! fn build<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
//!     let first = graph.submit(TaskSpec::new(func::EMPTY_AIV, CoreKind::AIV, &[]), &[])?;
//!     graph.submit(TaskSpec::new(func::EMPTY_AIC, CoreKind::AIC, &[]), &[first])?;
//!     Ok(())
//! }
//!
//! pto_firmware::firmware! {
//!     /// The builders of this image.
//!     pub struct Builders { "two_tasks" => build }
//! }
//! # fn main() {}
//! ```
//!
//! | target | image | crate type |
//! |---|---|---|
//! | `aarch64-unknown-linux-gnu` | `cann` | `cdylib` |
//! | `aarch64-unknown-none` | `qemu` | `bin` |
//!
//! Builders in C (`include/pto_firmware.h`) and plugins in C++ for `class Runtime` (`bindings/include/runtime.h`) are
//! linked in as objects, and named by [`c_builder!`] and [`cpp_builder!`]; `pto_image_build::sources`, in a build script, compiles them (the crate without its default features):
//!
//! ```ignore
//! pto_firmware::cpp_builder!(attention = "build_graph_aicpu");
//! pto_firmware::firmware! { struct Builders { "attention" => attention } }
//! ```
//!
//! [`qemu`] and `cann` are the code of an image that is specific to its machine; [`c_builder`](mod@c_builder) is what builders in C and C++
//! call, on both.
#![no_std]

pub mod c_builder;
#[cfg(not(target_os = "none"))]
pub mod cann;
pub mod qemu;

#[doc(hidden)]
pub use pto_abi as abi;
pub use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
pub use pto_aicore_kernels::func;
/// What programs are written against, in full.
pub use pto_graph as graph;
pub use pto_graph::{BuildError, EdgeOutcome, GraphBuilder, StreamBuilder, TaskSpec};
