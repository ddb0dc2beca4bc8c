//! Speed of the virtual-time machine: executions of tasks in a second of wall time, by graph and profile.
//! `cargo run --profile dist -p pto-sim-shim --example virtual_speed -- [tasks] [profile] [graph] [kernel ns | low..high]`
#[path = "../tests/simulator/common/mod.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod common;
#[path = "../tests/simulator/virtual_time/graphs.rs"]
mod graphs;

use std::time::Instant;

use common::{Device, LaunchOptions};
use graphs::Patterns;
use pto_abi::CoreKind;
use pto_abi::arena::Capacities;
use pto_sim_shim::Hosting;
use pto_sim_shim::virtual_time::{Compute, KernelCosts, Profile, VirtualOptions, VirtualReport};

/// Nanoseconds of a kernel: a number, or `low..high`.
fn costs(text: &str) -> KernelCosts {
    let number = |text: &str| text.parse().expect("nanoseconds");
    match text.split_once("..") {
        Some((low, high)) => KernelCosts::Drawn { low: number(low), high: number(high), seed: 1 },
        None => KernelCosts::Constant(number(text)),
    }
}

/// Part of the core time of a kind that was idle while tasks were ready and undispatched, in percent.
fn core_time_lost(report: &VirtualReport, kind: CoreKind) -> f64 {
    let kind = report.kinds[kind.index()];
    let all = u64::from(kind.cores) * report.graph_ns;
    100.0 * kind.time.overhead_core_ns as f64 / all.max(1) as f64
}

fn main() {
    let arg = |n| std::env::args().nth(n);
    let tasks: u32 = arg(1).map_or(1_000_000, |text| text.parse().unwrap());
    let costs = arg(4).map_or(KernelCosts::Constant(0), |text| costs(&text));
    for name in Profile::NAMES.iter().filter(|name| arg(2).is_none_or(|only| only == **name)) {
        let profile = Profile::by_name(name).unwrap();
        let compute = Compute::Off;
        let virtual_options =
            VirtualOptions { profile, costs, compute, ..VirtualOptions::default() };
        let capacities = Capacities {
            tasks: tasks + 100,
            arg_words: 10 * u64::from(tasks),
            edges: 3 * u64::from(tasks),
            image_bytes: 0,
            log_entries: 16,
            ..Capacities::default()
        };
        let options = LaunchOptions { aic: 24, aiv: 48, capacities, ..LaunchOptions::default() };
        for graph in ["chain", "independent", "fork_join", "wavefront", "attention"] {
            if arg(3).is_some_and(|only| only != graph) {
                continue;
            }
            let mut device = Device::new(Hosting::Virtual(virtual_options), options, Patterns);
            let mut best = f64::MAX;
            let mut last = None;
            for _ in 0..3 {
                let start = Instant::now();
                let outcome = device.run(graph, &[tasks.into()]);
                best = best.min(start.elapsed().as_secs_f64());
                assert!(
                    outcome.fault.is_none(),
                    "{:?} {:?}",
                    outcome.fault,
                    device.arena.epitaph()
                );
                last = outcome.virtual_report;
            }
            let report = last.unwrap();
            assert_eq!(report.violation_count, 0, "{:?}", report.violations);
            let steps: u64 = report.instances.iter().map(|instance| instance.steps).sum();
            println!(
                "{name} {graph}: {:.2} M tasks/s, {:.0} ns/task, {:.2} steps/task, graph {} us, bound {} us ({:.3} x; critical path {} us), overhead AIC {:.1} % AIV {:.1} % (core time {:.2} / {:.2} %), used {:.1} / {:.1} %, {:.0} AICPU ns/task, waits {} {} {} ns/task, hash {:016x}",
                report.tasks as f64 / best / 1e6,
                best * 1e9 / report.tasks as f64,
                steps as f64 / report.tasks as f64,
                report.graph_ns / 1000,
                report.lower_bound_ns() / 1000,
                report.graph_ns as f64 / report.lower_bound_ns().max(1) as f64,
                report.critical_path_ns / 1000,
                100.0 * report.overhead(CoreKind::AIC),
                100.0 * report.overhead(CoreKind::AIV),
                core_time_lost(&report, CoreKind::AIC),
                core_time_lost(&report, CoreKind::AIV),
                100.0 * report.utilisation(CoreKind::AIC),
                100.0 * report.utilisation(CoreKind::AIV),
                report.aicpu_ns_per_kernel(1),
                report.waits.dispatch_ns / report.tasks,
                report.waits.start_ns / report.tasks,
                report.waits.report_ns / report.tasks,
                report.trace_hash,
            );
        }
    }
}
