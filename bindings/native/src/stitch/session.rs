//! A session of a device and the stitcher of its programs, as other languages open them.

use pto_host::Device;
use pto_host::session::SessionOptions;
use pto_host::stitch::{LoadedProgram, StitchOptions, Stitcher};
use pto_host::workloads::program::Program;

use crate::failure::Failure;

/// Opens a session on a device, with the kernels of the library where the device has them not, and a fast region for tensors of so many bytes.
///
/// # Errors
/// Those of [`Device::session`]; the fast region does not fit the device.
pub fn open_session(mut device: Device, on_chip_bytes: u64) -> Result<Stitcher, Failure> {
    device.register_missing_library()?;
    let session = device.session(SessionOptions::default())?;
    Ok(Stitcher::with_options(&session, StitchOptions { on_chip_bytes })?)
}

/// Puts a program into the memory of the device, and loads its native kernels.
///
/// # Errors
/// Those of [`Stitcher::load_with`] and of [`kernels`](crate::program::kernels).
pub fn load(stitcher: &Stitcher, program: Program) -> Result<LoadedProgram, Failure> {
    let native = crate::program::kernels(&program)?;
    Ok(stitcher.load_with(program, native)?)
}
