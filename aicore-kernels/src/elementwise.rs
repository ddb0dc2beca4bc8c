//! Elementwise vector kernels: add, `add_scalar`, mul, exp.
//!
//! `out` may be the same memory as an input, from the same first element on. With any other overlap
//! the result is unspecified.

use crate::exp::exp as exp_of;
use crate::lanes;
use crate::view::Vector;

/// `out = a + b`.
#[inline]
pub fn add(a: Vector, b: Vector, out: Vector) {
    lanes::zip_map(a, b, out, |a, b| a + b);
}

/// `out = a + scalar`.
#[inline]
pub fn add_scalar(a: Vector, scalar: f32, out: Vector) {
    lanes::map(a, out, |a| a + scalar);
}

/// `out = a * b`, elementwise.
#[inline]
pub fn mul(a: Vector, b: Vector, out: Vector) {
    lanes::zip_map(a, b, out, |a, b| a * b);
}

/// `out = e^a`, see [`crate::exp`].
#[inline]
pub fn exp(a: Vector, out: Vector) {
    lanes::map(a, out, exp_of);
}
