//! Compiles the builders in C and C++, and tells the linker what each image needs.

use std::env;
use std::path::Path;

use pto_image_build::sources::{Image, Source};

/// The binary that is the image `virt`.
const VIRT: &str = "pto-example-virt";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Elsewhere there is no image.
    let Some(image) = Image::of_target() else { return };
    match image {
        Image::Virt => virt(),
        Image::Cann => cann(),
    }
    let source =
        |path, symbol| Source { path: Path::new(path), function: "build_graph_aicpu", symbol };
    let sources = [
        source("c/build_graph.c", "example_in_c"),
        // Written for `class Runtime`, as a host loads them.
        source("c/increments.cpp", "example_in_cpp"),
        source("c/shapes.cpp", "example_shapes_in_cpp"),
    ];
    let include = env::var_os("DEP_PTO_FIRMWARE_INCLUDE").expect("pto-firmware says where");
    let includes: Vec<_> = env::split_paths(&include).collect();
    if let Err(refused) = pto_image_build::sources::link(image, VIRT, &sources, &includes) {
        panic!("{refused}");
    }
}

fn cann() {
    for argument in ["-nostartfiles", "-Wl,--build-id=sha1", "-Wl,-z,relro,-z,now"] {
        println!("cargo::rustc-link-arg-cdylib={argument}");
    }
}

fn virt() {
    for argument in ["-Tpto-virt.ld", "--build-id=sha1"] {
        println!("cargo::rustc-link-arg-bin={VIRT}={argument}");
    }
    for argument in ["-Tpto-blob.ld", "-pie", "--no-dynamic-linker", "--build-id=sha1"] {
        println!("cargo::rustc-link-arg-bin=pto-example-kernels={argument}");
    }
}
