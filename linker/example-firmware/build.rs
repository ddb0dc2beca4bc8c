//! Compiles the builders in C and C++, and tells the linker what each image needs.

use std::env;
use std::path::Path;

use pto_image_build::sources::{Image, Source};

/// The binary that is the image `qemu`.
const QEMU: &str = "pto-example-qemu";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Elsewhere there is no image.
    let Some(image) = Image::of_target() else { return };
    match image {
        Image::Qemu => qemu(),
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
    if let Err(refused) = pto_image_build::sources::link(image, QEMU, &sources, &includes) {
        panic!("{refused}");
    }
}

fn cann() {
    for argument in ["-nostartfiles", "-Wl,--build-id=sha1", "-Wl,-z,relro,-z,now"] {
        println!("cargo::rustc-link-arg-cdylib={argument}");
    }
}

fn qemu() {
    for argument in ["-Tpto-qemu.ld", "--build-id=sha1"] {
        println!("cargo::rustc-link-arg-bin={QEMU}={argument}");
    }
    for argument in ["-Tpto-blob.ld", "-pie", "--no-dynamic-linker", "--build-id=sha1"] {
        println!("cargo::rustc-link-arg-bin=pto-example-kernels={argument}");
    }
}
