//! A mixture of experts: which token goes to which experts, and the experts' work on the tokens that they got.
//!
//! ```text
//! logits ── moe_route ──> experts, weights [tokens, top_k] ── moe_list, for each expert ──> list, count
//! x ── moe_gather ──> rows ── moe_matmul, moe_silu_mul, moe_matmul ──> y ── moe_scatter ──> out
//! ```
//! An *entry* is a token with one of its experts, numbered `token * top_k + slot`. How many rows an expert has is known only
//! when it runs: the kernels read `count` from memory.

use crate::args;
use crate::exp::exp;
use crate::lanes;
use crate::layer;
use crate::matmul;
use crate::view::{Matrix, Vector};

/// Chooses for each token the `top_k` experts with the largest logits, and weighs them by the softmax of their logits. Of equal
/// ones the expert with the lower number is first, and a NaN is before all numbers, so that its token's weights are NaN.
///
/// # Safety
/// The [argument contract](crate::args): `experts` (`u32`) has `top_k` elements for each row of `logits`, and is written;
/// `top_k` is at most as many as a row has elements.
#[inline]
pub unsafe fn route(logits: Matrix, experts: u64, weights: Matrix, top_k: u64) {
    let slots = args::size(top_k);
    for (token, (logits, weights)) in logits.iter_rows().zip(weights.iter_rows()).enumerate() {
        for slot in 0..slots {
            let before = |earlier: usize| -> u32 {
                // SAFETY: the caller keeps the contract: an element of this token that was written before.
                unsafe { args::load(experts, token * slots + earlier) }
            };
            let best = largest(logits, |expert| (0..slot).any(|earlier| before(earlier) == expert));
            // SAFETY: the caller keeps the contract: an element of this token.
            unsafe { args::store(experts, token * slots + slot, best) };
            if let (Some(weight), Some(logit)) = (weights.get(slot), logits.get(best as usize)) {
                weight.set(logit.get());
            }
        }
        softmax(weights);
    }
}

/// Lists the entries that go to one expert, in order.
///
/// # Safety
/// The [argument contract](crate::args): `experts` (`u32`) has `entries` elements; `list` (`u32`) has one for each that is
/// `expert`, `count` (`u32`) has one; both are written.
#[inline]
pub unsafe fn list(experts: u64, list: u64, count: u64, entries: u64, expert: u64) {
    let mut found = 0;
    for entry in 0..args::size(entries) {
        // SAFETY: the caller keeps the contract: an element of `experts`.
        let chosen: u32 = unsafe { args::load(experts, entry) };
        if u64::from(chosen) == expert {
            // SAFETY: the caller keeps the contract: there is room for each that is found.
            unsafe { args::store(list, found, u32::try_from(entry).unwrap_or(u32::MAX)) };
            found += 1;
        }
    }
    // SAFETY: the caller keeps the contract: one element.
    unsafe { args::store(count, 0, u32::try_from(found).unwrap_or(u32::MAX)) };
}

/// Copies the tokens of an expert's list, a table and its length, into rows of its own, and counts in `ran` that the expert ran.
/// `out` is an address, columns, a stride.
///
/// # Safety
/// The [argument contract](crate::args): `count` and `ran` (`u32`) have one element, `list` (`u32`) and
/// the rows of `out` are `*count`; `ran` and `out` are written.
#[inline]
pub unsafe fn gather(
    x: Matrix,
    (list, count): (u64, u64),
    ran: u64,
    [out, cols, out_ld]: [u64; 3],
    top_k: u64,
) {
    // SAFETY: the caller keeps the contract.
    let rows: u32 = unsafe { args::load(count, 0) };
    // SAFETY: the caller keeps the contract: as many rows as there are entries.
    let [out] = unsafe { args::matrices([[out, rows.into(), cols, out_ld]]) };
    for (at, out) in out.iter_rows().enumerate() {
        // SAFETY: the caller keeps the contract: an entry of the list.
        let entry: u32 = unsafe { args::load(list, at) };
        lanes::map(x.row(token_of(entry, top_k)), out, |x| x);
    }
    // SAFETY: the caller keeps the contract.
    let before: u32 = unsafe { args::load(ran, 0) };
    // SAFETY: the caller keeps the contract.
    unsafe { args::store(ran, 0, before.wrapping_add(1)) };
}

