//! Hands the blobs' linker script to the blobs that depend on this crate, and links this one with it: at
//! address 0, as position-independent code.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=pto-blob.ld");
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "none") {
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
        fs::copy("pto-blob.ld", out.join("pto-blob.ld")).expect("OUT_DIR is writable");
        println!("cargo::rustc-link-search={}", out.display());
        // What the linker would have to relocate at run time stands in .rela.dyn, which the script refuses.
        for argument in ["-Tpto-blob.ld", "-pie", "--no-dynamic-linker", "--build-id=sha1"] {
            println!("cargo::rustc-link-arg-bins={argument}");
        }
    }
}
