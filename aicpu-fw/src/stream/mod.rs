//! The streaming builder: tasks with tensors, edges derived from their regions, memory that does not grow.
//!
//! ```text
//!  builder.rs   Stream: what a program calls: submit, scopes, tensors, recordings
//!     |
//!  tasks.rs     Tasks: accepts, waits for room, writes lines, edges, publishes; replays a recording
//!     |
//!  storage.rs   Storage: what is given out in the order of the tasks and taken back at the watermark
//!     |-- window.rs   slots           |-- heaps.rs    tensors of scopes     |-- marks.rs  what a run leaves
//!     |-- rings.rs    words, chunks   |-- recording.rs  what is built again `-- unpublished.rs  tasks that are published later
//!     `-- map.rs      the tensor map: which task touches which bytes (region.rs, overlap.rs)
//!  scopes.rs    which scopes are open            proof.rs   when a wait can never end
//! ```
//! Arrows lead down only. `Storage` says what the watermark is: what is below it is not cleaned up; a task of the
//! tensor map that is below it is not seen.

mod accesses;
mod block_spec;
pub mod builder;
mod heaps;
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
mod unpublished;
mod uses;
mod window;

pub use builder::Stream;
pub use proof::Schedulers;
pub use storage::StreamMemory;

/// Entries of the tensor map, at least: enough for two accesses of each argument of a task with the most arguments.
const FEWEST_ENTRIES: u32 = 256;
