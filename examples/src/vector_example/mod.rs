//! `vector_example`: `f = (a + b + 1) * (a + b + 2)`, elementwise on a matrix of `f32`, in tiles of rows.

pub mod graph;
#[cfg(feature = "host")]
pub mod job;
