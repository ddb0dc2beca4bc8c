//! The image `cann` of builders in C and C++: `pto fw build --image cann --builder NAME=FILE`. The build script
//! writes the list of builders.
#![no_std]

#[cfg(target_os = "linux")]
include!(concat!(env!("OUT_DIR"), "/firmware.rs"));
