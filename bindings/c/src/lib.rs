//! `libpto_runtime`: the host side for C, C++ and compilers. The header `bindings/include/pto_runtime.h` is generated from
//! this crate (`cargo xtask generate`; `tests/header.rs` holds it current).
//!
//! ```text
//! error.rs     status codes, last error of a thread; every function runs inside `answer`
//! handle.rs    the registry: a handle is a number that was never used before
//! session.rs, program.rs, program_stream.rs, program_run.rs, tensor.rs    programs that are stitched
//! device.rs, memory.rs, kernel.rs, graph.rs, builder.rs, stream.rs, options.rs, run.rs, image.rs, log.rs, version.rs
//! ```
//! No panic and no foreign pointer passes: a handle is looked up, text is checked, and what unwinds becomes an error.

mod argument;
pub mod builder;
pub mod device;
pub mod error;
pub mod graph;
mod handle;
pub mod image;
pub mod kernel;
pub mod log;
pub mod memory;
pub mod options;
pub mod program;
pub mod program_run;
pub mod program_stream;
pub mod run;
pub mod session;
pub mod stream;
pub mod tensor;
pub mod version;
