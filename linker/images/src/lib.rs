//! The image for the CANN driver stack: a shared object with the examples' builders, or with those that `pto fw build --builder` names.
//!
//! `cargo build -p pto-images --lib --profile firmware --target aarch64-unknown-linux-gnu` with
//! `CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc`; `libpto_fw_cann.so` is the image.
//! Everything that the image does is in `pto_firmware` and below.
#![no_std]

#[cfg(not(feature = "plugins"))]
pto_examples::with_examples! {
    pto_firmware::firmware;
    /// The builders of the default image.
    pub struct Builders {}
    stream { "workload" => pto_examples::expand }
}

// The build script writes the list of builders.
#[cfg(all(feature = "plugins", target_os = "linux"))]
include!(concat!(env!("OUT_DIR"), "/firmware.rs"));
