//! Kernels of one's own, and those of the library, as one blob: of a table in C or C++ (`pto_kernels.h`, `pto fw build --kernels`), and of files in Rust
//! (`--kernel`). The build script compiles them, and writes the table.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
#[path = "../field/math.rs"]
mod math;
#[cfg(target_os = "none")]
mod table {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

/// Elsewhere there is nothing to load.
#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("pto-own-kernels is code for a device: build it with --target aarch64-unknown-none");
    std::process::exit(2);
}
