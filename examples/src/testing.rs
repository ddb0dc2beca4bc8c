//! Runs an example on a simulated device, for the tests of the examples with tensors.

use pto_abi::{BuildMode, FanoutStrategy, RuntimeVariant};
use pto_host::virtual_time::{KernelCosts, VirtualOptions};
use pto_host::{Device, DeviceOptions, Hosting, RunOptions, RunReport};

use crate::host::{Error, Example, Inputs, Params, Prepared, RunMode, Verdict};

/// One run with random inputs.
pub(crate) fn run(example: &dyn Example, params: &Params) -> (RunReport, Result<Verdict, Error>) {
    run_with(example, params, &Inputs::default())
}

/// One run with these inputs.
pub(crate) fn run_with(
    example: &dyn Example,
    params: &Params,
    inputs: &Inputs,
) -> (RunReport, Result<Verdict, Error>) {
    let (report, mut prepared, _device) =
        attempt(example, params, inputs).unwrap_or_else(|error| panic!("{error}"));
    let verdict = prepared.verify();
    (report, verdict)
}

/// One run under the streaming runtime, in a pool of one thread.
pub(crate) fn attempt(
    example: &dyn Example,
    params: &Params,
    inputs: &Inputs,
) -> Result<(RunReport, Prepared, Device), Error> {
    attempt_in((POOL, RuntimeVariant::TENSORMAP_AND_RINGBUFFER), example, params, inputs)
}

/// A pool of one thread.
pub(crate) const POOL: Hosting = Hosting::Pool { os_threads: core::num::NonZeroUsize::MIN };

/// Virtual time in which each kernel takes so many nanoseconds.
pub(crate) fn with_kernels_of(ns: u64) -> Hosting {
    let costs = KernelCosts::Constant(ns);
    Hosting::Virtual(VirtualOptions { costs, ..VirtualOptions::default() })
}

/// As [`attempt`], in this hosting mode, under this runtime.
pub(crate) fn attempt_in(
    (hosting, variant): (Hosting, RuntimeVariant),
    example: &dyn Example,
    params: &Params,
    inputs: &Inputs,
) -> Result<(RunReport, Prepared, Device), Error> {
    let options = DeviceOptions { hosting, aic: 4, aiv: 8, ..DeviceOptions::default() };
    let mut device = crate::host::open_sim(options)?;
    device.register_library()?;
    let mut prepared = example.prepare(params, inputs, &device)?;
    let (build_mode, fanout) = (BuildMode::CONCURRENT, FanoutStrategy::LOCK_FREE);
    let options = RunOptions { aicpu_instances: 2, ..RunOptions::default() };
    let way = RunMode { variant, build_mode, fanout };
    let report = way.run(&mut device, &mut prepared, &options)?;
    Ok((report, prepared, device))
}
