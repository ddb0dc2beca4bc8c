//! Elementwise vector kernels: add, `add_scalar`, mul, exp.
//!
//! `out` may be the same memory as an input, from the same first element on. With any other overlap
//! the result is unspecified.

use crate::args;
use crate::exp::exp as exp_of;
use crate::lanes;

/// `out = a + b`. Arguments: a, b, out, n.
///
/// # Safety
/// The [argument contract](crate::args): `n` elements each, `out` written.
pub unsafe extern "C" fn add(args: *const u64) {
    // SAFETY: the caller keeps the argument contract.
    let [a, b, out, n] = unsafe { args::words(args) };
    // SAFETY: the same; three vectors of `n` elements.
    let [a, b, out] = unsafe { args::vectors([a, b, out], n) };
    lanes::zip_map(a, b, out, |a, b| a + b);
}

/// `out = a + scalar`. Arguments: a, scalar, out, n.
///
/// # Safety
/// The [argument contract](crate::args): `n` elements each, `out` written.
pub unsafe extern "C" fn add_scalar(args: *const u64) {
    // SAFETY: the caller keeps the argument contract.
    let [a, scalar, out, n] = unsafe { args::words(args) };
    // SAFETY: the same; two vectors of `n` elements.
    let [a, out] = unsafe { args::vectors([a, out], n) };
    let scalar = args::scalar(scalar);
    lanes::map(a, out, |a| a + scalar);
}

/// `out = a * b`, elementwise. Arguments: a, b, out, n.
///
/// # Safety
/// The [argument contract](crate::args): `n` elements each, `out` written.
pub unsafe extern "C" fn mul(args: *const u64) {
    // SAFETY: the caller keeps the argument contract.
    let [a, b, out, n] = unsafe { args::words(args) };
    // SAFETY: the same; three vectors of `n` elements.
    let [a, b, out] = unsafe { args::vectors([a, b, out], n) };
    lanes::zip_map(a, b, out, |a, b| a * b);
}

/// `out = e^a`, see [`crate::exp`]. Arguments: a, out, n.
///
/// # Safety
/// The [argument contract](crate::args): `n` elements each, `out` written.
pub unsafe extern "C" fn exp(args: *const u64) {
    // SAFETY: the caller keeps the argument contract.
    let [a, out, n] = unsafe { args::words(args) };
    // SAFETY: the same; two vectors of `n` elements.
    let [a, out] = unsafe { args::vectors([a, out], n) };
    lanes::map(a, out, exp_of);
}
