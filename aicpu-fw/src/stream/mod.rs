//! The streaming builder: tasks with tensors, edges derived from their regions, memory that does not grow.
//!
//! ```text
//!  builder.rs   Stream: what a program calls: submit, scopes, tensors, recordings
//!     |
//!  tasks.rs     Tasks: accepts, waits for room, writes lines, edges, publishes; replays a recording
//!     |
//!  storage.rs   Storage: what is given out in the order of the tasks and taken back at the watermark
//!     |-- window.rs   slots           |-- heaps.rs    tensors of scopes     |-- marks.rs  what a run leaves behind
//!     |-- rings.rs    words, chunks   |-- recording.rs  what is built again `-- kept.rs   tasks that are published later
//!     `-- map.rs      the tensor map: which task touches which bytes (region.rs, overlap.rs)
//!  scopes.rs    which scopes are open            proof.rs   when a wait can never end
//! ```
//! Arrows lead down only. `Storage` says what the watermark is: what is behind it is not cleaned up; a task of the
//! tensor map that is behind is not seen.

mod accesses;
mod block_spec;
pub mod builder;
mod heaps;
mod kept;
pub mod map;
mod marks;
#[cfg(not(any(loom, shuttle)))]
mod memory;
pub mod overlap;
pub mod proof;
mod recording;
pub mod region;
pub mod rings;
mod scopes;
mod storage;
mod tasks;
mod uses;
mod window;

pub use builder::Stream;
pub use proof::Schedulers;
pub use storage::StreamMemory;

/// Entries of the tensor map, at least: a task with the most arguments has a place for each, twice.
const FEWEST_ENTRIES: u32 = 256;
