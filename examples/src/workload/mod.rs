//! Workloads in files, as examples: what `pto run FILE.workload` runs. The reference is the workload itself, executed on this machine in program
//! order; a device must give the same bits.

mod example;
mod file;
mod job;
mod memory;

pub use file::WorkloadFile;
