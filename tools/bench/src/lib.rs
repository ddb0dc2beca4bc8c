//! Measures what a task costs: makes graphs, runs them by our runtime and by other libraries, and reports the results. `pto bench`
//! is the command for it.
//!
//! ```text
//! Family --graph(tasks)--> Csr                                       family, csr.rs
//! Runner: load, check, sample                                       runner.rs
//!   Pto (hosting mode, variant) <- Program (builds any Csr)         runner/pto.rs, program.rs
//!   Sweep                                                           runner/floor.rs
//!   Peer: a program <- Recipe (builds it into a cache)              runner/peer.rs, peers.rs, ../peers
//! measure(Plan, runners) --> Series, between probes of the machine  measure.rs, probe.rs, small.rs
//! sessions: what a submission, a launch, a wake-up cost            sessions
//! DeviceMetg: the same on the device, in virtual time               device_metg.rs
//! FieldTiming: published times of silicon and virtual time     field_timings.rs
//! METG(50 %), instructions, memory                                 metg.rs, instructions.rs, memory.rs
//! TraceCost: what events add to a run                              tracing.rs
//! Report --> text, JSON, ratios, targets, SVG                       report.rs
//! ```
#![cfg(feature = "measure")]

pub mod csr;
mod device;
pub mod device_metg;
pub mod family;
pub mod field_timings;
pub mod instructions;
pub mod measure;
pub mod memory;
pub mod metg;
pub mod peers;
pub mod probe;
pub mod program;
pub mod report;
pub mod runner;
pub mod sessions;
pub mod small;
pub mod stats;
pub mod stream;
pub mod tracing;
