//! `libascendcl.so`: implements the interface `aclrt*` on the devices of the PTO Runtime. `docs/acl.md` says which functions work.
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
