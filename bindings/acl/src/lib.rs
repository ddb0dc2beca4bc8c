//! `libpto_acl_a2a3sim.so`: the plug-in of `libascendcl.so` that implements the interface `aclrt*` on simulated devices. `docs/acl.md` says
//! which functions work; `entry/` has the library that programs link.
//!
//! ```text
//! api/      entry points: they check arguments, and turn errors into codes and messages
//! device/   sessions, streams, events, memory, graphs: what the calls do
//! common/   handles, threads, messages; it knows no device
//! ```
//! The headers in `include/acl` and the table of functions come from `interface/` (`cargo xtask generate`).

mod api;
mod common;
mod device;

pub use device::settings::{Machine, choose};
