//! Attention in blocks, as four kernels that a graph chains for every block of keys and values.
//!
//! ```text
//! q, k ── attention_qk ──> s ── attention_softmax_partial ──> p ── attention_pv ──> o_new ─┐
//!                                          └──> row_max m, row_sum l ──────────────────────┤
//!                                  m_acc, l_acc, o_acc <──> attention_update <─────────────┘ ──> out
//! ```
//!
//! A row whose scores are all `-inf` (fully masked) is a regular case: `m = -inf`, `p = 0`,
//! `l = 0`, and its final output is 0. A score of NaN or `+inf` makes its row NaN.

pub mod products;
pub mod softmax;
pub mod update;

use crate::exp::exp;

/// `e^(x - max)` with `e^(-inf - -inf) = 0`: what is masked has no weight, whatever the maximum.
#[inline(always)]
fn exp_below(x: f32, max: f32) -> f32 {
    exp(x - if max == f32::NEG_INFINITY { 0.0 } else { max })
}
