//! The firmware image of the device `qemu`: the examples' builders and the graphs of known shape, or the builders that
//! `pto fw build --builder` names.
//!
//! `cargo build -p pto-images --bins --profile firmware --target aarch64-unknown-none`
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(all(target_os = "none", not(feature = "plugins")))]
mod examples;

// The build script writes the list of builders.
#[cfg(all(target_os = "none", feature = "plugins"))]
include!(concat!(env!("OUT_DIR"), "/firmware.rs"));

/// On a development machine there is nothing to boot.
#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("pto-fw-qemu is a firmware image: build it with --target aarch64-unknown-none");
    std::process::exit(2);
}
