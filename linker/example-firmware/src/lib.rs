//! An example of a firmware crate of your own. Copy this folder, point its dependencies to the PTO Runtime, and write your
//! builders and kernels. The crate builds in this workspace and outside of it.
//!
//! | file | what | built by |
//! |---|---|---|
//! | `builders.rs`, `c/build_graph.c`, `c/increments.cpp`, `c/shapes.cpp` | builders | |
//! | `lib.rs` | the image `cann` of them | `pto fw build --image cann --crate .` |
//! | `qemu.rs` | the image `qemu` of them | `pto fw build --crate .` |
//! | `kernels.rs` | kernels for `qemu` | the same |
#![no_std]

#[cfg(target_os = "linux")]
mod builders;

#[cfg(target_os = "linux")]
pto_firmware::c_builder!(in_c = "example_in_c");
#[cfg(target_os = "linux")]
pto_firmware::cpp_builder!(in_cpp = "example_in_cpp");
#[cfg(target_os = "linux")]
pto_firmware::cpp_builder!(shapes_in_cpp = "example_shapes_in_cpp");

#[cfg(target_os = "linux")]
pto_firmware::firmware! {
    /// The builders of this image.
    pub struct Builders {
        "increments" => crate::builders::increments,
        "polynomials" => crate::builders::polynomials,
        "diamond" => crate::builders::diamond,
        // c/build_graph.c
        "build_graph_aicpu" => in_c,
        // c/increments.cpp
        "increments_in_cpp" => in_cpp,
    }
    stream {
        "shapes" => crate::builders::shapes,
        // c/shapes.cpp
        "shapes_in_cpp" => shapes_in_cpp,
    }
}
