//! What a task costs: graphs, what runs them, and what is said of it. `pto bench` is its command line.
//!
//! ```text
//! Shape --graph(tasks)--> Csr                                       shape.rs, csr.rs
//! Runner: load, check, sample                                       runner.rs
//!   Pto (hosting mode, variant) <- Program (builds any Csr)         runner/pto.rs, program.rs
//!   Sweep                                                           runner/floor.rs
//! measure(Plan, runners) --> Series, between probes of the machine  measure.rs, probe.rs, small.rs
//! Report --> text, JSON, ratios                                     report.rs
//! ```

pub mod csr;
pub mod measure;
pub mod probe;
pub mod program;
pub mod report;
pub mod runner;
pub mod shape;
pub mod small;
pub mod stats;
