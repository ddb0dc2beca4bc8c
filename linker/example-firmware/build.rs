//! Compiles the builder in C, and tells the linker what each image needs.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=c");
    let target = |part: &str| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    if target("ARCH") != "aarch64" {
        // There is no image for this machine.
        return;
    }
    match target("OS").as_str() {
        "linux" => cann(),
        _ => virt(),
    }
}

fn cann() {
    for object in compile(&mut cc::Build::new()) {
        println!("cargo::rustc-link-arg-cdylib={}", object.display());
    }
    for argument in ["-nostartfiles", "-Wl,--build-id=sha1", "-Wl,-z,relro,-z,now"] {
        println!("cargo::rustc-link-arg-cdylib={argument}");
    }
}

fn virt() {
    let mut compiler = cc::Build::new();
    // Debian's compiler for Linux does for freestanding code.
    compiler.compiler("aarch64-linux-gnu-gcc").pic(false).flag("-mstrict-align");
    for object in compile(&mut compiler) {
        println!("cargo::rustc-link-arg-bin=pto-example-virt={}", object.display());
    }
    for argument in ["-Tpto-virt.ld", "--build-id=sha1"] {
        println!("cargo::rustc-link-arg-bin=pto-example-virt={argument}");
    }
    for argument in ["-Tpto-blob.ld", "-pie", "--no-dynamic-linker", "--build-id=sha1"] {
        println!("cargo::rustc-link-arg-bin=pto-example-kernels={argument}");
    }
}

/// Objects, not an archive: a linker does not look into an archive for what a weak default provides.
fn compile(compiler: &mut cc::Build) -> Vec<PathBuf> {
    let include = env::var_os("DEP_PTO_FIRMWARE_INCLUDE").expect("pto-firmware says where");
    compiler
        .file("c/build_graph.c")
        .includes(env::split_paths(&include))
        .std("c11")
        .warnings_into_errors(true)
        .flag("-ffreestanding")
        .compile_intermediates()
}
