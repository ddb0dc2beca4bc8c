//! The image `virt` of builders in C and C++: `pto fw build --builder NAME=FILE`. The build script writes the list.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
include!(concat!(env!("OUT_DIR"), "/firmware.rs"));

/// Elsewhere there is nothing to boot.
#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("this is a firmware image: build it with --target aarch64-unknown-none");
    std::process::exit(2);
}
