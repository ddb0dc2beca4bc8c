//! `attention_softmax_partial`: the softmax of one block of scores, not yet divided by its sum.

use crate::args;
use crate::attention::exp_below;
use crate::lanes;
use crate::reduce::sum_of;
use crate::view::Vector;

/// Per row `m = max(scale * s)`, `p = e^(scale * s - m)`, `l = sum p`.
/// Arguments: s, p, `row_max`, `row_sum`, rows, cols, `s_ld`, `p_ld`, scale.
///
/// `p` may be `s` itself with the same stride (in place). With any other overlap the result is
/// unspecified.
///
/// # Safety
/// The [argument contract](crate::args): `s` and `p` are rows by cols, `row_max` (m) and `row_sum`
/// (l) have `rows` elements; all but `s` are written.
pub unsafe extern "C" fn attention_softmax_partial(args: *const u64) {
    // SAFETY: the caller keeps the argument contract.
    let [s, p, max, sum, rows, cols, s_ld, p_ld, scale] = unsafe { args::words(args) };
    // SAFETY: the same; two matrices of rows by cols.
    let [s, p] = unsafe { args::matrices([[s, rows, cols, s_ld], [p, rows, cols, p_ld]]) };
    // SAFETY: the same; two vectors of one element a row.
    let [max, sum] = unsafe { args::vectors([max, sum], rows) };
    let scale = args::scalar(scale);
    for ((s, p), (max, sum)) in s.iter_rows().zip(p.iter_rows()).zip(max.iter().zip(sum)) {
        let (m, l) = softmax_row(s, p, scale);
        max.set(m);
        sum.set(l);
    }
}

/// One row; returns its maximum and its sum. `p` may be `s`.
#[inline]
pub fn softmax_row(s: Vector, p: Vector, scale: f32) -> (f32, f32) {
    let larger = |max, s| lanes::max(max, scale * s);
    let max = lanes::reduce(lanes::fold(s, f32::NEG_INFINITY, larger), lanes::max);
    lanes::map(s, p, |s| exp_below(scale * s, max));
    (max, sum_of(p))
}
