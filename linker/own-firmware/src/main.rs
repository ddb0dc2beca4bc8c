//! A firmware image with builders of one's own: `firmware!` links them in by name.
//!
//! `cargo build -p pto-own-firmware --profile firmware --target aarch64-unknown-none`
#![cfg_attr(target_os = "none", no_std, no_main)]
#![cfg_attr(not(target_os = "none"), expect(dead_code, reason = "there is nothing to boot here"))]

mod builders;

#[cfg(target_os = "none")]
pto_virt_platform::firmware! {
    /// Our builders.
    struct Builders {
        "diamond" => builders::diamond,
        "crashing" => builders::crashing,
        "failing" => builders::failing,
        "panicking" => builders::panicking,
    }
}

/// On a development machine there is nothing to boot.
#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("pto-own-firmware is a firmware image: build it with --target aarch64-unknown-none");
    std::process::exit(2);
}
