//! Machines on this computer: what every way of hosting the firmware must do, and what virtual time adds.
//!
//! The tests are one binary, because each binary compiles the generic firmware once more.
//! `cargo test -p pto-sim-shim --test simulator virtual_time::soak` runs one of the files.

mod common;
mod conformance;
mod virtual_time;
