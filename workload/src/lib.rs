//! Workloads: programs as loops over tiles.
//!
//! A [workload](tree) is a tree of loops over axes, whose leaves are calls of [tile kernels](kernel) on views of tensors. A
//! workload is checked when it is built, and errors name the loop, the kernel and the argument. Its textual form is printed,
//! parsed and shown in errors.
//!
//! [`clock`] runs a workload on this machine, in program order, and counts cycles on the `v9` clock (the cost model of PTO-WSP
//! 0.1.0): cycles of tile operations, dispatch to workers, task windows, channels.
//!
//! [`plan`] compiles a workload to some hundred words, which the firmware expands to tasks. [`program`] puts a plan, or a graph, into
//! a file, with descriptions of its tensors.
//!
//! ```text
//! builder, text --> Workload --check--> Checked --clock::run--> tensors, cycles
//!                                          '--plan::compile--> words for the AICPU, code for the cores
//!                     KernelBuilder, text --> TileKernel --encode--> bytes for the tile machine
//! ```
#![forbid(unsafe_code)]

pub mod clock;
pub mod kernel;
mod lexer;
pub mod plan;
pub mod program;
pub mod scalars;
pub mod symbol;
pub mod tree;

pub use kernel::{KernelBuilder, KernelError, TileKernel};
pub use lexer::ParseError;
pub use pto_aicore_kernels::tile;
pub use tree::{Checked, Workload, WorkloadError};
