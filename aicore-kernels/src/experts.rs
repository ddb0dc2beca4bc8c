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
use crate::view::Vector;

/// Chooses for each token the `top_k` experts with the largest logits, and weighs them by the softmax of their logits. Of equal
/// ones the expert with the lower number is first. Arguments: logits, experts, weights, tokens, `n_experts`, `top_k`,
/// `logits_ld`.
///
/// # Safety
/// The [argument contract](crate::args): `logits` is tokens by `n_experts`; `experts` (`u32`) and `weights` have
/// `tokens * top_k` elements and are written; `top_k` is at most `n_experts`.
pub unsafe extern "C" fn moe_route(args: *const u64) {
    // SAFETY: the caller keeps the argument contract.
    let [logits, experts, weights, tokens, n_experts, top_k, ld] = unsafe { args::words(args) };
    // SAFETY: the same; tokens by experts.
    let [logits] = unsafe { args::matrices([[logits, tokens, n_experts, ld]]) };
    // SAFETY: the same; `top_k` elements a token.
    let [weights] = unsafe { args::matrices([[weights, tokens, top_k, top_k]]) };
    let slots = args::size(top_k);
    for (token, (logits, weights)) in logits.iter_rows().zip(weights.iter_rows()).enumerate() {
        for slot in 0..slots {
            let before = |place: usize| -> u32 {
                // SAFETY: the same; an element of this token that was written before.
                unsafe { args::load(experts, token * slots + place) }
            };
            let best = largest(logits, |expert| (0..slot).any(|place| before(place) == expert));
            // SAFETY: the same; an element of this token.
            unsafe { args::store(experts, token * slots + slot, best) };
            if let (Some(weight), Some(logit)) = (weights.get(slot), logits.get(best as usize)) {
                weight.set(logit.get());
            }
        }
        softmax(weights);
    }
}

/// Lists the entries that go to one expert, in order. Arguments: experts, list, count, entries, expert.
///
/// # Safety
/// The [argument contract](crate::args): `experts` (`u32`) has `entries` elements; `list` (`u32`) has one for each that is
/// `expert`, `count` (`u32`) has one; both are written.
pub unsafe extern "C" fn moe_list(args: *const u64) {
    // SAFETY: the caller keeps the argument contract.
    let [experts, list, count, entries, expert] = unsafe { args::words(args) };
    let mut found = 0;
    for entry in 0..args::size(entries) {
        // SAFETY: the same; an element of `experts`.
        let chosen: u32 = unsafe { args::load(experts, entry) };
        if u64::from(chosen) == expert {
            // SAFETY: the same; there is room for each that is found.
            unsafe { args::store(list, found, u32::try_from(entry).unwrap_or(u32::MAX)) };
            found += 1;
        }
    }
    // SAFETY: the same; one element.
    unsafe { args::store(count, 0, u32::try_from(found).unwrap_or(u32::MAX)) };
}

/// Copies the tokens of an expert's list into rows of its own, and counts in `ran` that the expert ran.
/// Arguments: x, list, count, ran, out, tokens, cols, `top_k`, `x_ld`, `out_ld`.
///
/// # Safety
/// The [argument contract](crate::args): `x` is tokens by cols, `count` and `ran` (`u32`) have one element, `list` (`u32`) and
/// the rows of `out` are `*count`; `ran` and `out` are written.
pub unsafe extern "C" fn moe_gather(args: *const u64) {
    // SAFETY: the caller keeps the argument contract.
    let [x, list, count, ran, out, tokens, cols, top_k, x_ld, out_ld] =
        unsafe { args::words(args) };
    // SAFETY: the same.
    let rows: u32 = unsafe { args::load(count, 0) };
    let shapes = [[x, tokens, cols, x_ld], [out, rows.into(), cols, out_ld]];
    // SAFETY: the same; all tokens, and as many rows as there are entries.
    let [x, out] = unsafe { args::matrices(shapes) };
    for (at, out) in out.iter_rows().enumerate() {
        // SAFETY: the same; an entry of the list.
        let entry: u32 = unsafe { args::load(list, at) };
        lanes::map(x.row(token_of(entry, top_k)), out, |x| x);
    }
    // SAFETY: the same.
    let before: u32 = unsafe { args::load(ran, 0) };
    // SAFETY: the same.
    unsafe { args::store(ran, 0, before.wrapping_add(1)) };
}

