//! The table of all library kernels: what a host registers in `kernel_addrs`, and what
//! `pto kernels` lists.

use pto_abi::{CoreKind, FuncId};

use crate::{
    attention, cholesky, elementwise, experts, layer, matmul, newton, parts, probe, reduce,
};

/// A kernel's entry: its argument words, see [`crate::args`].
pub type KernelFn = unsafe extern "C" fn(*const u64);

/// One kernel of the library.
#[derive(Clone, Copy, Debug)]
pub struct LibraryKernel {
    /// The name by which graphs and people refer to it.
    pub name: &'static str,
    /// Its function id; equal to its index in [`LIBRARY`].
    pub func_id: u32,
    /// The kind of core that it runs on.
    pub kind: CoreKind,
    /// The code.
    pub entry: KernelFn,
    /// What it computes, in one line.
    pub summary: &'static str,
    /// Its argument words in order. `*_ld` are strides in elements; `f32` scalars are bits in the
    /// low half.
    pub args: &'static str,
}

/// The kernel of this name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static LibraryKernel> {
    LIBRARY.iter().find(|kernel| kernel.name == name)
}

/// Writes the ids and the table from one list, so that an id is its index by construction.
macro_rules! library {
    ($($id:literal $constant:ident $name:literal $kind:ident $entry:path, $args:literal, $summary:literal;)*) => {
        /// The function ids of the library kernels.
        pub mod func {
            use super::FuncId;
            $(#[doc = concat!("The id of `", $name, "`.")]
            pub const $constant: FuncId = FuncId($id);)*
        }

        /// All library kernels; the index is the function id.
        pub static LIBRARY: &[LibraryKernel] = &[$(LibraryKernel {
            name: $name,
            func_id: $id,
            kind: CoreKind::$kind,
            entry: $entry,
            summary: $summary,
            args: $args,
        }),*];
    };
}

