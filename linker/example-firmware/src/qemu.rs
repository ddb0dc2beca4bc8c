//! The builders as an image for the device `qemu`.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod builders;
#[cfg(all(target_os = "none", feature = "misbehaving"))]
mod misbehaving;

#[cfg(all(target_os = "none", not(feature = "misbehaving")))]
pto_firmware::c_builder!(in_c = "example_in_c");
#[cfg(all(target_os = "none", not(feature = "misbehaving")))]
pto_firmware::cpp_builder!(in_cpp = "example_in_cpp");
#[cfg(all(target_os = "none", not(feature = "misbehaving")))]
pto_firmware::cpp_builder!(shapes_in_cpp = "example_shapes_in_cpp");

#[cfg(all(target_os = "none", not(feature = "misbehaving")))]
pto_firmware::firmware! {
    /// The builders of this image.
    struct Builders {
        "increments" => builders::increments,
        "polynomials" => builders::polynomials,
        "diamond" => builders::diamond,
        // c/build_graph.c
        "build_graph_aicpu" => in_c,
        // c/increments.cpp
        "increments_in_cpp" => in_cpp,
    }
    stream {
        "shapes" => builders::shapes,
        // c/shapes.cpp
        "shapes_in_cpp" => shapes_in_cpp,
    }
}

#[cfg(all(target_os = "none", feature = "misbehaving"))]
pto_firmware::firmware! {
    /// The builders of the image that misbehaves.
    struct Builders {
        "increments" => builders::increments,
        "polynomials" => builders::polynomials,
        "diamond" => builders::diamond,
        "crashing" => misbehaving::crashing,
        "failing" => misbehaving::failing,
        "panicking" => misbehaving::panicking,
    }
    stream { "shapes" => builders::shapes }
}

/// Elsewhere there is nothing to boot.
#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("this is a firmware image: build it with --target aarch64-unknown-none");
    std::process::exit(2);
}
