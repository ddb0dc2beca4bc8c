//! Records what a program submits, reads and writes it as a graph file, and checks whether it can run. `pto check` is the
//! command for it.
//!
//! ```text
//! a program --Recorder--> Program --file::write--> one JSON object a line --file::read--> Program
//!            recorder.rs  program.rs   file/
//! Program --submit--> the firmware's builder on memory of our own --> derived edges, what rings need
//!          submit.rs  rig.rs, run_memory/                              derive.rs, rings.rs
//!         --take_apart--> nodes, edges, accesses --> cycles, races --> Report
//!          layout.rs                                 graph.rs, races.rs, reach.rs  check.rs, diagnostics.rs
//! ```
//! `docs/reference/graph-files.md` describes the fields of the file, and `docs/how-to/check.md` the checks. This crate does not compute edges, overlaps, refusals and ring sizes
//! itself: it asks the firmware's builder.

mod chains;
mod check;
mod declare;
mod demanded;
mod derive;
pub mod file;
mod file_program;
mod finding;
mod graph;
mod graph_submitter;
mod held;
mod layout;
mod memory_map;
pub mod program;
mod races;
mod reach;
mod record;
mod recorder;
mod recordings;
mod rig;
mod rings;
pub mod run_memory;
mod shown;
mod signatures;

mod diagnostics;
mod submit;
mod touched;
mod written;

pub use chains::{Kernel, without_chains};
pub use check::{Options, Report, check, check_views};
pub use declare::{Buffer, Operand, declare};
pub use demanded::demanded_path;
pub use file_program::FileProgram;
pub use finding::{Finding, Kind};
pub use program::Program;
pub use record::{NotRecorded, Recording, record};
pub use recorder::Recorder;
pub use recordings::without_recordings;
pub use rig::{Cores, Memory, Rings};
pub use rings::RingReport;
pub use shown::{TaskGraph, task_graph};
pub use signatures::{Signature, Signatures};
pub use written::{with_kept_heap, written};
