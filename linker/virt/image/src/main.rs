//! The default firmware image of the device `virt`: the examples' builders, and the graphs of known shape.
//!
//! `cargo build -p pto-virt-image --profile firmware --target aarch64-unknown-none`
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
pto_virt_platform::firmware! {
    /// The builders of the default image.
    struct Builders {
        "vector_example" => pto_examples::vector_example::graph::build,
        "matmul" => pto_examples::matmul::graph::build,
        "paged_attention" => pto_examples::paged_attention::graph::build,
        "random_dag" => pto_examples::random_dag::graph::build,
        "chain" => pto_virt_platform::builders::chain,
        "independent" => pto_virt_platform::builders::independent,
        "fork_join" => pto_virt_platform::builders::fork_join,
        "wavefront" => pto_virt_platform::builders::wavefront,
    }
    stream {
        "paged_attention" => pto_examples::paged_attention::stream::build,
        "cholesky" => pto_examples::cholesky::stream::build,
        "newton_solve" => pto_examples::newton_solve::stream::build,
        "decoder_layer" => pto_examples::decoder_layer::stream::build,
        "moe_layer" => pto_examples::moe_layer::stream::build,
        "task_shapes" => pto_examples::task_shapes::stream::build,
        "tensors" => pto_virt_platform::builders::tensors,
    }
}

/// On a development machine there is nothing to boot.
#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("pto-fw-virt is a firmware image: build it with --target aarch64-unknown-none");
    std::process::exit(2);
}
