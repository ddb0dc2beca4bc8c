//! Random tasks of every shape: MIX, blocks, blocks that start at once, predicates, priorities; in layers that are recorded once
//! and replayed, every fourth of them submitted. Cells prove that each part of each block ran once, in order.

pub mod stream;

#[cfg(feature = "host")]
pub mod job;
#[cfg(feature = "host")]
mod reference;

#[cfg(all(test, feature = "host"))]
mod tests;
