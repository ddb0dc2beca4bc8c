//! The kernel library as one position-independent blob for an AArch64 device.
//!
//! ```text
//! KernelBlobHeader | KernelBlobEntry[kernel_count] | code and constants
//! ```
//! It is copied to a page of GM; a kernel's address is the blob's plus the entry's offset. The table is
//! written in assembly, because Rust has no constant for the distance between two symbols.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod table;

/// On a development machine there is nothing to load.
#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("pto-kernels-blob is code for a device: build it with --target aarch64-unknown-none");
    std::process::exit(2);
}
