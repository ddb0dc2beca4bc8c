//! The ways to run a graph, and the check that it ran as it should.

use std::sync::Arc;

use pto_abi::arena::Capacities;
use pto_abi::handshake::Handshake;
use pto_abi::runtime::region;
use pto_abi::sync::Ordering;
use pto_abi::{BuildMode, FanoutStrategy, RuntimeVariant};
use pto_sim_shim::virtual_time::{KernelCosts, VirtualOptions};
use pto_sim_shim::{Hosting, LaunchOutcome};

use super::ConformanceBuilders;
use super::dag::Dag;
use super::image::bytes_of;
use crate::common::{Device, LaunchOptions, hostings};

/// Enough for every graph of these tests.
pub(crate) const CAPACITIES: Capacities = Capacities {
    tasks: 5_100,
    arg_words: 6 * 5_100,
    edges: 12_000,
    image_bytes: 1 << 20,
    log_entries: 64,
    trace: pto_abi::trace::TraceCapacities::OFF,
    stream: pto_abi::stream::StreamCapacities::OFF,
};

/// Options with room for every graph.
pub(crate) fn options() -> LaunchOptions {
    LaunchOptions { capacities: CAPACITIES, ..LaunchOptions::default() }
}

/// A device of these tests.
pub(crate) fn device(hosting: Hosting, options: LaunchOptions) -> Device {
    Device::new(hosting, options, ConformanceBuilders)
}

/// Runs `body` on a fresh device in each way: hosting x fanout strategy x build mode x variant.
pub(crate) fn for_every_way(body: impl Fn(&mut Device)) {
    let ways = hostings().into_iter().flat_map(|hosting| {
        let fanouts = FanoutStrategy::ALL.iter();
        fanouts.flat_map(move |fanout| {
            let modes = BuildMode::ALL.iter();
            modes.flat_map(move |mode| {
                RuntimeVariant::ALL.iter().map(move |variant| (hosting, *fanout, *mode, *variant))
            })
        })
    });
    for (hosting, fanout, build_mode, variant) in ways {
        let mut device =
            device(hosting, LaunchOptions { fanout, build_mode, variant, ..options() });
        named(&format!("{hosting}, {fanout}, {build_mode}, {variant}"), || body(&mut device));
    }
}

/// Runs `body` on a fresh device in each hosting mode.
pub(crate) fn for_every_hosting(options: LaunchOptions, body: impl Fn(&mut Device)) {
    for_every_hosting_with(VirtualOptions::default().costs, options, body);
}

/// The same, where kernels take as long in virtual time.
pub(crate) fn for_every_hosting_with(
    costs: KernelCosts,
    options: LaunchOptions,
    body: impl Fn(&mut Device),
) {
    for hosting in hostings() {
        let hosting = match hosting {
            Hosting::Virtual(virtual_time) => {
                Hosting::Virtual(VirtualOptions { costs, ..virtual_time })
            }
            other => other,
        };
        let mut device = device(hosting, options);
        named(&hosting.to_string(), || body(&mut device));
    }
}

/// Says which way it was when `body` fails.
pub(crate) fn named(way: &str, body: impl FnOnce()) {
    let body = std::panic::AssertUnwindSafe(body);
    if let Err(panic) = std::panic::catch_unwind(body) {
        eprintln!("that was: {way}");
        std::panic::resume_unwind(panic);
    }
}

/// Runs `dag` by the device's variant.
pub(crate) fn launch(device: &mut Device, dag: &Arc<Dag>) -> LaunchOutcome {
    dag.reset();
    match device.options.variant {
        RuntimeVariant::HOST_BUILD_GRAPH => run_image(device, &bytes_of(&dag.parts())),
        _ => device.run("dag", &[dag.register()]),
    }
}

/// Runs `dag`: no fault, every node once, every value right, every core's count right.
#[track_caller]
pub(crate) fn check(device: &mut Device, dag: &Arc<Dag>) {
    let before = tasks_run(device);
    let outcome = launch(device, dag);
    assert_eq!(outcome.fault, None, "{:?}", device.arena.epitaph());
    assert!(!outcome.arena_lost);
    dag.check();
    let after = tasks_run(device);
    let ran = [after[0] - before[0], after[1] - before[1]];
    assert_eq!(ran, dag.nodes_of_kind(), "tasks that the AIC and the AIV cores count");
    let progress = device.arena.progress();
    assert_eq!(progress.outstanding.load(Ordering::Relaxed), 0);
}

/// Runs a graph image; the capacities must hold it.
pub(crate) fn run_image(device: &mut Device, image: &[u8]) -> LaunchOutcome {
    device.run_tampered("", &[], |device| {
        let mut regions = device.arena.regions();
        let graph = &mut regions[region::GRAPH];
        graph.bytes = image.len() as u64;
        device.arena.window().write_bytes(graph.offset, image).unwrap();
        device.arena.set_regions(&regions);
    })
}

/// Tasks that the AIC and the AIV cores report, since the arena was made.
fn tasks_run(device: &Device) -> [u64; 2] {
    let tasks = |lines: &[Handshake]| {
        lines.iter().map(|lines| lines.worker.tasks_run.load(Ordering::Relaxed)).sum()
    };
    let (aic, others) = device.arena.workers().split_at(device.options.aic as usize);
    [tasks(aic), tasks(others)]
}
