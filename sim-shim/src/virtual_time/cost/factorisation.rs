//! The costs of the kernels of Cholesky's factorisation and of Newton's iteration.

use pto_abi::FuncId;
use pto_aicore_kernels::func;

use pto_aicore_kernels::cost::{
    GM_TO_L1, GM_TO_UB, UB_TO_GM, V_ADD, V_CADD, V_DIV, V_MAX, V_MUL, V_SQRT, V_SUB, cube, rows_of,
    transfer, vector,
};

/// Picoseconds; `None`: it is none of them. `arg`: the task's words.
pub(super) fn picoseconds(func_id: FuncId, arg: impl Fn(usize) -> u64) -> Option<u64> {
    Some(match func_id {
        func::CHOLESKY_POTRF => potrf(arg(2)),
        func::CHOLESKY_TRSM => trsm(arg(2), arg(3)),
        // Half of the blocks of a product, and the addend.
        func::CHOLESKY_SYRK => {
            let (n, k) = (arg(2), arg(3));
            cube(n, k, n.div_ceil(2)) + transfer(n * n / 2, GM_TO_L1)
        }
        func::CHOLESKY_GEMM => cube(arg(3), arg(5), arg(4)) + transfer(arg(3) * arg(4), GM_TO_L1),
        func::NEWTON_START => start(arg(2)),
        func::NEWTON_RESIDUAL => residual(arg(3), arg(4)),
        // One element of each line.
        func::NEWTON_NORM => transfer(16 * arg(2), GM_TO_UB) + vector(&V_CADD, arg(2)),
        _ => return None,
    })
}

/// Dot products of `count` pairs of rows of `n` floats.
const fn dots(count: u64, n: u64) -> u64 {
    rows_of(&V_MUL, count, n) + rows_of(&V_CADD, count, n)
}

/// A dot product for each element of the triangle, a third of a row long on average; a root for each column.
const fn potrf(n: u64) -> u64 {
    let (elements, columns) = (n * n / 2, n);
    let solve = dots(elements, n / 3) + rows_of(&V_SUB, columns, n / 2);
    let scale = rows_of(&V_DIV, columns, n / 2) + columns * vector(&V_SQRT, 1);
    transfer(elements, GM_TO_UB) + solve + scale + transfer(elements, UB_TO_GM)
}

/// A dot product for each element, half a row long on average.
const fn trsm(rows: u64, n: u64) -> u64 {
    let elements = rows * n;
    let solve = dots(elements, n / 2) + rows_of(&V_SUB, n, rows) + rows_of(&V_DIV, n, rows);
    transfer(elements + n * n / 2, GM_TO_UB) + solve + transfer(elements, UB_TO_GM)
}

/// Magnitudes, sums of rows and of columns, their maxima, two divisions.
const fn start(n: u64) -> u64 {
    let norms = rows_of(&V_MAX, n, n) + rows_of(&V_CADD, n, n) + rows_of(&V_ADD, n, n);
    let scale = 2 * rows_of(&V_DIV, n, n);
    transfer(n * n, GM_TO_UB) + norms + 2 * vector(&V_MAX, n) + scale + transfer(n * n, UB_TO_GM)
}

/// A difference, a square and its sum.
const fn residual(rows: u64, cols: u64) -> u64 {
    let elements = rows * cols;
    let work = rows_of(&V_SUB, rows, cols) + dots(rows, cols);
    transfer(elements, GM_TO_UB) + work + transfer(elements + 1, UB_TO_GM)
}
