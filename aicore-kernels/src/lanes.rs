//! Arithmetic on fixed groups of [`LANES`] elements, in the form that LLVM turns into vector
//! instructions.
//!
//! A group is loaded whole before any of it is stored, so an operation in place (an output at
//! exactly the address of an input) is as fast as any other. Sums go by lane, which fixes their
//! order.

use core::cell::Cell;

use crate::view::Vector;

/// Elements in a group. 16 was measured too: the same for add and exp, slower by a fifth for sums
/// and maxima (x86-64).
pub const LANES: usize = 8;

/// A group in registers.
pub type Lanes = [f32; LANES];

/// Loads consecutive elements.
#[inline(always)]
#[must_use]
pub fn load<const N: usize>(from: &[Cell<f32>; N]) -> [f32; N] {
    let mut values = [0.0; N];
    for (value, cell) in values.iter_mut().zip(from) {
        *value = cell.get();
    }
    values
}

/// Stores consecutive elements.
#[inline(always)]
pub fn store<const N: usize>(to: &[Cell<f32>; N], values: [f32; N]) {
    for (cell, value) in to.iter().zip(values) {
        cell.set(value);
    }
}

/// `f` of each pair.
// A loop, as everywhere here, and not `array::from_fn`: LLVM does not always inline that one's
// closure, and what is not inlined is neither vectorised nor free of bounds checks (seen on
// AArch64).
#[inline(always)]
#[must_use]
pub fn merge<const N: usize>(a: [f32; N], b: [f32; N], f: impl Fn(f32, f32) -> f32) -> [f32; N] {
    let mut merged = a;
    for (a, b) in merged.iter_mut().zip(b) {
        *a = f(*a, b);
    }
    merged
}

/// `out[i] = f(a[i])`, for the shorter of the lengths.
#[inline(always)]
pub fn map(a: Vector, out: Vector, f: impl Fn(f32) -> f32) {
    let ((a, a_tail), (out, out_tail)) = (a.as_chunks::<LANES>(), out.as_chunks::<LANES>());
    for (a, out) in a.iter().zip(out) {
        let mut group = load(a);
        for a in &mut group {
            *a = f(*a);
        }
        store(out, group);
    }
    for (a, out) in a_tail.iter().zip(out_tail) {
        out.set(f(a.get()));
    }
}

/// `out[i] = f(a[i], b[i])`, for the shortest of the lengths.
#[inline(always)]
pub fn zip_map(a: Vector, b: Vector, out: Vector, f: impl Fn(f32, f32) -> f32) {
    let ((a, a_tail), (b, b_tail)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let (out, out_tail) = out.as_chunks::<LANES>();
    for ((a, b), out) in a.iter().zip(b).zip(out) {
        store(out, merge(load(a), load(b), &f));
    }
    for ((a, b), out) in a_tail.iter().zip(b_tail).zip(out_tail) {
        out.set(f(a.get(), b.get()));
    }
}

/// Folds by lane: lane `i` takes elements `i`, `i + LANES`, ... in order.
#[inline(always)]
#[must_use]
pub fn fold(a: Vector, init: f32, f: impl Fn(f32, f32) -> f32) -> Lanes {
    let (groups, tail) = a.as_chunks::<LANES>();
    let mut lanes = [init; LANES];
    for group in groups {
        lanes = merge(lanes, load(group), &f);
    }
    for (lane, element) in lanes.iter_mut().zip(tail) {
        *lane = f(*lane, element.get());
    }
    lanes
}

/// Reduces the lanes to one value, as a balanced tree.
#[inline(always)]
#[must_use]
pub fn reduce(lanes: Lanes, f: impl Fn(f32, f32) -> f32) -> f32 {
    let [a, b, c, d, e, g, h, i] = lanes;
    f(f(f(a, e), f(c, h)), f(f(b, g), f(d, i)))
}

/// The sum of products, for the shorter of the lengths, by lane as [`fold`]: at most `n / 8 + 5` roundings on the way of
/// one product.
// Not inlined: it is called for every element of a triangular solve, and is the same code everywhere.
#[inline(never)]
#[must_use]
pub fn dot(a: Vector, b: Vector) -> f32 {
    let length = a.len().min(b.len());
    let (Some(a), Some(b)) = (a.get(..length), b.get(..length)) else { return 0.0 };
    let ((a, a_tail), (b, b_tail)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut lanes = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        let products = merge(load(a), load(b), |a, b| a * b);
        lanes = merge(lanes, products, |sum, product| sum + product);
    }
    for ((lane, a), b) in lanes.iter_mut().zip(a_tail).zip(b_tail) {
        *lane += a.get() * b.get();
    }
    reduce(lanes, |a, b| a + b)
}

/// The larger value; NaN if either is NaN (unlike [`f32::max`]: a NaN must not disappear).
#[inline(always)]
#[must_use]
pub fn max(a: f32, b: f32) -> f32 {
    if b > a || b.is_nan() { b } else { a }
}
