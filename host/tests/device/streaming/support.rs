//! A device for streaming programs, and the kernel that they run.

use std::num::NonZeroUsize;

use pto_host::abi::stream::StreamCapacities;
use pto_host::abi::{CoreKind, FuncId};
use pto_host::{Capacities, Device, DeviceOptions, Hosting, Kernel, RunOptions};

use super::program::{StreamingPrograms, mix_kernel};

/// The func id of [`mix_kernel`].
pub(crate) const MIX: FuncId = FuncId(900);

pub(crate) fn pool(os_threads: usize) -> Hosting {
    Hosting::Pool { os_threads: NonZeroUsize::new(os_threads).unwrap() }
}

pub(crate) fn open(hosting: Hosting) -> Device {
    let options = DeviceOptions { aic: 3, aiv: 6, gm_bytes: 1 << 30, hosting };
    let mut device = Device::open_sim(options, StreamingPrograms).unwrap();
    device.register_library().unwrap();
    device.register_kernel(MIX, Kernel::from_fn("mix", CoreKind::AIV, mix_kernel)).unwrap();
    device
}

/// Rings as small as this window allows.
pub(crate) fn small(window: u32) -> RunOptions {
    let stream = StreamCapacities { window, map_entries: 512, heap_rings: 3, heap_bytes: 1 << 14 };
    let arg_words = 11 * u64::from(window);
    let capacities =
        Capacities { tasks: window, arg_words, edges: 6 * 8, stream, ..Capacities::default() };
    RunOptions { capacities, ..RunOptions::default() }
}
