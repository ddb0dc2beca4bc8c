//! The parts of a transformer layer that are neither products nor attention: `copy`, `rms_norm`, `rope`, `silu_mul`; and one task
//! of both kinds of cores, `decode_value` with `decode_rotate`.
//!
//! `out` may be the first operand itself with the same stride. With any other overlap the result is unspecified.

use pto_abi::block::BlockContext;

use crate::args;
use crate::exp::exp;
use crate::lanes;
use crate::matmul;
use crate::sqrt::sqrt;
use crate::view::{Matrix, Vector};

/// Bytes of an element.
const F32: u64 = 4;

/// `out = a`. Arguments: a, out, rows, cols, `a_ld`, `out_ld`.
///
/// # Safety
/// The [argument contract](crate::args): `a` and `out` are rows by cols, `out` written.
pub unsafe extern "C" fn copy(args: *const u64) {
    // SAFETY: the caller keeps the argument contract.
    let [a, out, rows, cols, a_ld, out_ld] = unsafe { args::words(args) };
    // SAFETY: the same; two matrices of rows by cols.
    let [a, out] = unsafe { args::matrices([[a, rows, cols, a_ld], [out, rows, cols, out_ld]]) };
    for (a, out) in a.iter_rows().zip(out.iter_rows()) {
        lanes::map(a, out, |a| a);
    }
}

/// `out[r] = weight * x[r] / sqrt(mean(x[r]^2) + epsilon)`.
/// Arguments: x, weight, out, rows, cols, `x_ld`, `out_ld`, epsilon.
///
/// # Safety
/// The [argument contract](crate::args): `x` and `out` are rows by cols, `weight` has cols elements; `out` is written.
pub unsafe extern "C" fn rms_norm(args: *const u64) {
    // SAFETY: the caller keeps the argument contract.
    let [x, weight, out, rows, cols, x_ld, out_ld, epsilon] = unsafe { args::words(args) };
    // SAFETY: the same; two matrices of rows by cols.
    let [x, out] = unsafe { args::matrices([[x, rows, cols, x_ld], [out, rows, cols, out_ld]]) };
    // SAFETY: the same; one element a column.
    let [weight] = unsafe { args::vectors([weight], cols) };
    let epsilon = args::scalar(epsilon);
    for (x, out) in x.iter_rows().zip(out.iter_rows()) {
        norm_row(x, weight, out, epsilon);
    }
}

/// Rotates each row in the planes of its elements `i` and `i + head_dim / 2`, by an angle of which `cos` and `sin` are given.
/// Arguments: x, cos, sin, out, rows, `head_dim`, `x_ld`, `out_ld`.
///
/// An odd `head_dim` leaves the last element as it is in `out`.
///
/// # Safety
/// The [argument contract](crate::args): `x` and `out` are rows by `head_dim`, `cos` and `sin` have `head_dim / 2` elements;
/// `out` is written.
pub unsafe extern "C" fn rope(args: *const u64) {
    // SAFETY: the caller keeps the argument contract.
    let [x, cos, sin, out, rows, dim, x_ld, out_ld] = unsafe { args::words(args) };
    // SAFETY: the same; two matrices of rows by head_dim.
    let [x, out] = unsafe { args::matrices([[x, rows, dim, x_ld], [out, rows, dim, out_ld]]) };
    // SAFETY: the same; one element for each plane.
    let [cos, sin] = unsafe { args::vectors([cos, sin], dim / 2) };
    for (x, out) in x.iter_rows().zip(out.iter_rows()) {
        rotate_row(x, cos, sin, out);
    }
}

