//! The default firmware image for the CANN driver stack: the examples' builders.
//!
//! `cargo build -p pto-cann-image --profile firmware --target aarch64-unknown-linux-gnu` with
//! `CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc`; `libpto_fw_cann.so` is the image.
//! Everything that the image does is in `pto_cann_platform` and below.
#![no_std]

pto_cann_platform::firmware! {
    /// The builders of the default image.
    pub struct Builders {
        "vector_example" => pto_examples::vector_example::graph::build,
        "matmul" => pto_examples::matmul::graph::build,
        "paged_attention" => pto_examples::paged_attention::graph::build,
        "random_dag" => pto_examples::random_dag::graph::build,
    }
    stream {
        "paged_attention" => pto_examples::paged_attention::stream::build,
        "cholesky" => pto_examples::cholesky::stream::build,
        "newton_solve" => pto_examples::newton_solve::stream::build,
        "decoder_layer" => pto_examples::decoder_layer::stream::build,
        "moe_layer" => pto_examples::moe_layer::stream::build,
        "task_shapes" => pto_examples::task_shapes::stream::build,
    }
}
