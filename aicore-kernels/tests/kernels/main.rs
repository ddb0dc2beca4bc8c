//! The library kernels, called as a worker calls them, against references in `f64`.
//!
//! Tolerances are derived, not chosen: `gamma(n)` bounds the relative error of `n` roundings in
//! sequence (Higham, "Accuracy and Stability of Numerical Algorithms", chapter 3). What lies
//! between the rows of an input is NaN, so that reading it shows; what surrounds an output must
//! keep its bits.

mod attention;
mod cholesky;
mod combine;
mod elementwise;
mod experts;
mod layer;
mod library;
mod matmul;
mod newton;
#[expect(dead_code, reason = "the tests of tiles use the rest")]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the references convert numbers of known ranges"
)]
#[path = "../tile/number.rs"]
mod number;
mod online;
mod probe;
mod reduce;
mod sqrt;
mod support;
mod view;
mod worker;
