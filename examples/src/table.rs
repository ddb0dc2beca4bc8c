//! The table of examples: one row each. From it come the programs of the simulator ([`Builders`](crate::Builders)) and of both
//! images, and what the command line and the tests offer ([`host::EXAMPLES`](crate::host)).
//!
//! ```text
//! "name" module Job (module of the graph program) (module of the streaming program)
//! ```

/// Hands the rows to the macro that is named in the brackets, behind what follows them.
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
            "cholesky" cholesky Cholesky () (stream);
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
