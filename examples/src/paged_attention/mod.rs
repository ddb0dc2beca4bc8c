//! `paged_attention`: one decoding step of attention over a paged key-value cache, with the online softmax.
//!
//! Each request has its own context length; its keys and values lie in blocks all over the cache, found
//! through its row of the block table. Query heads share key-value heads (grouped-query attention).

pub mod graph;
#[cfg(feature = "host")]
pub mod inputs;
#[cfg(feature = "host")]
pub mod job;
#[cfg(feature = "host")]
pub mod reference;
pub(crate) mod row;
pub mod stream;
#[cfg(all(test, feature = "host"))]
mod tests;
