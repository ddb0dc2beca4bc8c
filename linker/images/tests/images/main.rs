//! Builds the `cann` images, looks into them, runs them under qemu-aarch64, and drives
//! them as a device through the stand-in for the vendor's libraries. Tools that are missing are
//! installed ([`common::tools`]): the compiler's target by rustup, the linker and the emulator from Debian.

mod a2a3;
#[expect(dead_code, reason = "the tests of the field use the rest")]
#[path = "../../../../bindings/field/tests/field/bench.rs"]
mod bench;
mod common;
mod examples;
mod graphs;
mod image;
mod own_firmware;
mod scenes;
mod sessions;
#[path = "../../../../bindings/field/tests/field/shapes.rs"]
mod shapes;
#[expect(dead_code, reason = "the tests of the field use the rest")]
#[path = "../../../../bindings/field/tests/field/table.rs"]
mod table;
