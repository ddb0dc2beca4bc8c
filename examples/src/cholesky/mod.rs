//! `cholesky`: the factor L of a symmetric positive definite matrix A = L @ L^T, in tiles, in place, with edges that follow from
//! what the tasks read and overwrite.

#[cfg(feature = "host")]
pub mod job;
#[cfg(feature = "host")]
pub mod reference;
pub mod stream;
#[cfg(all(test, feature = "host"))]
mod tests;
