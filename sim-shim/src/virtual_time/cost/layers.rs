//! The costs of the kernels of transformer layers.

use pto_abi::FuncId;
use pto_aicore_kernels::func;

use pto_aicore_kernels::cost::{
    GM_TO_UB, UB_TO_GM, V_ADD, V_ADDS, V_CADD, V_CGMAX, V_COPY, V_DIV, V_EXP, V_MUL, V_MULS,
    V_SQRT, V_SUB, cube, rows_of, transfer, vector,
};

/// Rows of an expert: how many there are is in memory, where a cost model does not look. One block of the cube.
const EXPERT_ROWS: u64 = 16;

/// Picoseconds; `None`: it is none of them. `arg`: the task's words.
pub(super) fn picoseconds(func_id: FuncId, arg: impl Fn(usize) -> u64) -> Option<u64> {
    Some(match func_id {
        func::COPY => moved(arg(2), arg(3)),
        func::RMS_NORM => rms_norm(arg(3), arg(4)),
        func::ROPE => rope(arg(4), arg(5)),
        func::SILU_MUL => silu_mul(arg(3), arg(4)),
        func::MOE_ROUTE => route(arg(3), arg(4), arg(5)),
        func::MOE_LIST => transfer(arg(3), GM_TO_UB) + vector(&V_SUB, arg(3)),
        func::MOE_GATHER => moved(EXPERT_ROWS, arg(6)),
        func::MOE_MATMUL => cube(EXPERT_ROWS, arg(5), arg(4)),
        func::MOE_SILU_MUL => silu_mul(EXPERT_ROWS, arg(4)),
        func::MOE_SCATTER => scatter(EXPERT_ROWS, arg(6)),
        func::DECODE_VALUE => cube(arg(7), arg(9), arg(8)),
        // Of the queries: the keys are fewer, and at the same time.
        func::DECODE_ROTATE => arg(7).saturating_mul(rope(arg(10), arg(8))),
        _ => return None,
    })
}

const fn moved(rows: u64, cols: u64) -> u64 {
    let n = rows * cols;
    transfer(n, GM_TO_UB) + rows_of(&V_COPY, rows, cols) + transfer(n, UB_TO_GM)
}

/// Squares, their sums, a root a row; a division and a product.
const fn rms_norm(rows: u64, cols: u64) -> u64 {
    let n = rows * cols;
    let per_row = vector(&V_MULS, rows) + vector(&V_ADDS, rows) + vector(&V_SQRT, rows);
    let sums = rows_of(&V_MUL, rows, cols) + rows_of(&V_CADD, rows, cols);
    let scale = rows_of(&V_DIV, rows, cols) + rows_of(&V_MUL, rows, cols);
    transfer(n + cols, GM_TO_UB) + sums + per_row + scale + transfer(n, UB_TO_GM)
}

/// Four products of half a row, a difference and a sum.
const fn rope(rows: u64, head_dim: u64) -> u64 {
    let (n, half) = (rows * head_dim, head_dim / 2);
    let products = 4 * rows_of(&V_MUL, rows, half);
    let sums = rows_of(&V_SUB, rows, half) + rows_of(&V_ADD, rows, half);
    transfer(n + head_dim, GM_TO_UB) + products + sums + transfer(n, UB_TO_GM)
}

/// A negation, an exponential, a sum, a division, a product.
const fn silu_mul(rows: u64, cols: u64) -> u64 {
    let n = rows * cols;
    let work = rows_of(&V_MULS, rows, cols)
        + rows_of(&V_EXP, rows, cols)
        + rows_of(&V_ADDS, rows, cols)
        + rows_of(&V_DIV, rows, cols)
        + rows_of(&V_MUL, rows, cols);
    transfer(2 * n, GM_TO_UB) + work + transfer(n, UB_TO_GM)
}

/// A maximum over the logits for each choice, and a softmax of the choices.
fn route(tokens: u64, experts: u64, top_k: u64) -> u64 {
    let choices = top_k.saturating_mul(rows_of(&V_CGMAX, tokens, experts));
    let softmax = rows_of(&V_SUB, tokens, top_k)
        + rows_of(&V_EXP, tokens, top_k)
        + rows_of(&V_CADD, tokens, top_k)
        + rows_of(&V_DIV, tokens, top_k);
    let moved = transfer(tokens * experts, GM_TO_UB) + transfer(2 * tokens * top_k, UB_TO_GM);
    choices.saturating_add(softmax).saturating_add(moved)
}

/// A product and a sum, onto rows that are read and written.
const fn scatter(rows: u64, cols: u64) -> u64 {
    let n = rows * cols;
    let work = rows_of(&V_MULS, rows, cols) + rows_of(&V_ADD, rows, cols);
    transfer(2 * n, GM_TO_UB) + work + transfer(n, UB_TO_GM)
}
