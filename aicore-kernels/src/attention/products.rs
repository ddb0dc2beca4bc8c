//! The product `q @ k^T` of attention, whose second operand is transposed; `p @ v` is one of [`crate::matmul`].
//!
//! The output must not overlap an input, or the result is unspecified.

use core::array::from_fn;
use core::cell::Cell;

use crate::lanes;
use crate::view::{Matrix, Vector};

/// Partial sums of one dot product; they hide the latency of the addition and fix the order.
const DOT_LANES: usize = 4;
/// [`DOT_LANES`] elements in memory.
type Group = [Cell<f32>; DOT_LANES];
/// Rows of `q` and rows of `k` whose dot products are computed together.
const TILE: (usize, usize) = (2, 4);

/// `s = q @ k^T`, in tiles; the order of each sum depends on the length only.
pub fn product_transposed(q: Matrix, k: Matrix, s: Matrix) {
    transposed(q, k, s, |_, dot| dot);
}

/// Stores `finish(before, dot)` in each element of `s`, with the dot products of `q @ k^T`.
#[inline(always)]
pub(crate) fn transposed(q: Matrix, k: Matrix, s: Matrix, finish: impl Fn(f32, f32) -> f32) {
    let mut row = 0;
    while s.rows() - row >= TILE.0 {
        tile_row::<{ TILE.0 }>(q, k, s, row, &finish);
        row += TILE.0;
    }
    for row in row..s.rows() {
        tile_row::<1>(q, k, s, row, &finish);
    }
}

/// Rows `row .. row + R` of `s`, from left to right, as many columns as `k` has rows.
#[inline(always)]
pub(crate) fn tile_row<const R: usize>(
    q: Matrix,
    k: Matrix,
    s: Matrix,
    row: usize,
    finish: impl Fn(f32, f32) -> f32,
) {
    let q: [Vector; R] = from_fn(|r| q.row(row + r));
    let s: [Vector; R] = from_fn(|r| s.row(row + r));
    let mut col = 0;
    while k.rows() - col >= TILE.1 {
        let dots = dots::<R, { TILE.1 }>(q, from_fn(|c| k.row(col + c)));
        store_columns(s, col, dots, &finish);
        col += TILE.1;
    }
    for col in col..k.rows() {
        store_columns(s, col, dots::<R, 1>(q, [k.row(col)]), &finish);
    }
}

#[inline(always)]
fn store_columns<const R: usize, const C: usize>(
    s: [Vector; R],
    col: usize,
    dots: [[f32; C]; R],
    finish: impl Fn(f32, f32) -> f32,
) {
    for (s, dots) in s.iter().zip(dots) {
        for (s, dot) in s.iter().skip(col).zip(dots) {
            s.set(finish(s.get(), dot));
        }
    }
}

/// All dot products of the vectors in `q` with those in `k`.
#[inline(never)]
fn dots<const R: usize, const C: usize>(q: [Vector; R], k: [Vector; C]) -> [[f32; C]; R] {
    let (q, q_tails) = (q.map(|q| q.as_chunks().0), q.map(|q| q.as_chunks::<DOT_LANES>().1));
    let (k, k_tails) = (k.map(|k| k.as_chunks().0), k.map(|k| k.as_chunks::<DOT_LANES>().1));
    let mut sums = [[[0.0; DOT_LANES]; C]; R];
    let groups = q.iter().chain(&k).map(|groups| groups.len()).min().unwrap_or(0);
    for p in 0..groups {
        let group = |from: &[Group]| from.get(p).map_or([0.0; DOT_LANES], lanes::load);
        let (q, k) = (q.map(group), k.map(group));
        for (sums, q) in sums.iter_mut().zip(q) {
            for (sums, k) in sums.iter_mut().zip(k) {
                let products = lanes::merge(q, k, |q, k| q * k);
                *sums = lanes::merge(*sums, products, |sum, product| sum + product);
            }
        }
    }
    let mut dots = [[0.0; C]; R];
    for ((dots, sums), q_tail) in dots.iter_mut().zip(sums).zip(q_tails) {
        for ((dot, sums), k_tail) in dots.iter_mut().zip(sums).zip(k_tails) {
            *dot = total(sums, q_tail, k_tail);
        }
    }
    dots
}

/// Adds what is left over to the first lanes, and the lanes together.
#[inline(always)]
fn total(mut sums: [f32; DOT_LANES], q_tail: Vector, k_tail: Vector) -> f32 {
    for (sum, (q, k)) in sums.iter_mut().zip(q_tail.iter().zip(k_tail)) {
        *sum += q.get() * k.get();
    }
    let [a, b, c, d] = sums;
    (a + c) + (b + d)
}
