//! A session of a device and the stitcher of its programs, as other languages open them.

use pto_host::session::SessionOptions;
use pto_host::stitch::{LoadedProgram, StitchOptions, Stitcher};
use pto_host::workloads::program::Program;
use pto_host::{Device, RunOptions};

use crate::failure::Failure;

/// Opens a session on a device, with the kernels of the library where the device has them not, and a fast region for tensors of so many bytes.
///
/// # Errors
/// Those of [`Device::session`]; the fast region does not fit the device.
pub fn open_session(mut device: Device, on_chip_bytes: u64) -> Result<Stitcher, Failure> {
    device.register_missing_library()?;
    let options = SessionOptions { run: run_options(&device), ..SessionOptions::default() };
    let session = device.session(options)?;
    Ok(Stitcher::with_options(&session, StitchOptions { on_chip_bytes })?)
}

/// The defaults, with no more AICPU instances than find a cluster to schedule, in addition to the one that builds.
fn run_options(device: &Device) -> RunOptions {
    let defaults = RunOptions::default();
    let most = device.clusters().saturating_add(1);
    RunOptions { aicpu_instances: defaults.aicpu_instances.min(most), ..defaults }
}

/// Puts a program into the memory of the device, and loads its native kernels.
///
/// # Errors
/// Those of [`Stitcher::load_with`] and of [`kernels`](crate::program::kernels).
pub fn load(stitcher: &Stitcher, program: Program) -> Result<LoadedProgram, Failure> {
    let native = crate::program::kernels(&program)?;
    Ok(stitcher.load_with(program, native)?)
}
