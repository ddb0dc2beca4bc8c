//! Passes the blobs' linker script to the blobs that depend on this crate, and links this one with it: at
//! address 0, as position-independent code.

use std::path::PathBuf;
use std::{env, fs};

#[cfg(any(feature = "field", feature = "own"))]
mod listed_kernels;

const SCRIPT: &str = "pto-blob.ld";
/// Relocations at run time would be in .rela.dyn, which the script refuses.
const ARGUMENTS: [&str; 4] = ["-Tpto-blob.ld", "-pie", "--no-dynamic-linker", "--build-id=sha1"];

fn main() {
    println!("cargo::rerun-if-changed={SCRIPT}");
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(any(feature = "field", feature = "own"))]
    listed_kernels::compile();
    let of_target = |name| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let is_bare = of_target("OS") == "none";
    // For the development machine the profiles of images alone make a blob: their name is that of the folder.
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let is_image =
        out.components().any(|part| part.as_os_str().to_string_lossy().starts_with("firmware"));
    let is_native = of_target("ARCH") == "x86_64" && of_target("OS") == "linux" && is_image;
    if !is_bare && !is_native {
        return;
    }
    fs::copy(SCRIPT, out.join(SCRIPT)).expect("OUT_DIR is writable");
    println!("cargo::rustc-link-search={}", out.display());
    for argument in ARGUMENTS {
        // There the linker is called through a C compiler.
        let through = if is_native { "-Wl," } else { "" };
        println!("cargo::rustc-link-arg-bins={through}{argument}");
    }
    if is_native {
        ["-nostartfiles", "-nostdlib"]
            .iter()
            .for_each(|argument| println!("cargo::rustc-link-arg-bins={argument}"));
    }
}
