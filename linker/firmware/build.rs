//! Says where the headers for builders in C are: `DEP_PTO_FIRMWARE_INCLUDE` in the build script of a crate that
//! depends on this one, in the form of `PATH`.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let folders = [here.join("../c-builder/include"), here.join("../../bindings/include")];
    let include = env::join_paths(folders).expect("no colon in the folder's name");
    println!("cargo::metadata=include={}", include.display());
}
