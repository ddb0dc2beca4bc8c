//! Reductions along rows: `row_max`, `row_sum`.
//!
//! `out` (one element a row) must not overlap `a`; if it does, the result is unspecified.

use crate::lanes;
use crate::view::{Matrix, Vector};

/// The largest element: `-inf` of none, NaN if one is NaN.
#[inline]
#[must_use]
pub fn max_of(elements: Vector) -> f32 {
    lanes::reduce(lanes::fold(elements, f32::NEG_INFINITY, lanes::max), lanes::max)
}

/// The sum, by lanes: its error is below `(n / 8 + 4) * eps * sum |a|`, `eps = 2^-24`.
#[inline]
#[must_use]
pub fn sum_of(elements: Vector) -> f32 {
    lanes::reduce(lanes::fold(elements, 0.0, |sum, a| sum + a), |a, b| a + b)
}

/// `out[r] = max(a[r][..])`.
#[inline]
pub fn row_max(a: Matrix, out: Vector) {
    rows(a, out, max_of);
}

/// `out[r] = sum(a[r][..])`.
#[inline]
pub fn row_sum(a: Matrix, out: Vector) {
    rows(a, out, sum_of);
}

#[inline(always)]
fn rows(a: Matrix, out: Vector, of: impl Fn(Vector) -> f32) {
    for (row, out) in a.iter_rows().zip(out) {
        out.set(of(row));
    }
}
