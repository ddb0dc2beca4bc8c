//! The parts of a transformer layer that are neither products nor attention: `copy`, `rms_norm`, `rope`, `silu_mul`; and one task
//! of both kinds of cores, `decode_value` with `decode_rotate`.
//!
//! `out` may be the first operand itself with the same stride. With any other overlap the result is unspecified.

use pto_abi::block::BlockContext;

use crate::args;
use crate::exp::exp;
use crate::lanes;
use crate::sqrt::sqrt;
use crate::view::{Matrix, Vector};

/// Bytes of an element.
const F32: u64 = 4;

/// `out = a`.
#[inline]
pub fn copy(a: Matrix, out: Matrix) {
    for (a, out) in a.iter_rows().zip(out.iter_rows()) {
        lanes::map(a, out, |a| a);
    }
}

/// `out[r] = weight * x[r] / sqrt(mean(x[r]^2) + epsilon)`.
#[inline]
pub fn rms_norm(x: Matrix, weight: Vector, out: Matrix, epsilon: f32) {
    for (x, out) in x.iter_rows().zip(out.iter_rows()) {
        norm_row(x, weight, out, epsilon);
    }
}

/// Rotates each row in the planes of its elements `i` and `i + head_dim / 2`, by an angle of which `cos` and `sin` are given.
///
/// An odd `head_dim` leaves the last element as it is in `out`.
#[inline]
pub fn rope(x: Matrix, cos: Vector, sin: Vector, out: Matrix) {
    for (x, out) in x.iter_rows().zip(out.iter_rows()) {
        rotate_row(x, cos, sin, out);
    }
}

/// Rotates the heads of the queries (on the first vector core of its block) or the head of the keys (on the second) of each row, in
/// place, as [`rope`] does; what the cube core computes at the same time is not touched.
///
/// # Safety
/// The [argument contract](crate::args): `q` has rows of `group` heads one after another, `k` rows of one head, both with stride `ld`,
/// read and written; `positions` (`u32`) has a number from 1 for each row, and `angles` cosines and sines, `dim / 2` of each,
/// for each number.
#[inline]
pub unsafe fn rotate(
    (q, k): (u64, u64),
    (positions, angles): (u64, u64),
    [rows, dim, group, ld]: [u64; 4],
    context: u64,
) {
    let (first, heads) = match BlockContext::of(context).lane {
        0 => (q, group),
        _ => (k, 1),
    };
    for row in 0..rows {
        // SAFETY: the caller keeps the contract; a number for each row.
        let position: u32 = unsafe { args::load(positions, args::size(row)) };
        let cos = angles + F32 * dim * u64::from(position.saturating_sub(1));
        // SAFETY: the caller keeps the contract: cosines, then sines.
        let [cos, sin] = unsafe { args::vectors([cos, cos + F32 * (dim / 2)], dim / 2) };
        // SAFETY: the caller keeps the contract: heads one after another.
        let [x] = unsafe { args::matrices([[first + F32 * row * ld, heads, dim, dim]]) };
        x.iter_rows().for_each(|x| rotate_row(x, cos, sin, x));
    }
}

/// `out = silu(gate) * up`, for as many rows as all of them have.
pub fn gated(gate: Matrix, up: Matrix, out: Matrix) {
    for ((gate, up), out) in gate.iter_rows().zip(up.iter_rows()).zip(out.iter_rows()) {
        lanes::zip_map(gate, up, out, |gate, up| silu(gate) * up);
    }
}

/// `x / (1 + e^-x)`: 0 at minus infinity, where both are infinite.
fn silu(x: f32) -> f32 {
    let quotient = x / (1.0 + exp(-x));
    if x == f32::NEG_INFINITY { -0.0 } else { quotient }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a row has fewer than 2^24 elements, or the mean is rounded"
)]
fn norm_row(x: Vector, weight: Vector, out: Vector, epsilon: f32) {
    let mean = lanes::dot(x, x) / x.len() as f32;
    let root = if mean == f32::INFINITY { long_root(x, epsilon) } else { sqrt(mean + epsilon) };
    lanes::zip_map(x, weight, out, |x, weight| x / root * weight);
}

/// The root of the mean of the squares, where these overflow: of the elements over the largest one, times that.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the mean of squares of at most 1 is at most 1"
)]
fn long_root(x: Vector, epsilon: f32) -> f32 {
    let largest = x.iter().fold(0.0_f32, |largest, x| largest.max(x.get().abs()));
    if largest == f32::INFINITY {
        return largest;
    }
    let [scale, epsilon] = [largest, epsilon].map(f64::from);
    let squares = x.iter().map(|x| f64::from(x.get()) / scale).map(|part| part * part);
    let mean = squares.sum::<f64>() / x.len() as f64;
    largest * sqrt((mean + epsilon / (scale * scale)) as f32)
}

fn rotate_row(x: Vector, cos: Vector, sin: Vector, out: Vector) {
    let Some((x_low, x_high)) = x.split_at_checked(cos.len()) else { return };
    let Some((low, high)) = out.split_at_checked(cos.len()) else { return };
    let halves = x_low.iter().zip(x_high).zip(low.iter().zip(high));
    for (((x, y), (low, high)), (cos, sin)) in halves.zip(cos.iter().zip(sin)) {
        let (x, y, cos, sin) = (x.get(), y.get(), cos.get(), sin.get());
        low.set(x * cos - y * sin);
        high.set(y * cos + x * sin);
    }
}
