//! A run of an example on the machine in virtual time, for its report alone: `--predict`, and `pto bench --device-metg`.

use pto_abi::RuntimeVariant;
use pto_examples::host::{Inputs, Params, Prepared};
use pto_host::virtual_time::VirtualReport;
use pto_host::{DeviceOptions, RunOptions, Work};

use crate::device::Wanted;
use crate::errors::Failure;
use crate::meaning::with_meaning;
use crate::target::Target;

/// Runs an example on a device of its own; `options` says how, once its size is known.
pub(crate) fn virtual_report(
    target: &Target,
    (params, inputs): (&Params, &Inputs),
    (device, variant): (DeviceOptions, RuntimeVariant),
    options: impl FnOnce(&Prepared) -> RunOptions,
) -> Result<Box<VirtualReport>, Failure> {
    let mut device = Wanted::Simulator(device).open(target.programs())?;
    target.kernels.register(&mut device)?;
    let mut prepared = target.example.prepare(params, inputs, &device)?;
    prepared.reset()?;
    let image = match variant {
        RuntimeVariant::HOST_BUILD_GRAPH => Some(target.build_on_host(&prepared, &device)?),
        _ => None,
    };
    let work = image.as_ref().map_or_else(|| prepared.work(variant), Work::HostGraph);
    let run = device.run(work, &options(&prepared));
    let run = run.map_err(|error| with_meaning(target.example, error))?;
    let none = || {
        Failure::internal(
            "the machine in virtual time returned no report; this is an error of `pto`: report it",
        )
    };
    run.virtual_report.ok_or_else(none)
}
