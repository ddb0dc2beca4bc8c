//! Newton's iteration for the inverse of a matrix (Schulz 1933), the parts of it that are not products:
//! `x = a^T / (|a|_1 |a|_inf)` to begin with, and `e = 1 - a @ x`, whose norm says how far it is; then `x = x + x @ e`.

use core::cell::Cell;

use crate::args;
use crate::lanes;
use crate::view::{Matrix, Vector};

/// `e = 1 - p` for a tile of the matrices, and `sum` the sum of the squares of its elements.
///
/// The unit matrix's diagonal is in column `diagonal` of the first row: a number of 64 bits that wraps, where it is left of the
/// tile. `e` may be `p` with the same stride.
#[inline]
pub fn residual_into(p: Matrix, e: Matrix, sum: Vector, diagonal: u64) {
    let total = residual(p, e, args::size(diagonal));
    sum.iter().for_each(|sum| sum.set(total));
}

/// `sum` is the sum of the elements of the column `squares`.
#[inline]
pub fn norm(squares: Matrix, sum: Vector) {
    let total = squares.iter_rows().flatten().fold(0.0, |total, square| total + square.get());
    sum.iter().for_each(|sum| sum.set(total));
}

/// `x = a^T / (|a|_1 |a|_inf)`; `a` and `x` do not overlap. The beginning of the iteration, from which it converges for every matrix that has an inverse.
pub fn start(a: Matrix, x: Matrix) {
    let magnitude = |sum: f32, element: f32| sum + element.abs();
    let row_norm = a.iter_rows().fold(0.0, |norm, row| {
        lanes::max(norm, lanes::reduce(lanes::fold(row, 0.0, magnitude), |a, b| a + b))
    });
    let element = |row: usize, col: usize| a.row(row).get(col).map_or(0.0, Cell::get);
    let column = |col: usize| (0..a.rows()).fold(0.0, |sum, row| magnitude(sum, element(row, col)));
    let column_norm = (0..a.cols()).fold(0.0, |norm, col| lanes::max(norm, column(col)));
    // One after the other: the product of the norms may be too large where the quotient is not.
    for (col, row) in x.iter_rows().enumerate() {
        for (from, x) in row.iter().enumerate() {
            x.set(element(from, col) / row_norm / column_norm);
        }
    }
}

/// The residual of a tile; returns the sum of its squares.
pub fn residual(p: Matrix, e: Matrix, diagonal: usize) -> f32 {
    let mut sum = 0.0;
    for (at, (p, e)) in p.iter_rows().zip(e.iter_rows()).enumerate() {
        lanes::map(p, e, |p| 0.0 - p);
        if let Some(unit) = e.get(diagonal.wrapping_add(at)) {
            unit.set(1.0 + unit.get());
        }
        sum += lanes::dot(e, e);
    }
    sum
}
