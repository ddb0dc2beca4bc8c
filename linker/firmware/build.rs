//! Says where the headers for builders in C are: `DEP_PTO_FIRMWARE_INCLUDE` in the build script of a crate that depends on this one, in
//! the form of `PATH`. For the bare machine it generates the linker script's constants from `pto_abi`, and passes the script to the images.
//!
//! An image says in its build script which script it is linked with (linker/images/build.rs is an example).

use std::path::{Path, PathBuf};
use std::{env, fs};

use pto_abi::fw_image::{BootBlock, qemu};
use pto_abi::runtime::Runtime;

const SCRIPT: &str = "pto-qemu.ld";

fn main() {
    println!("cargo::rerun-if-changed={SCRIPT}");
    println!("cargo::rerun-if-changed=build.rs");
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let folders = [here.join("include"), here.join("../../bindings/include")];
    let include = env::join_paths(folders).expect("no colon in the folder's name");
    println!("cargo::metadata=include={}", include.display());
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "none") {
        hand_on_script(&PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")));
    }
}

fn hand_on_script(out: &Path) {
    fs::write(out.join("pto-abi.ld"), constants()).expect("OUT_DIR is writable");
    fs::copy(SCRIPT, out.join(SCRIPT)).expect("OUT_DIR is writable");
    println!("cargo::rustc-link-search={}", out.display());
}

/// One symbol for each constant of the ABI that the script uses.
fn constants() -> String {
    let max_vcpus = qemu::MAX_VCPUS as u64;
    let constants = [
        ("PTO_RAM_ADDRESS", qemu::RAM_ADDRESS),
        ("PTO_BOOT_BLOCK_ADDRESS", qemu::BOOT_BLOCK_ADDRESS),
        ("PTO_BOOT_BLOCK_BYTES", size_of::<BootBlock>() as u64),
        ("PTO_IMAGE_ADDRESS", qemu::IMAGE_ADDRESS),
        ("PTO_IMAGE_BYTES", qemu::IMAGE_BYTES),
        ("PTO_STACKS_ADDRESS", qemu::STACKS_ADDRESS),
        ("PTO_STACK_STRIDE", qemu::STACK_STRIDE),
        ("PTO_STACK_GAP", qemu::STACK_GAP),
        ("PTO_EXCEPTION_STACK_BYTES", qemu::EXCEPTION_STACK_BYTES),
        ("PTO_MAX_VCPUS", max_vcpus),
        ("PTO_PAGE_BYTES", qemu::PAGE_BYTES),
        ("PTO_GM_ADDRESS", qemu::GM_ADDRESS),
        ("PTO_RUNTIME_BYTES", size_of::<Runtime>() as u64),
    ];
    let lines = constants.map(|(name, value)| format!("{name} = {value:#x};\n"));
    format!("/* Generated from pto_abi by linker/firmware/build.rs. */\n{}", lines.concat())
}
