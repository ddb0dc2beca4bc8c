//! Devices for shaped tasks, and what runs on each of them.

use std::num::NonZeroUsize;

use pto_host::abi::stream::StreamCapacities;
use pto_host::virtual_time::VirtualOptions;
use pto_host::{Capacities, Device, DeviceOptions, Error, Hosting, RunOptions, RunReport, Work};

use super::kernels;
use super::programs::BlockShapePrograms;

pub(crate) fn pool(os_threads: usize) -> Hosting {
    Hosting::Pool { os_threads: NonZeroUsize::new(os_threads).unwrap() }
}

/// Every way to host a run, but the one in which kernels may wait for each other.
pub(crate) fn hostings() -> Vec<Hosting> {
    let seeded = |seed| Hosting::Virtual(VirtualOptions { seed, ..VirtualOptions::default() });
    vec![pool(1), pool(2), Hosting::Threads, seeded(1), seeded(2)]
}

pub(crate) fn open(hosting: Hosting, aic: u32, aiv: u32) -> Device {
    let options = DeviceOptions { aic, aiv, gm_bytes: 1 << 28, hosting };
    let mut device = Device::open_sim(options, BlockShapePrograms).unwrap();
    device.register_library().unwrap();
    kernels::register(&mut device);
    device
}

/// A window of 64 tasks.
pub(crate) fn small() -> RunOptions {
    let stream =
        StreamCapacities { window: 64, map_entries: 512, heap_rings: 3, heap_bytes: 1 << 14 };
    let capacities =
        Capacities { tasks: 64, arg_words: 1024, edges: 512, stream, ..Capacities::default() };
    RunOptions { capacities, ..RunOptions::default() }
}

/// A run with three schedulers, or one for each cluster; in virtual time under the machine's checkers.
pub(crate) fn run(
    device: &mut Device,
    builder: &str,
    orch_args: &[u64],
) -> Result<RunReport, Error> {
    let [aic, aiv] = device.describe().cores;
    let aicpu_instances = 1 + 3.min(aic.max(aiv.div_ceil(2)));
    let options = RunOptions { aicpu_instances, ..small() };
    let report = device.run(Work::Stream { builder, orch_args }, &options)?;
    if let Some(seen) = &report.virtual_report {
        assert_eq!(seen.violations, [], "{builder} {orch_args:?}");
    }
    Ok(report)
}
