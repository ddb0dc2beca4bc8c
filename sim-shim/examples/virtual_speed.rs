//! Speed of the virtual-time machine: executions of tasks in a second of wall time, by graph and profile.
//! `cargo run --release -p pto-sim-shim --example virtual_speed -- [tasks] [profile] [graph] [kernel ns]`
#[path = "../tests/common/mod.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod common;
#[path = "../tests/virtual_support/graphs.rs"]
mod graphs;

use std::time::Instant;

use common::{Device, Options};
use graphs::Shapes;
use pto_abi::CoreKind;
use pto_abi::arena::Capacities;
use pto_sim_shim::Hosting;
use pto_sim_shim::virtual_time::{KernelCosts, Profile, VirtualOptions};

fn main() {
    let arg = |n| std::env::args().nth(n);
    let tasks: u32 = arg(1).map_or(1_000_000, |text| text.parse().unwrap());
    let cost: u64 = arg(4).map_or(0, |text| text.parse().unwrap());
    for name in Profile::NAMES.iter().filter(|name| arg(2).is_none_or(|only| only == **name)) {
        let profile = Profile::by_name(name).unwrap();
        let costs = KernelCosts::Constant(cost);
        let virtual_options = VirtualOptions { profile, costs, ..VirtualOptions::default() };
        let capacities = Capacities {
            tasks: tasks + 100,
            arg_words: 0,
            edges: 3 * u64::from(tasks),
            image_bytes: 0,
            log_entries: 16,
            ..Capacities::default()
        };
        let options = Options { aic: 24, aiv: 48, capacities, ..Options::default() };
        for graph in ["chain", "independent", "fork_join", "wavefront"] {
            if arg(3).is_some_and(|only| only != graph) {
                continue;
            }
            let mut device = Device::new(Hosting::Virtual(virtual_options), options, Shapes);
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
                "{name} {graph}: {:.2} M tasks/s, {:.0} ns/task, {:.2} steps/task, graph {} us, bound {} us (critical path {} us), AIV overhead {:.1} %, used {:.1} %, {:.0} AICPU ns/task, hash {:016x}",
                report.tasks as f64 / best / 1e6,
                best * 1e9 / report.tasks as f64,
                steps as f64 / report.tasks as f64,
                report.graph_ns / 1000,
                report.lower_bound_ns() / 1000,
                report.critical_path_ns / 1000,
                100.0 * report.overhead(CoreKind::AIV),
                100.0 * report.utilisation(CoreKind::AIV),
                report.aicpu_ns_per_task(1),
                report.trace_hash,
            );
        }
    }
}
