//! Programs of our own, written against the interface of the field, on the simulator.
//!
//! `../programs/` holds two sources: all orchestrations, and all kernels. Each is compiled once, with one call of the compiler.

mod bench;
mod diagnostics;
mod programs;
mod qemu;
mod shapes;
mod table;
