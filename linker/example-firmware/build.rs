//! Compiles the builder in C, and tells the linker what each image needs.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=c");
    let target = |part: &str| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    if target("ARCH") != "aarch64" {
        // There is no image for this machine.
        return;
    }
    compile_builder(target("OS") == "none");
    if target("OS") == "linux" {
        for argument in ["-nostartfiles", "-Wl,--build-id=sha1", "-Wl,-z,relro,-z,now"] {
            println!("cargo::rustc-cdylib-link-arg={argument}");
        }
        return;
    }
    println!("cargo::rustc-link-arg-bins=-Tpto-virt.ld");
    println!("cargo::rustc-link-arg-bins=--build-id=sha1");
}

fn compile_builder(is_bare: bool) {
    let include = env::var_os("DEP_PTO_FIRMWARE_INCLUDE").expect("pto-firmware says where");
    let mut compiler = cc::Build::new();
    if is_bare {
        // Debian's compiler for Linux does for freestanding code.
        compiler.compiler("aarch64-linux-gnu-gcc").pic(false).flag("-mstrict-align");
    }
    compiler
        .file("c/build_graph.c")
        .includes(env::split_paths(&include))
        .std("c11")
        .warnings_into_errors(true)
        .flag("-ffreestanding")
        .cargo_metadata(false)
        .compile("build_graph");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    println!("cargo::rustc-link-search=native={out}");
    // The whole archive: a linker does not look into one for what a weak default provides.
    println!("cargo::rustc-link-lib=static:+whole-archive=build_graph");
}
