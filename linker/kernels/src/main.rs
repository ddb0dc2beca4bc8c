//! The kernel library as one position-independent blob for an AArch64 device.
//!
//! `cargo build -p pto-kernels-blob --profile firmware --target aarch64-unknown-none`
#![cfg_attr(target_os = "none", no_std, no_main)]

use pto_aicore_kernels::{LIBRARY, attention, elementwise, matmul, probe, reduce};

pto_kernels_blob::kernel_blob! {
    0 AIV "add" elementwise::add;
    1 AIV "add_scalar" elementwise::add_scalar;
    2 AIV "mul" elementwise::mul;
    3 AIV "exp" elementwise::exp;
    4 AIV "row_max" reduce::row_max;
    5 AIV "row_sum" reduce::row_sum;
    6 AIC "matmul" matmul::matmul;
    7 AIC "matmul_acc" matmul::matmul_acc;
    8 AIC "matmul_add" matmul::matmul_add;
    9 AIC "attention_qk" attention::products::attention_qk;
    10 AIV "attention_softmax_partial" attention::softmax::attention_softmax_partial;
    11 AIC "attention_pv" attention::products::attention_pv;
    12 AIV "attention_update" attention::update::attention_update;
    13 AIC "empty_aic" probe::empty_aic;
    14 AIV "empty_aiv" probe::empty_aiv;
    15 AIC "dag_node_aic" probe::dag_node_aic;
    16 AIV "dag_node_aiv" probe::dag_node_aiv;
    17 AIV "spin_aiv" probe::spin_aiv;
    18 AIC "spin_aic" probe::spin_aic;
}

// What each entry is, a test compares with the library.
const _: () = assert!(KERNELS.len() == LIBRARY.len(), "a kernel of LIBRARY is not in the blob");

/// On a development machine there is nothing to load.
#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("pto-kernels-blob is code for a device: build it with --target aarch64-unknown-none");
    std::process::exit(2);
}
