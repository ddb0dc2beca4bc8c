//! `leaky_relu`: `y = x` where `x` is not negative and `x / 16` elsewhere, on a vector of `f32`, in tiles.

pub mod graph;
#[cfg(feature = "host")]
pub mod job;
