//! What a run from Rust costs beyond its makespan: the measure for the same run from Python (`bindings/python/benches/overhead.py`).

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use pto_host::abi::CoreKind;
use pto_host::graph::TaskSpec;
use pto_host::{DeviceOptions, Hosting, RunControl, RunOptions, Work, func};
use pto_native::{Failure, GraphDraft, SharedDevice};

const ROUNDS: usize = 1000;

fn main() -> Result<(), Failure> {
    let hosting = Hosting::Pool { os_threads: NonZeroUsize::MIN };
    let options = DeviceOptions { aic: 2, aiv: 4, gm_bytes: 64 << 20, hosting };
    let device = SharedDevice::open_sim(options)?;
    device.with(|device| device.register_library())??;
    let mut graph = GraphDraft::default();
    graph.add_task(TaskSpec::new(func::EMPTY_AIV, CoreKind::AIV, &[]))?;
    let options = RunOptions { aicpu_instances: 2, ..RunOptions::default() };
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..=ROUNDS {
        let start = Instant::now();
        let image = device.finish(&graph)?;
        let report = device.run(Work::HostGraph(&image), &options, &RunControl::new())?;
        let whole = start.elapsed();
        times.push((whole, whole.saturating_sub(report.makespan)));
    }
    // The first run brings the cores up.
    let times = &mut times[1..];
    let mut median = |of: fn(&(Duration, Duration)) -> Duration| {
        times.sort_by_key(of);
        of(&times[ROUNDS / 2])
    };
    println!("a run from Rust: {:?}", median(|times| times.0));
    println!("beyond the makespan: {:?} (median of {ROUNDS})", median(|times| times.1));
    Ok(())
}
