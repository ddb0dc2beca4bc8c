//! Says whether the crate is built for figures. Only the profile `dist` optimises this crate fully; see Cargo.toml of the workspace.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(pto_measured)");
    if std::env::var("OPT_LEVEL").as_deref() == Ok("3") {
        println!("cargo::rustc-cfg=pto_measured");
    }
}
