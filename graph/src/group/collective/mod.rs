//! The collectives, as graphs of transfers and reduction kernels.
//!
//! ```text
//! calls.rs: the calls of a communicator --+--> scatter.rs   reduce-scatter: direct, ring, halving   (in place, by parts)
//!                                         |--> gather.rs    all-gather: direct, ring, doubling      (in place, by parts)
//!                                         |--> doubling.rs  all-reduce of whole tensors, in pairs
//!                                         |--> relay.rs     broadcast and reduce of large tensors, tile by tile through relays
//!                                         |--> tree.rs      broadcast and reduce of whole tensors
//!                                         '--> exchange.rs  all-to-all, also with counts that only the device knows
//! ```
//! A tensor of a collective is divided into a part for each rank: of n elements rank r of s has those from n r / s to n (r + 1) / s.
//! Every step is in tiles, each with transfers and kernels of its own, so that the next step of a tile starts while other tiles
//! are on their way.
//!
//! Why it is so: `docs/decisions/collectives.md`.

mod all;
mod call;
mod doubling;
mod exchange;
mod gather;
mod relay;
mod scatter;
mod tree;
