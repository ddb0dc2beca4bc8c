//! Reductions along rows: `row_max`, `row_sum`.
//!
//! `out` (one element a row) must not overlap `a`; if it does, the result is unspecified.

use crate::args;
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

/// `out[r] = max(a[r][..])`. Arguments: a, out, rows, cols, `a_ld`.
///
/// # Safety
/// The [argument contract](crate::args): `a` is rows by cols, `out` has `rows` elements, written.
pub unsafe extern "C" fn row_max(args: *const u64) {
    // SAFETY: the caller keeps the argument contract, which is that of `reduce_rows`.
    unsafe { reduce_rows(args, max_of) }
}

/// `out[r] = sum(a[r][..])`. Arguments: a, out, rows, cols, `a_ld`.
///
/// # Safety
/// The [argument contract](crate::args): `a` is rows by cols, `out` has `rows` elements, written.
pub unsafe extern "C" fn row_sum(args: *const u64) {
    // SAFETY: the caller keeps the argument contract, which is that of `reduce_rows`.
    unsafe { reduce_rows(args, sum_of) }
}

/// # Safety
/// As [`row_max`].
#[inline(always)]
unsafe fn reduce_rows(args: *const u64, f: impl Fn(Vector) -> f32) {
    // SAFETY: the caller keeps the argument contract.
    let [a, out, rows, cols, a_ld] = unsafe { args::words(args) };
    // SAFETY: the same; a matrix of rows by cols.
    let [a]: [Matrix; 1] = unsafe { args::matrices([[a, rows, cols, a_ld]]) };
    // SAFETY: the same; a vector of one element a row.
    let [out] = unsafe { args::vectors([out], rows) };
    for (row, out) in a.iter_rows().zip(out) {
        out.set(f(row));
    }
}
