//! Whole-system tests: programs on devices, through the interfaces that users have.
//!
//! They are one binary, because each binary that opens a device with builders of its own compiles the firmware and
//! the simulator once more. `cargo test -p pto-tests --test system schedule` runs one of the files.

mod abandoned;
mod chains;
mod every_way;
mod frozen;
mod held;
mod own_firmware;
mod plugins;
mod qemu;
mod qemu_timelines;
mod raw_access;
mod schedule;
mod timelines;
mod troubles;
mod ways;