/// `c = a @ b` for `*count` rows. Arguments: a, b, c, count, n, k, `a_ld`, `b_ld`, `c_ld`.
///
/// # Safety
/// The [argument contract](crate::args): as [`matmul::matmul`], with as many rows as `count` (`u32`) says.
pub unsafe extern "C" fn moe_matmul(args: *const u64) {
    // SAFETY: the caller keeps the argument contract.
    let [a, b, c, count, n, k, a_ld, b_ld, c_ld] = unsafe { args::words(args) };
    // SAFETY: the same.
    let rows: u32 = unsafe { args::load(count, 0) };
    let m = rows.into();
    // SAFETY: the same; the shapes are those of a product.
    let [a, b, c] = unsafe { args::matrices([[a, m, k, a_ld], [b, k, n, b_ld], [c, m, n, c_ld]]) };
    matmul::product(a, b, c);
}

/// `out = silu(gate) * up` for `*count` rows. Arguments: gate, up, out, count, cols, `gate_ld`, `up_ld`, `out_ld`.
///
/// # Safety
/// The [argument contract](crate::args): as [`layer::silu_mul`], with as many rows as `count` (`u32`) says.
pub unsafe extern "C" fn moe_silu_mul(args: *const u64) {
    // SAFETY: the caller keeps the argument contract.
    let [gate, up, out, count, cols, gate_ld, up_ld, out_ld] = unsafe { args::words(args) };
    // SAFETY: the same.
    let rows: u32 = unsafe { args::load(count, 0) };
    let rows = rows.into();
    let shapes = [[gate, rows, cols, gate_ld], [up, rows, cols, up_ld], [out, rows, cols, out_ld]];
    // SAFETY: the same; three matrices of rows by cols.
    let [gate, up, out] = unsafe { args::matrices(shapes) };
    layer::gated(gate, up, out);
}

/// `out[token] += weight * y[row]` for each entry of an expert's list.
/// Arguments: y, list, count, weights, out, tokens, cols, `top_k`, `y_ld`, `out_ld`.
///
/// # Safety
/// The [argument contract](crate::args): `list` (`u32`) and the rows of `y` are `*count`, `weights` has `tokens * top_k`
/// elements, `out` is tokens by cols, read and written.
pub unsafe extern "C" fn moe_scatter(args: *const u64) {
    // SAFETY: the caller keeps the argument contract.
    let [y, list, count, weights, out, tokens, cols, top_k, y_ld, out_ld] =
        unsafe { args::words(args) };
    // SAFETY: the same.
    let rows: u32 = unsafe { args::load(count, 0) };
    let shapes = [[y, rows.into(), cols, y_ld], [out, tokens, cols, out_ld]];
    // SAFETY: the same; as many rows as there are entries, and all tokens.
    let [y, out] = unsafe { args::matrices(shapes) };
    for (at, y) in y.iter_rows().enumerate() {
        // SAFETY: the same; an entry of the list.
        let entry: u32 = unsafe { args::load(list, at) };
        // SAFETY: the same; each entry has a weight.
        let weight: f32 = unsafe { args::load(weights, entry as usize) };
        let out = out.row(token_of(entry, top_k));
        lanes::zip_map(out, y, out, |out, y| out + weight * y);
    }
}

fn token_of(entry: u32, top_k: u64) -> usize {
    u64::from(entry).checked_div(top_k).map_or(usize::MAX, args::size)
}

/// The number of the largest element that is not taken. A NaN is larger than nothing.
fn largest(elements: Vector, is_taken: impl Fn(u32) -> bool) -> u32 {
    let mut best: Option<(u32, f32)> = None;
    for (number, element) in (0_u32..).zip(elements) {
        let is_better = best.is_none_or(|(_, largest)| element.get() > largest);
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
