//! The same builders as an image for the device `virt`.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod builders;

#[cfg(target_os = "none")]
pto_firmware::firmware! {
    /// The builders of this image.
    struct Builders {
        "increments" => builders::increments,
        // c/build_graph.c
        "build_graph_aicpu" => pto_firmware::c_builder,
    }
}

/// Elsewhere there is nothing to boot.
#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("this is a firmware image: build it with --target aarch64-unknown-none");
    std::process::exit(2);
}
