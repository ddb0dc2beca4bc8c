//! `cholesky`: the factor L of a symmetric positive definite matrix A = L @ L^T, in tiles, in place. The graph
//! states what waits for what; in a streaming run it follows from what the tasks read and overwrite.
//!
//! Why it is so: `docs/decisions/example-graphs.md`.

pub mod graph;
#[cfg(feature = "host")]
pub mod job;
#[cfg(feature = "host")]
pub mod reference;
pub mod stream;
#[cfg(all(test, feature = "host"))]
mod tests;
