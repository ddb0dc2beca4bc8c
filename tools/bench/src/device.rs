//! The simulated device that is measured.
//!
//! A measurement is of a firmware that is compiled around its programs, as an image is. A build that is not for figures shares the
//! firmware of [`Device::open_sim`]: each firmware more takes half a minute to compile.

use pto_graph::BuilderSet;
use pto_host::{Device, DeviceOptions, Error};

/// Opens it.
pub(crate) fn open<B: BuilderSet>(options: DeviceOptions, builders: B) -> Result<Device, Error> {
    #[cfg(not(pto_measured))]
    return Device::open_sim(options, builders);
    #[cfg(pto_measured)]
    // SAFETY: the programs of benchmarks call kernels with memory of the device. A build without `pto_measured` checks each of these calls.
    return unsafe { Device::open_sim_compiled_in(options, builders) };
}
