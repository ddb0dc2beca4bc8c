//! What the linker is told about an image: a build id, from which the driver stack's dispatcher makes the name
//! of the installed file; no start files, which only carry what a library with destructors needs.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |variable| std::env::var(variable).unwrap_or_default();
    if target("CARGO_CFG_TARGET_OS") != "linux" {
        return;
    }
    let arguments: &[&str] = match target("CARGO_CFG_TARGET_ARCH").as_str() {
        "aarch64" => &["-nostartfiles", "-Wl,--build-id=sha1", "-Wl,-z,relro,-z,now"],
        // Of a development machine the library may be one of tests as well, whose standard library needs the start files.
        "x86_64" => &["-Wl,--build-id=sha1"],
        _ => &[],
    };
    arguments.iter().for_each(|argument| println!("cargo::rustc-cdylib-link-arg={argument}"));
}
