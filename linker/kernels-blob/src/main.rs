//! The blob of the kernel library: its kernels as position-independent code for an AArch64 device.
//!
//! `cargo build -p pto-kernels-blob --profile firmware --target aarch64-unknown-none`
#![cfg_attr(
    any(target_os = "none", all(target_arch = "x86_64", target_os = "linux", panic = "abort")),
    no_std,
    no_main
)]

use pto_kernels_blob::library::LIBRARY;

pto_kernels_blob::kernel_blob! { library; }

// What each entry is, a test compares with the library.
const _: () = assert!(KERNELS.len() == LIBRARY.len(), "a kernel of LIBRARY is not in the blob");

/// On a development machine there is nothing to load.
#[cfg(not(any(
    target_os = "none",
    all(target_arch = "x86_64", target_os = "linux", panic = "abort")
)))]
fn main() {
    eprintln!("pto-kernels-blob is code for a device: build it with --target aarch64-unknown-none");
    std::process::exit(2);
}
