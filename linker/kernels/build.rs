//! Links the blob with `blob.ld`, at address 0, as position-independent code.

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=blob.ld");
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "none") {
        let folder = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
        let script = Path::new(&folder).join("blob.ld");
        println!("cargo::rustc-link-arg-bins=-T{}", script.display());
        // The linker keeps what it would have to relocate at run time in .rela.dyn, which the script refuses.
        println!("cargo::rustc-link-arg-bins=-pie");
        println!("cargo::rustc-link-arg-bins=--no-dynamic-linker");
        println!("cargo::rustc-link-arg-bins=--build-id=sha1");
    }
}
