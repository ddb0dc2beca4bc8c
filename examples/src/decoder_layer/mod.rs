//! `decoder_layer`: one decoding step of one layer of a transformer, for a batch of requests: RMS norm, projections of query, key and
//! value, rotary embedding, attention over a paged cache, output projection, and a gated MLP, with residuals.

#[cfg(feature = "host")]
pub mod inputs;
#[cfg(feature = "host")]
pub mod job;
mod product;
#[cfg(feature = "host")]
pub mod reference;
pub(crate) mod stages;
pub mod stream;
#[cfg(all(test, feature = "host"))]
mod tests;
