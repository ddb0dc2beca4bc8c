//! Devices through the library: the simulator, streaming programs, tasks of several cores, and the C header.
//!
//! The tests are one binary, because each binary that opens the simulator compiles the firmware once more.
//! `cargo test -p pto-host --test device streaming::traced` runs one of the files.

#[cfg(feature = "sim")]
mod block_shapes;
mod c_header;
#[cfg(feature = "sim")]
mod calls;
#[cfg(feature = "sim")]
mod chains;
#[cfg(feature = "sim")]
mod documented;
#[cfg(feature = "sim")]
mod pools;
#[cfg(all(feature = "sim", target_os = "linux"))]
mod scarce;
#[cfg(feature = "sim")]
mod sessions;
#[cfg(feature = "sim")]
mod simulator;
#[cfg(feature = "sim")]
mod stitching;
#[cfg(feature = "sim")]
mod streaming;
