//! `attention_softmax_partial`: the softmax of one block of scores, not yet divided by its sum.

use crate::attention::exp_below;
use crate::lanes;
use crate::reduce::sum_of;
use crate::view::{Matrix, Vector};

/// Per row `max = max(scale * s)`, `p = e^(scale * s - max)`, `sum = sum p`.
///
/// `p` may be `s` itself with the same stride (in place). With any other overlap the result is
/// unspecified.
#[inline]
pub fn softmax(s: Matrix, p: Matrix, max: Vector, sum: Vector, scale: f32) {
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