library! {
    0 ADD "add" AIV elementwise::add,
        "a, b, out, n", "out = a + b";
    1 ADD_SCALAR "add_scalar" AIV elementwise::add_scalar,
        "a, scalar, out, n", "out = a + scalar";
    2 MUL "mul" AIV elementwise::mul,
        "a, b, out, n", "out = a * b, elementwise";
    3 EXP "exp" AIV elementwise::exp,
        "a, out, n", "out = e^a";
    4 ROW_MAX "row_max" AIV reduce::row_max,
        "a, out, rows, cols, a_ld", "out[r] = max(a[r])";
    5 ROW_SUM "row_sum" AIV reduce::row_sum,
        "a, out, rows, cols, a_ld", "out[r] = sum(a[r])";
    6 MATMUL "matmul" AIC matmul::matmul,
        "a, b, c, m, n, k, a_ld, b_ld, c_ld", "c = a @ b";
    7 MATMUL_ACC "matmul_acc" AIC matmul::matmul_acc,
        "a, b, c, m, n, k, a_ld, b_ld, c_ld", "c += a @ b";
    8 MATMUL_ADD "matmul_add" AIC matmul::matmul_add,
        "a, b, d, c, m, n, k, a_ld, b_ld, d_ld, c_ld", "c = a @ b + d";
    9 ATTENTION_QK "attention_qk" AIC attention::products::attention_qk,
        "q, k, s, rows, cols, head_dim, q_ld, k_ld, s_ld", "s = q @ k^T";
    10 ATTENTION_SOFTMAX_PARTIAL "attention_softmax_partial" AIV attention::softmax::attention_softmax_partial,
        "s, p, row_max, row_sum, rows, cols, s_ld, p_ld, scale",
        "row_max = max(scale * s), p = e^(scale * s - row_max), row_sum = sum(p)";
    11 ATTENTION_PV "attention_pv" AIC attention::products::attention_pv,
        "p, v, o_new, rows, cols, head_dim, p_ld, v_ld, o_ld", "o_new = p @ v";
    12 ATTENTION_UPDATE "attention_update" AIV attention::update::attention_update,
        "m_block, l_block, o_new, m_acc, l_acc, o_acc, out, rows, head_dim, o_ld, out_ld, flags",
        "merge a block into the online softmax; flags: 1 first, 2 last (write out = o_acc / l_acc)";
    13 EMPTY_AIC "empty_aic" AIC probe::empty_aic,
        "", "nothing, on a cube core";
    14 EMPTY_AIV "empty_aiv" AIV probe::empty_aiv,
        "", "nothing, on a vector core";
    15 DAG_NODE_AIC "dag_node_aic" AIC probe::dag_node_aic,
        "index, seed, values, counters, producers, n",
        "counters[index] += 1, values[index] = fold of the producers' values";
    16 DAG_NODE_AIV "dag_node_aiv" AIV probe::dag_node_aiv,
        "index, seed, values, counters, producers, n",
        "counters[index] += 1, values[index] = fold of the producers' values";
    17 SPIN_AIV "spin_aiv" AIV probe::spin_aiv,
        "iterations", "busy for a number of iterations, on a vector core";
    18 SPIN_AIC "spin_aic" AIC probe::spin_aic,
        "iterations", "busy for a number of iterations, on a cube core";
    19 CHOLESKY_POTRF "cholesky_potrf" AIV cholesky::potrf,
        "a, status, n, a_ld, first_row",
        "a = l with l @ l^T = a; status: 0, or the row, from 1, whose pivot is not above zero";
    20 CHOLESKY_TRSM "cholesky_trsm" AIV cholesky::trsm,
        "l, a, rows, n, l_ld, a_ld", "a = a @ l^-T, l lower triangular";
    21 CHOLESKY_SYRK "cholesky_syrk" AIC cholesky::syrk,
        "a, c, n, k, a_ld, c_ld", "c -= a @ a^T, the lower triangle";
    22 CHOLESKY_GEMM "cholesky_gemm" AIC cholesky::gemm,
        "a, b, c, m, n, k, a_ld, b_ld, c_ld", "c -= a @ b^T";
    23 NEWTON_START "newton_start" AIV newton::newton_start,
        "a, x, n, a_ld, x_ld", "x = a^T / (|a|_1 |a|_inf)";
    24 NEWTON_RESIDUAL "newton_residual" AIV newton::newton_residual,
        "p, e, sum, rows, cols, diagonal, p_ld, e_ld",
        "e = 1 - p, sum = sum(e^2); the diagonal is in that column of the first row";
    25 NEWTON_NORM "newton_norm" AIV newton::newton_norm,
        "squares, sum, n, stride", "sum = squares[0] + squares[stride] + ..";
    26 COPY "copy" AIV layer::copy,
        "a, out, rows, cols, a_ld, out_ld", "out = a";
    27 RMS_NORM "rms_norm" AIV layer::rms_norm,
        "x, weight, out, rows, cols, x_ld, out_ld, epsilon",
        "out[r] = weight * x[r] / sqrt(mean(x[r]^2) + epsilon)";
    28 ROPE "rope" AIV layer::rope,
        "x, cos, sin, out, rows, head_dim, x_ld, out_ld",
        "rotary embedding: rotates x[r][i], x[r][i + head_dim / 2]";
    29 SILU_MUL "silu_mul" AIV layer::silu_mul,
        "gate, up, out, rows, cols, gate_ld, up_ld, out_ld", "out = gate / (1 + e^-gate) * up";
    30 MOE_ROUTE "moe_route" AIV experts::moe_route,
        "logits, experts, weights, tokens, n_experts, top_k, logits_ld",
        "the top_k experts of each token, and the softmax of their logits";
    31 MOE_LIST "moe_list" AIV experts::moe_list,
        "experts, list, count, entries, expert", "the entries of experts that are expert";
    32 MOE_GATHER "moe_gather" AIV experts::moe_gather,
        "x, list, count, ran, out, tokens, cols, top_k, x_ld, out_ld",
        "out[i] = x[list[i] / top_k], ran += 1";
    33 MOE_MATMUL "moe_matmul" AIC experts::moe_matmul,
        "a, b, c, count, n, k, a_ld, b_ld, c_ld", "c = a @ b, for *count rows";
    34 MOE_SILU_MUL "moe_silu_mul" AIV experts::moe_silu_mul,
        "gate, up, out, count, cols, gate_ld, up_ld, out_ld",
        "out = gate / (1 + e^-gate) * up, for *count rows";
    35 MOE_SCATTER "moe_scatter" AIV experts::moe_scatter,
        "y, list, count, weights, out, tokens, cols, top_k, y_ld, out_ld",
        "out[list[i] / top_k] += weights[list[i]] * y[i]";
    36 DECODE_VALUE "decode_value" AIC layer::decode_value,
        "a, b, v, q, k, positions, angles, rows, head_dim, inner, group, a_ld, b_ld, ld",
        "v = a @ b; with decode_rotate on the vector cores of the cluster";
    37 DECODE_ROTATE "decode_rotate" AIV layer::decode_rotate,
        "a, b, v, q, k, positions, angles, rows, head_dim, inner, group, a_ld, b_ld, ld",
        "rope of q on the first vector core of a block, of k on the second, by the rows' positions";
    38 PART_AIC "part_aic" AIC parts::part_aic,
        "cells, salt, group", "folds into the cell of its part, on a cube core; group: parts that wait for each other";
    39 PART_AIV "part_aiv" AIV parts::part_aiv,
        "cells, salt, group", "folds into the cell of its part, on a vector core; group: parts that wait for each other";
}
