//! Builds the `cann` images, looks into them, runs them under qemu-aarch64, and drives
//! them as a device through the stand-in for the vendor's libraries. Tools that are missing are
//! installed ([`common::tools`]): the compiler's target by rustup, the linker and the emulator from Debian.

mod a2a3;
mod common;
mod examples;
mod graphs;
mod image;
mod own_firmware;
mod sessions;
