//! Hosts the firmware and the kernels on this machine: the device `a2a3sim`.
//!
//! ```text
//! SimulatedMachine::run(arena)
//!   Threads: one OS thread per AICPU instance and per core; waits adaptively     threads.rs
//!   Pool:    a few OS threads step all instances and cores                       pool.rs
//!   Virtual: one OS thread, a virtual clock, a seed for every choice                 virtual_time/
//!      the first two: pto_aicpu_fw::LinesPlatform (policy -> handshake lines), with a Machine of the mode
//!            CorePort      (worker loop -> handshake lines, kernels called)      core_port.rs
//!            Supervisor    (the caller: waits, notices what does not return)     supervisor.rs
//! ```
//! The firmware calls builder programs through a table, so that it is compiled once, in this crate (builders/). A kernel may go on after its call in virtual time (async_kernels.rs).
//! All three modes run the same `pto_aicpu_fw::Instance` and `pto_aicore_kernels::worker`. On the simulator an address in GM
//! is an address of this process, and the address of a kernel is that of its function.

pub mod async_kernels;
mod builders;
mod clock;
mod core_port;
mod crash;
mod doorbell;
pub mod group;
mod host;
mod hosting;
pub mod logging;
mod machine;
mod os_threads;
mod pool;
mod supervisor;
mod threads;
pub mod virtual_time;
mod wait;

pub use builders::AnyBuilders;
pub use crash::name_kernel;
pub use doorbell::Doorbell;
pub use hosting::{Hosting, UnknownHosting};
pub use machine::{LaunchOutcome, SimulatedMachine};
pub use os_threads::{MAX_OS_THREADS, default_campaign_threads, default_pool_threads};
