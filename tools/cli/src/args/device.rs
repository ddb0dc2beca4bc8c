//! Which device a command means.

use clap::ValueEnum;

/// A device that runs graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeviceChoice {
    /// The simulator: firmware and kernels in this process
    A2a3sim,
    /// The flashed firmware image on an emulated AArch64 machine (QEMU)
    #[value(alias = "virt")]
    Qemu,
    /// An Ascend 910B or 910C, through CANN (docs/how-to/hardware.md)
    A2a3,
}
