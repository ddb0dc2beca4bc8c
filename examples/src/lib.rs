//! The example programs. `pto run` runs them, the whole-system tests check them, and users copy from them.
//!
//! Each example has two sides, in a folder of its own:
//! - `graph`: the graph program, `fn build<G: GraphBuilder>`. One program serves both runtime variants: the
//!   host runs it on a `HostGraph`, AICPU instance 0 runs it out of [`Builders`]. It knows its orchestration
//!   words and GM, nothing else; it is `no_std`, does not allocate and does not panic.
//! - `stream`, where there is one: the program for the streaming runtime, `fn build<G: StreamBuilder>`, with tensors
//!   instead of edges. Without it the streaming runtime runs the graph program; without a graph program no other runtime runs
//!   the example.
//! - `job` (feature `host`): parameters, inputs, the words, an independent reference in `f64`, the check.
//!
//! [`args`] is the way from the words of a launch to the fields of a struct and back; [`host`] is what the
//! `job` sides share. `table.rs` is the one list of all examples.
#![no_std]

#[cfg(any(test, feature = "host"))]
extern crate std;

pub mod args;
pub mod cholesky;
pub mod comm_bench;
pub mod comm_layer;
pub mod decoder_layer;
pub mod dist_cholesky;
pub mod dp_training;
pub mod ep_moe;
#[cfg(feature = "host")]
pub mod host;
pub mod matmul;
pub mod moe_layer;
pub mod newton_solve;
pub mod paged_attention;
pub mod pp_decoder;
pub mod random_dag;
mod streaming;
mod table;
pub mod task_shapes;
pub mod tp_decoder;
#[cfg(feature = "host")]
pub mod training_loop;
pub mod vector_example;
#[cfg(feature = "host")]
pub mod workload;

#[cfg(all(test, feature = "host"))]
mod dry_run;
#[cfg(all(test, feature = "host"))]
mod group_tests;
#[cfg(all(test, feature = "host"))]
mod testing;

/// The program that expands plans of workloads. It is no example, and every firmware with examples has it.
pub use pto_graph::plan::expand;

with_examples! {
    pto_graph::builder_set;
    /// The programs of all examples, to be linked into a firmware.
    pub struct Builders {}
    stream { "workload" => pto_graph::plan::expand, "comm_bench" => comm_bench::build, "comm_layer" => comm_layer::build }
}
