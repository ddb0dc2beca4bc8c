//! Builds the `cann` images, looks into them, and runs them under qemu-aarch64. Tools that are missing are
//! installed ([`common::tools`]): the compiler's target by rustup, the linker and the emulator from Debian.

mod common;
mod examples;
mod graphs;
mod image;
mod own_firmware;
