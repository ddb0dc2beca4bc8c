//! The timeline of a run: from the events that the device recorded to files, numbers and pictures.
//!
//! ```text
//! trace rings --Collector--> Trace --file::write--> JSON for Perfetto, Chrome and `pto` --file::read--> Trace
//!  (the host)  collect.rs    model.rs   file.rs                                            file.rs
//! Trace --Analysis::of--> bounds, where the time went, critical path, kernels, waits   analysis/, report.rs
//! Analysis --Bottleneck::of--> what bounds the run, and what to change                      bound.rs
//! Trace --counters--> ready tasks, busy cores, tasks ahead, for viewers                    counters.rs
//! two Analysis --Comparison::of--> what differs                                        compare.rs
//! a Trace of each rank of a group --ranks::merge--> one Trace                              ranks.rs
//! Trace --html, svg, gantt--> pictures                                                 html.rs, svg.rs, gantt.rs
//! Graph --layout--> svg, page, dot, json                                               graph/
//! ```
//! page.rs assembles the pages from the files of `view/`.
//! `docs/how-to/timeline.md` defines the words, and `docs/reference/timeline-file.md` the schema of the file. Nothing here needs a device, or the rest of the host.
#![forbid(unsafe_code)]

pub mod analysis;
mod bound;
mod collect;
pub mod compare;
mod counters;
pub mod file;
pub mod gantt;
pub mod graph;
pub mod html;
mod laps;
mod model;
mod page;
pub mod ranks;
pub mod report;
pub mod svg;
pub mod text;

pub use analysis::Analysis;
pub use bound::{Bottleneck, Limit};
pub use collect::{Collector, LaneKernels};
pub use compare::Comparison;
pub use graph::Graph;
pub use model::{
    BlockPart, CoreRun, Edge, EndFault, Moments, Neighbours, RingCounts, RowNames, Task, Trace,
};
