//! Generates the linker script's constants from `pto_abi`, and hands the script to the images.
//!
//! An image says in its build script which script it is linked with (linker/virt/image/build.rs is an example); where
//! the script is found comes from here.

use std::path::PathBuf;
use std::{env, fs};

use pto_abi::fw_image::{BootBlock, virt};
use pto_abi::runtime::Runtime;

fn main() {
    println!("cargo::rerun-if-changed=pto-virt.ld");
    println!("cargo::rerun-if-changed=build.rs");
    let bare = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "none");
    if !bare {
        return;
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("pto-abi.ld"), constants()).expect("OUT_DIR is writable");
    fs::copy("pto-virt.ld", out.join("pto-virt.ld")).expect("OUT_DIR is writable");
    println!("cargo::rustc-link-search={}", out.display());
}

/// One symbol for each constant of the ABI that the script uses.
fn constants() -> String {
    let max_vcpus = virt::MAX_VCPUS as u64;
    let constants = [
        ("PTO_RAM_ADDRESS", virt::RAM_ADDRESS),
        ("PTO_BOOT_BLOCK_ADDRESS", virt::BOOT_BLOCK_ADDRESS),
        ("PTO_BOOT_BLOCK_BYTES", size_of::<BootBlock>() as u64),
        ("PTO_IMAGE_ADDRESS", virt::IMAGE_ADDRESS),
        ("PTO_IMAGE_BYTES", virt::IMAGE_BYTES),
        ("PTO_STACKS_ADDRESS", virt::STACKS_ADDRESS),
        ("PTO_STACK_STRIDE", virt::STACK_STRIDE),
        ("PTO_STACK_GAP", virt::STACK_GAP),
        ("PTO_EXCEPTION_STACK_BYTES", virt::EXCEPTION_STACK_BYTES),
        ("PTO_MAX_VCPUS", max_vcpus),
        ("PTO_PAGE_BYTES", virt::PAGE_BYTES),
        ("PTO_GM_ADDRESS", virt::GM_ADDRESS),
        ("PTO_RUNTIME_BYTES", size_of::<Runtime>() as u64),
    ];
    let lines = constants.map(|(name, value)| format!("{name} = {value:#x};\n"));
    format!("/* Generated from pto_abi by linker/virt/platform/build.rs. */\n{}", lines.concat())
}
