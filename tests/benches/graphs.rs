//! `cargo bench -p pto-tests`: build + run of 100,000 tasks with empty kernels, per hosting mode, beside a
//! sequential sweep over the same graph; and the fixed cost of a further run of a small graph.
//!
//! Throughput is in tasks, so criterion prints tasks a second; ns a task is its inverse. Machines are shared and
//! noisy: read the ratios within one run.

use std::num::NonZeroUsize;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pto_host::abi::FanoutStrategy;
use pto_host::abi::graph::BuilderSet;
use pto_host::abi::symbol::symbol;
use pto_host::{
    Capacities, Device, DeviceOptions, HostGraph, Hosting, KernelTimes, RunOptions, Work,
};
use pto_tests::graphs::{self, Shapes};
use pto_tests::sweep::Sweep;

const TASKS: u32 = 100_000;

fn open(hosting: Hosting) -> Device {
    let options = DeviceOptions { hosting, ..DeviceOptions::default() };
    let mut device = Device::open_sim(options, Shapes).expect("the device opens");
    device.register_library().expect("the library registers once");
    device
}

fn pool(threads: usize) -> Hosting {
    Hosting::Pool { os_threads: NonZeroUsize::new(threads).expect("not zero") }
}

fn options(fanout: FanoutStrategy, name: &str, tasks: u32) -> RunOptions {
    let (tasks, edges) = graphs::counts(name, tasks);
    RunOptions {
        fanout,
        kernel_times: KernelTimes::Skip,
        capacities: Capacities {
            tasks,
            arg_words: 0,
            edges,
            log_entries: 16,
            ..Capacities::default()
        },
        ..RunOptions::default()
    }
}

/// Built on the AICPU while the schedulers run.
fn aicpu_build_graph(criterion: &mut Criterion) {
    let modes = [
        ("pool-1", pool(1), FanoutStrategy::LOCK_FREE),
        ("pool-1-locked", pool(1), FanoutStrategy::LOCKED),
        ("pool-2", pool(2), FanoutStrategy::LOCK_FREE),
        ("threads", Hosting::Threads, FanoutStrategy::LOCK_FREE),
    ];
    for name in graphs::NAMES {
        let (tasks, _) = graphs::counts(name, TASKS);
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(tasks.into()));
        group.sample_size(10).warm_up_time(Duration::from_millis(300));
        group.measurement_time(Duration::from_secs(1));
        group.bench_function("sweep", |bench| {
            let mut sweep = Sweep::new(name, TASKS);
            bench.iter(|| sweep.build_and_run());
        });
        for (label, hosting, fanout) in modes {
            let mut device = open(hosting);
            let options = options(fanout, name, TASKS);
            let orch_args = [TASKS.into()];
            let work = Work::AicpuBuilder { builder: name, orch_args: &orch_args };
            group.bench_function(label, |bench| {
                bench.iter(|| device.run(work, &options).expect("the run passes").tasks);
            });
        }
        group.bench_function("pool-1-host-built", |bench| {
            let mut device = open(pool(1));
            let options = options(FanoutStrategy::LOCK_FREE, name, TASKS);
            bench.iter(|| host_built(&mut device, name, &options));
        });
        group.finish();
    }
}

/// Built on the host, sent as an image.
fn host_built(device: &mut Device, name: &str, options: &RunOptions) -> u64 {
    let program = |graph: &mut HostGraph<'_>| {
        Shapes.build(symbol(name), graph).expect("the shape has a program")
    };
    let image = HostGraph::build(device, &[TASKS.into()], program).expect("the graph builds");
    device.run(Work::HostGraph(&image), options).expect("the run passes").tasks
}

/// A further run of four tasks on an open device: what a run costs beside its tasks.
fn small_run(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("small_run");
    group.sample_size(20).measurement_time(Duration::from_secs(1));
    for (label, hosting) in
        [("pool-1", pool(1)), ("pool-2", pool(2)), ("threads", Hosting::Threads)]
    {
        let mut device = open(hosting);
        let options = options(FanoutStrategy::LOCK_FREE, "chain", 4);
        let work = Work::AicpuBuilder { builder: "chain", orch_args: &[4] };
        group.bench_with_input(BenchmarkId::from_parameter(label), &work, |bench, work| {
            bench.iter(|| device.run(*work, &options).expect("the run passes").tasks);
        });
    }
    group.finish();
}

criterion_group!(benches, aicpu_build_graph, small_run);
criterion_main!(benches);
