//! Hosting mode `virtual`: one OS thread, a virtual clock, every choice decided by a seed.
//!
//! ```text
//! Virtual (host.rs) -- run --> engine.rs: steps pto_aicpu_fw::Instance and pto_aicore_kernels::worker::step
//!     platform.rs  an instance's operations, each with its time     core.rs   a core, its lines and its clock
//!     agenda.rs    who is due when                                  chooser.rs  what is left open
//!     traced_calls.rs  a builder program's calls                    profile.rs, cost.rs  what things cost
//!     ledger.rs, lines.rs  what must never happen                   trace.rs, report.rs  what did
//!     account.rs, fitting.rs  where the cores' time went
//!     tracer.rs    the trace rings of a traced run
//!     inject.rs    what goes wrong                                  soak/   many runs at once
//!     group/       several machines with a network between them
//!     spec.rs      faults and costs as a user writes them
//! ```
//! `docs/reference/virtual-time.md` says what is modelled and what is not.

mod account;
mod agenda;
mod block_ledger;
mod block_shapes;
pub mod campaign;
mod chooser;
mod core;
mod core_machine;
mod cost;
mod device;
mod digest;
mod engine;
mod environment;
mod fitting;
pub mod group;
mod host;
mod image;
mod inject;
mod ledger;
pub mod lines;
mod options;
mod paths;
mod platform;
mod port;
pub mod profile;
mod random;
mod report;
mod search;
pub mod soak;
pub mod spec;
mod state;
mod trace;
mod traced_calls;
mod tracer;
mod transfers;
#[cfg(test)]
mod wrong_core;

pub use account::KindTime;
pub use chooser::Chooser;
pub use cost::{FastRegion, FastRegions, KernelCosts, set_cost_word};
pub use host::run_once;
pub(crate) use host::{Virtual, VirtualHost};
pub use inject::{INJECTED_ERROR, Injection, Trouble};
pub use ledger::{Invariant, Violation, Waits};
pub use options::{Compute, LineModel, VirtualOptions};
pub use profile::{CostRange, Profile, ProfileError};
pub use report::{InstanceReport, KindReport, VirtualReport};
pub use soak::{SoakOptions, SoakReport, soak};
pub use trace::{Event, EventKind, Keep};
