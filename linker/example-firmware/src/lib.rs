//! A firmware crate of one's own: copy this folder, make `pto-firmware` point to where the PTO Runtime is, and
//! write builders. It builds in this workspace and outside of it. This is the image `cann`; `main.rs` is `virt`.
#![no_std]

#[cfg(target_os = "linux")]
mod builders;

#[cfg(target_os = "linux")]
pto_firmware::firmware! {
    /// The builders of this image.
    pub struct Builders {
        "increments" => crate::builders::increments,
        // c/build_graph.c
        "build_graph_aicpu" => pto_firmware::c_builder,
    }
}
