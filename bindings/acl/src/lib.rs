//! `libpto_acl.so`: the plug-in of `libascendcl.so` that implements the interface `aclrt*` on the devices `a2a3sim` and `qemu`. `docs/reference/acl.md` says
//! which functions work; `entry/` has the library that programs link.
//!
//! ```text
//! api/      entry points: they check arguments, and turn errors into codes and messages
//! device/   sessions, streams, events, memory, graphs: what the calls do
//! common/   handles, threads, messages; it knows no device
//! bin/      the program that makes the calls of a record again
//! ```
//! The headers in `include/acl` and the table of functions come from `interface/` (`cargo xtask generate`).

mod api;
mod common;
mod device;