/// `c = a @ b` for `*count` rows. `a` and `c` are an address, columns, a stride.
///
/// # Safety
/// The [argument contract](crate::args): `a` and `c` have as many rows as `count` (`u32`) says, `c` is written.
#[inline]
pub unsafe fn product([a, k, a_ld]: [u64; 3], b: Matrix, [c, n, c_ld]: [u64; 3], count: u64) {
    // SAFETY: the caller keeps the contract.
    let rows: u32 = unsafe { args::load(count, 0) };
    let m = rows.into();
    // SAFETY: the caller keeps the argument contract. The shapes of `a` and `c` fit a matrix product.
    let [a, c] = unsafe { args::matrices([[a, m, k, a_ld], [c, m, n, c_ld]]) };
    matmul::product(a, b, c);
}

/// `out = silu(gate) * up` for `*count` rows of `cols` elements. The operands are an address and a stride.
///
/// # Safety
/// The [argument contract](crate::args): all three have as many rows as `count` (`u32`) says, `out` is written.
#[inline]
pub unsafe fn gated(
    [gate, gate_ld]: [u64; 2],
    [up, up_ld]: [u64; 2],
    [out, out_ld]: [u64; 2],
    cols: u64,
    count: u64,
) {
    // SAFETY: the caller keeps the contract.
    let rows: u32 = unsafe { args::load(count, 0) };
    let rows = rows.into();
    let shapes = [[gate, rows, cols, gate_ld], [up, rows, cols, up_ld], [out, rows, cols, out_ld]];
    // SAFETY: the caller keeps the contract: three matrices of rows by cols.
    let [gate, up, out] = unsafe { args::matrices(shapes) };
    layer::gated(gate, up, out);
}

/// `out[token] += weight * y[row]` for each entry of an expert's list, a table and its length. `y` is an address, columns, a stride.
///
/// # Safety
/// The [argument contract](crate::args): `list` (`u32`) and the rows of `y` are `*count`, `weights` has `top_k`
/// elements for each row of `out`, which is read and written.
#[inline]
pub unsafe fn scatter(
    [y, cols, y_ld]: [u64; 3],
    (list, count): (u64, u64),
    weights: u64,
    out: Matrix,
    top_k: u64,
) {
    // SAFETY: the caller keeps the contract.
    let rows: u32 = unsafe { args::load(count, 0) };
    // SAFETY: the caller keeps the contract: as many rows as there are entries.
    let [y] = unsafe { args::matrices([[y, rows.into(), cols, y_ld]]) };
    for (at, y) in y.iter_rows().enumerate() {
        // SAFETY: the caller keeps the contract: an entry of the list.
        let entry: u32 = unsafe { args::load(list, at) };
        // SAFETY: the caller keeps the contract: each entry has a weight.
        let weight: f32 = unsafe { args::load(weights, entry as usize) };
        let out = out.row(token_of(entry, top_k));
        lanes::zip_map(out, y, out, |out, y| out + weight * y);
    }
}

fn token_of(entry: u32, top_k: u64) -> usize {
    u64::from(entry).checked_div(top_k).map_or(usize::MAX, args::size)
}

/// The number of the largest element that is not taken; the first NaN, if there is one: a NaN must not disappear.
fn largest(elements: Vector, is_taken: impl Fn(u32) -> bool) -> u32 {
    let mut best: Option<(u32, f32)> = None;
    for (number, element) in (0_u32..).zip(elements) {
        let is_better = best.is_none_or(|(_, largest)| {
            element.get() > largest || (element.get().is_nan() && !largest.is_nan())
        });
        if is_better && !is_taken(number) {
            best = Some((number, element.get()));
        }
    }
    best.map_or(0, |(number, _)| number)
}

/// In place. The largest element is the first.
fn softmax(elements: Vector) {
    let max = elements.first().map_or(0.0, core::cell::Cell::get);
    lanes::map(elements, elements, |element| exp(element - max));
    let sum = crate::reduce::sum_of(elements);
    lanes::map(elements, elements, |element| element / sum);
}
