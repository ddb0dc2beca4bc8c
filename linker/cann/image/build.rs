//! What the linker is told about an image: a build id, from which the driver stack's dispatcher makes the name
//! of the installed file; no start files, which only carry what a library with destructors needs.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |variable| std::env::var(variable).unwrap_or_default();
    let is_image = ["aarch64", "x86_64"].contains(&&*target("CARGO_CFG_TARGET_ARCH")) && target("CARGO_CFG_PANIC") == "abort";
    if is_image && target("CARGO_CFG_TARGET_OS") == "linux" {
        for argument in ["-nostartfiles", "-Wl,--build-id=sha1", "-Wl,-z,relro,-z,now"] {
            println!("cargo::rustc-cdylib-link-arg={argument}");
        }
    }
}