/// `v = a @ b`: the part of [`decode_rotate`]'s task that runs on a cube core.
/// Arguments: a, b, v, q, k, positions, angles, rows, `head_dim`, inner, group, `a_ld`, `b_ld`, ld.
///
/// # Safety
/// The [argument contract](crate::args): `a` is rows by inner, `b` inner by `head_dim`, `v` rows by `head_dim` with stride `ld`,
/// written.
pub unsafe extern "C" fn decode_value(args: *const u64) {
    // SAFETY: the caller keeps the argument contract.
    let [a, b, v, _, _, _, _, rows, dim, inner, _, a_ld, b_ld, ld] = unsafe { args::words(args) };
    let shapes = [[a, rows, inner, a_ld], [b, inner, dim, b_ld], [v, rows, dim, ld]];
    // SAFETY: the same; the shapes are those of a product.
    let [a, b, v] = unsafe { args::matrices(shapes) };
    matmul::product(a, b, v);
}

/// Rotates the heads of the queries (on the first vector core of its block) or the head of the keys (on the second) of each row, in
/// place, as [`rope`] does; what [`decode_value`] computes at the same time is not touched.
/// Arguments: a, b, v, q, k, positions, angles, rows, `head_dim`, inner, group, `a_ld`, `b_ld`, ld; the block context.
///
/// # Safety
/// The [argument contract](crate::args): `q` has rows of `group` heads side by side, `k` rows of one head, both with stride `ld`,
/// read and written; `positions` (`u32`) has a number from 1 for each row, and `angles` cosines and sines, `head_dim / 2` of each,
/// for each number.
pub unsafe extern "C" fn decode_rotate(args: *const u64) {
    // SAFETY: the caller keeps the argument contract, and the context stands behind the arguments.
    let [_, _, _, q, k, positions, angles, rows, dim, _, group, _, _, ld, context] =
        unsafe { args::words(args) };
    let (first, heads) = match BlockContext::of(context).lane {
        0 => (q, group),
        _ => (k, 1),
    };
    for row in 0..rows {
        // SAFETY: the same; a number for each row.
        let position: u32 = unsafe { args::load(positions, args::size(row)) };
        let cos = angles + F32 * dim * u64::from(position.saturating_sub(1));
        // SAFETY: the same; cosines, then sines.
        let [cos, sin] = unsafe { args::vectors([cos, cos + F32 * (dim / 2)], dim / 2) };
        // SAFETY: the same; heads side by side.
        let [x] = unsafe { args::matrices([[first + F32 * row * ld, heads, dim, dim]]) };
        x.iter_rows().for_each(|x| rotate_row(x, cos, sin, x));
    }
}

/// `out = gate / (1 + e^-gate) * up`. Arguments: gate, up, out, rows, cols, `gate_ld`, `up_ld`, `out_ld`.
///
/// # Safety
/// The [argument contract](crate::args): all three are rows by cols, `out` written.
pub unsafe extern "C" fn silu_mul(args: *const u64) {
    // SAFETY: the caller keeps the argument contract.
    let [gate, up, out, rows, cols, gate_ld, up_ld, out_ld] = unsafe { args::words(args) };
    let shapes = [[gate, rows, cols, gate_ld], [up, rows, cols, up_ld], [out, rows, cols, out_ld]];
    // SAFETY: the same; three matrices of rows by cols.
    let [gate, up, out] = unsafe { args::matrices(shapes) };
    gated(gate, up, out);
}

/// `out = silu(gate) * up`, for as many rows as all of them have.
pub fn gated(gate: Matrix, up: Matrix, out: Matrix) {
    for ((gate, up), out) in gate.iter_rows().zip(up.iter_rows()).zip(out.iter_rows()) {
        lanes::zip_map(gate, up, out, |gate, up| gate / (1.0 + exp(-gate)) * up);
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a row has fewer than 2^24 elements, or the mean is rounded"
)]
fn norm_row(x: Vector, weight: Vector, out: Vector, epsilon: f32) {
    let mean = lanes::dot(x, x) / x.len() as f32;
    let root = sqrt(mean + epsilon);
    lanes::zip_map(x, weight, out, |x, weight| x / root * weight);
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
