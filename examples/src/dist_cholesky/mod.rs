//! `dist_cholesky`: the factor L of a symmetric positive definite matrix A = L @ L^T, on a grid of devices, each of which has the tiles of
//! some rows and columns, in turns (2-D block-cyclic).

pub mod grid;
#[cfg(feature = "host")]
pub mod job;
pub mod stream;
