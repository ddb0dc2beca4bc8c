//! Recordings: parts of a build that are kept, to be built again with other tensors.
//!
//! ```text
//! begin -> Draft: tasks are written into the buffer instead of being added -> end -> Recordings: kept until the run ends
//!                                                                                  |
//!                                              tasks/replay.rs: they become tasks of the run, as often as wanted
//! ```
//!
//! Why it is so: `docs/decisions/recordings.md`.

pub(super) mod addresses;
pub(super) mod bindings;
pub(super) mod buffer;
mod draft;
mod recordings;

pub(super) use draft::{Draft, Drafted};
pub(super) use recordings::Recordings;
