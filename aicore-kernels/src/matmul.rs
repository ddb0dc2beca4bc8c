//! Matrix products: matmul, `matmul_acc`, `matmul_add`.
//!
//! `c` is computed in tiles of [`TILE_ROWS`] by [`TILE_COLS`] whose sums stay in registers; what
//! remains at the right and at the bottom is computed in narrower tiles. Each element is a sum over
//! `k` in ascending order, whichever tile it falls into, so that the result does not depend on
//! where a caller cuts.
//!
//! `c` must not overlap `a` or `b`, or the result is unspecified; `d` may be `c` itself.

use core::array::from_fn;
use core::cell::Cell;

use crate::lanes;
use crate::view::{Matrix, Vector};

// 4 x 8 sums are 8 of the 16 SSE2 registers. Measured at 64 and 128 cubed, x86-64: 4 x 8 gives 23
// GFLOP/s, 4 x 16 gives 20.

/// Rows of a full tile.
pub const TILE_ROWS: usize = 4;
/// Columns of a full tile.
pub const TILE_COLS: usize = 8;

/// `c = a @ b`; `c` is not read.
pub fn product(a: Matrix, b: Matrix, c: Matrix) {
    tiled(a, b, c, |_, _, sum| sum);
}

/// `c = a @ b + d`; the product is summed first and added then. `d` may be `c`.
pub fn product_plus(a: Matrix, b: Matrix, d: Matrix, c: Matrix) {
    tiled(a, b, c, |row, col, sum| d.row(row).get(col).map_or(sum, |d| sum + d.get()));
}

/// Computes `a @ b` and stores `finish(row, col, sum)` in each element of `c`.
#[inline(always)]
fn tiled(a: Matrix, b: Matrix, c: Matrix, finish: impl Fn(usize, usize, f32) -> f32) {
    let mut col = 0;
    while c.cols() - col >= TILE_COLS {
        tile_column::<TILE_COLS>(a, b, c, col, &finish);
        col += TILE_COLS;
    }
    if c.cols() - col >= TILE_COLS / 2 {
        tile_column::<{ TILE_COLS / 2 }>(a, b, c, col, &finish);
        col += TILE_COLS / 2;
    }
    for col in col..c.cols() {
        tile_column::<1>(a, b, c, col, &finish);
    }
}

/// Columns `col .. col + N` of `c`, from the top to the bottom.
#[inline(always)]
fn tile_column<const N: usize>(
    a: Matrix,
    b: Matrix,
    c: Matrix,
    col: usize,
    finish: impl Fn(usize, usize, f32) -> f32,
) {
    let mut row = 0;
    while c.rows() - row >= TILE_ROWS {
        let sums = tile::<TILE_ROWS, N>(from_fn(|r| a.row(row + r)), b, col);
        for (r, sums) in sums.into_iter().enumerate() {
            finish_row(c, row + r, col, sums, &finish);
        }
        row += TILE_ROWS;
    }
    for row in row..c.rows() {
        let [sums] = tile::<1, N>([a.row(row)], b, col);
        finish_row(c, row, col, sums, &finish);
    }
}

/// The sums of one tile: rows of `a` times columns `col .. col + N` of `b`.
// Not inlined: the result then leaves as whole rows, which makes LLVM vectorise along rows.
// Inlined, it chose a transposed order at x86-64-v3 (4.4 instead of 28 GFLOP/s), and was slower at
// x86-64 too (19, not 24).
#[inline(never)]
fn tile<const R: usize, const N: usize>(a: [Vector; R], b: Matrix, col: usize) -> [[f32; N]; R] {
    let mut sums = [[0.0; N]; R];
    for (p, b) in b.panel::<N>(col).enumerate() {
        let b = lanes::load(b);
        for (sums, a) in sums.iter_mut().zip(a) {
            let a = a.get(p).map_or(0.0, Cell::get);
            *sums = lanes::merge(*sums, b, |sum, b| sum + a * b);
        }
    }
    sums
}

#[inline(always)]
fn finish_row<const N: usize>(
    c: Matrix,
    row: usize,
    col: usize,
    sums: [f32; N],
    finish: impl Fn(usize, usize, f32) -> f32,
) {
    for ((j, c), sum) in c.row(row).iter().enumerate().skip(col).zip(sums) {
        c.set(finish(row, j, sum));
    }
}
