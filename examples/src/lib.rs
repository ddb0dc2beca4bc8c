//! The example programs. `pto run` runs them, the whole-system tests check them, and users copy from them.
//!
//! Each example has two sides, in a folder of its own:
//! - `graph`: the graph program, `fn build<G: GraphBuilder>`. One program serves both runtime variants: the
//!   host runs it on a `HostGraph`, AICPU instance 0 runs it out of [`ExampleBuilders`]. It knows its orchestration
//!   words and GM, nothing else; it is `no_std`, does not allocate and does not panic.
//! - `stream`, where there is one: the program for the streaming runtime, `fn build<G: StreamBuilder>`, with tensors
//!   instead of edges. Without it the streaming runtime runs the graph program; without a graph program no other runtime runs
//!   the example.
//! - `job` (feature `host`): parameters, inputs, the words, an independent reference in `f64`, the check.
//!
//! [`args`] is the way from the words of a launch to the fields of a struct and back; [`host`] is what the
//! `job` sides share. The list of modules and the table [`examples!`] in this file are the one list of all examples.
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

/// The table of examples: one row each. From it come the programs of the simulator ([`ExampleBuilders`](crate::ExampleBuilders)) and of both
/// images, and what the command line and the tests offer ([`host::EXAMPLES`](crate::host)).
///
/// ```text
/// "name" module Job (module of the graph program) (module of the streaming program)
/// ```
///
/// It passes the rows to the macro that is named in the brackets, after the tokens that follow the brackets.
#[doc(hidden)]
#[macro_export]
macro_rules! examples {
    ([$($then:tt)*] $($with:tt)*) => {
        $($then)*! {
            $($with)*
            "vector_example" vector_example VectorExample (graph) ();
            "matmul" matmul Matmul (graph) ();
            "paged_attention" paged_attention PagedAttention (graph) (stream);
            "random_dag" random_dag RandomDag (graph) ();
            "cholesky" cholesky Cholesky (graph) (stream);
            "newton_solve" newton_solve NewtonSolve () (stream);
            "decoder_layer" decoder_layer DecoderLayer () (stream);
            "moe_layer" moe_layer MoeLayer () (stream);
            "task_shapes" task_shapes TaskShapes () (stream);
            "dist_cholesky" dist_cholesky DistCholesky () (stream);
            "tp_decoder" tp_decoder TpDecoder () (stream);
            "pp_decoder" pp_decoder PpDecoder () (stream);
            "ep_moe" ep_moe EpMoe () (stream);
            "dp_training" dp_training DpTraining () (stream);
        }
    };
}

/// Declares a set of builders with the programs of all examples, and more: `with_examples! { builder_set; pub struct Set { .. }
/// stream { .. } }`. The first part names the macro that declares it: [`pto_graph::builder_set!`], or `firmware!` of an image.
#[macro_export]
macro_rules! with_examples {
    (
        $($then:ident)::+; $(#[$meta:meta])* $vis:vis struct $set:ident { $($own:tt)* } stream { $($own_stream:tt)* }
    ) => {
        $crate::examples! {
            [$crate::with_examples] @ [$($then)::+] [$(#[$meta])* $vis struct $set] [$($own)*] [$($own_stream)*]
        }
    };
    (
        @ [$($then:tt)*] [$($head:tt)*] [$($own:tt)*] [$($own_stream:tt)*] $(
            $name:literal $module:ident $job:ident ($($graph:ident)?) ($($stream:ident)?);
        )*
    ) => {
        $($then)*! {
            $($head)* {
                $($($name => $crate::$module::$graph::build,)?)*
                $($own)*
            }
            stream {
                $($($name => $crate::$module::$stream::build,)?)*
                $($own_stream)*
            }
        }
    };
}

/// The program that expands plans of workloads. It is no example, and every firmware with examples has it.
pub use pto_graph::plan::expand;

with_examples! {
    pto_graph::builder_set;
    /// The programs of all examples, to be linked into a firmware.
    pub struct ExampleBuilders {}
    stream { "workload" => pto_graph::plan::expand, "comm_bench" => comm_bench::build, "comm_layer" => comm_layer::build }
}
