//! `libpto_runtime`: the interface of the host library for C, C++ and compilers. `cargo xtask generate` makes the header
//! `bindings/include/pto_runtime.h` from this crate, and `tests/c_header` checks that the header is up to date.
//!
//! ```text
//! error.rs     status codes, last error of a thread; every function runs inside `answer`
//! handle.rs    the registry: a handle is a number that was never used before
//! session.rs, program.rs, program_stream.rs, program_run.rs, tensor.rs    programs that are stitched
//! kernel_stream.rs    kernels of a session, and what is captured of them
//! device.rs, memory.rs, kernel.rs, graph.rs, builder.rs, stream.rs, options.rs, run.rs, image.rs, log.rs, version.rs
//! ```
//! No panic leaves this crate, and no pointer from outside is followed unchecked: handles are looked up in the registry, text is
//! checked, and a panic becomes an error.

mod argument;
pub mod builder;
pub mod device;
pub mod error;
pub mod graph;
mod handle;
mod handle_kinds;
pub mod image;
pub mod kernel;
pub mod kernel_stream;
pub mod log;
pub mod memory;
pub mod options;
pub mod program;
pub mod program_run;
pub mod program_stream;
pub mod program_tasks;
pub mod run;
pub mod session;
pub mod stream;
pub mod tensor;
pub mod version;
