//! A session for tests.

use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pto_host::graph::NoBuilders;
use pto_host::session::{Drive, SessionOptions};
use pto_host::virtual_time::VirtualOptions;
use pto_host::{Device, DeviceOptions, Hosting, RunOptions, Session};

/// No test waits longer.
pub(super) const LONG: Duration = Duration::from_secs(60);
/// How many budgets a kernel spins that is to be found out.
const BUDGETS_BEYOND: u128 = 8;
/// Iterations whose time is taken.
const SPINS_MEASURED: u64 = 1_000_000;

pub(super) fn device(hosting: Hosting) -> Device {
    let options = DeviceOptions { aic: 2, aiv: 4, gm_bytes: 64 << 20, hosting };
    let mut device = Device::open_sim(options, NoBuilders).expect("64 MiB");
    device.register_library().expect("an empty table");
    device
}

pub(super) fn options() -> SessionOptions {
    let run = RunOptions { aicpu_instances: 2, ..RunOptions::default() };
    SessionOptions { run, ring_entries: 64, ..SessionOptions::default() }
}

pub(super) fn pool() -> Hosting {
    Hosting::Pool { os_threads: NonZeroUsize::MIN }
}

/// Iterations of the spinning kernel that take much longer than `budget` on this machine, and not longer than a test needs.
pub(super) fn far_beyond(budget: Duration) -> u64 {
    static MEASURED: OnceLock<Duration> = OnceLock::new();
    let measured = *MEASURED.get_or_init(|| {
        let spin = |_| {
            let start = Instant::now();
            pto_aicore_kernels::spin(SPINS_MEASURED);
            start.elapsed()
        };
        (0..5).map(spin).min().expect("five")
    });
    let ns = BUDGETS_BEYOND * budget.as_nanos();
    let iterations = ns * u128::from(SPINS_MEASURED) / measured.as_nanos().max(1);
    u64::try_from(iterations).expect("a budget is some milliseconds")
}

/// A session on a thread of its own, on a pool of one.
pub(super) fn session() -> Session {
    device(pool()).session(options()).expect("the options are right")
}

/// A session that its waiting threads step.
pub(super) fn stepped(hosting: Hosting, seed: u64) -> Session {
    let drive = Some(Drive::Stepped { seed });
    device(hosting).session(SessionOptions { drive, ..options() }).expect("the options are right")
}

pub(super) fn virtual_time(seed: u64) -> Hosting {
    Hosting::Virtual(VirtualOptions { seed, ..VirtualOptions::default() })
}

/// Does a test body on each kind of session.
pub(super) fn on_each(body: impl Fn(&Session, &str)) {
    body(&session(), "pool");
    body(&device(Hosting::Threads).session(options()).unwrap(), "threads");
    body(&device(virtual_time(1)).session(options()).unwrap(), "virtual");
    body(&stepped(pool(), 7), "stepped");
}
