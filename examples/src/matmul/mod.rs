//! `matmul`: `c = a @ b + d` for any M, N and K, in tiles; products on cube cores, the sum with `d` on vector
//! cores.

pub mod graph;
#[cfg(feature = "host")]
pub mod job;
