//! Links with the script of the device `virt`; `pto-virt-platform` says where it is.

fn main() {
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "none") {
        println!("cargo::rustc-link-arg-bins=-Tpto-virt.ld");
        println!("cargo::rustc-link-arg-bins=--build-id=sha1");
    }
}
