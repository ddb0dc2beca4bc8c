//! The streaming builder: tasks with tensors, edges derived from their regions, memory that does not grow.
//!
//! ```text
//! submit: room in the rings (room.rs) -> slot, arguments -> edges from the tensor map (map.rs) -> publish
//!              |                                                |
//!              `- waits for the watermark                       `- overlap of regions (region.rs, overlap.rs)
//! ```
//! **The watermark** `W`: every task with a number below `W` has completed. Tasks are numbered in the order in which they
//! are added; task `n` stands in slot `n % window`. Slots, argument words, chunks of edges and entries of the
//! tensor map are given out in that order and taken back in that order, when `W` passes: one number, read from the state
//! of one task, instead of a reference count on everything. What is behind `W` is not cleaned up either: a task of the
//! tensor map that is behind is not seen.

pub mod builder;
mod edges;
mod kept;
pub mod map;
#[cfg(not(any(loom, shuttle)))]
mod memory;
pub mod overlap;
pub mod proof;
mod record;
pub mod region;
mod replay;
pub mod rings;
mod room;
mod scopes;
mod shape_line;
mod shaped;
mod submit;
mod tape;

pub use builder::{Schedulers, Stream, StreamMemory};

/// Entries of the tensor map, at least: a task with the most arguments has a place for each, twice.
const FEWEST_ENTRIES: u32 = 256;
