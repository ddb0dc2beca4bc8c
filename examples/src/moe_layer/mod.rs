//! `moe_layer`: a mixture of experts: a router sends each token to a few of many experts, each of which is a gated MLP that works on
//! the tokens that it got. Which experts have work is known when they could begin.

#[cfg(feature = "host")]
pub mod inputs;
#[cfg(feature = "host")]
pub mod job;
#[cfg(feature = "host")]
pub mod reference;
pub(crate) mod stages;
pub mod stream;
#[cfg(all(test, feature = "host"))]
mod tests;
