//! The default firmware image for the CANN driver stack: the examples' builders.
//!
//! `cargo build -p pto-cann-image --profile firmware --target aarch64-unknown-linux-gnu` with
//! `CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc`; `libpto_fw_cann.so` is the image.
//! Everything that the image does is in `pto_cann_platform` and below.
#![no_std]

pto_examples::with_examples! {
    pto_cann_platform::firmware;
    /// The builders of the default image.
    pub struct Builders {}
    stream { "workload" => pto_examples::expand }
}
