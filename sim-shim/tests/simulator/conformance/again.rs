//! Graph images: what is in the arena after loading, and that it runs again without being loaded.

use std::sync::Arc;

use pto_abi::kinds::{RunFlags, TaskState};
use pto_abi::runtime::region;
use pto_abi::sync::Ordering::Relaxed;
use pto_abi::task::CLOSED;
use pto_abi::{CoreKind, Fault, RuntimeVariant};
use pto_aicpu_fw::fanout::ConsumerWalk;
use pto_sim_shim::LaunchOutcome;

use super::dag::{self, Dag};
use super::image::bytes_of;
use super::ways::{check, for_every_hosting, options, run_image};
use crate::common::{Device, LaunchOptions};

fn host_builds() -> LaunchOptions {
    LaunchOptions { variant: RuntimeVariant::HOST_BUILD_GRAPH, ..options() }
}

/// Runs the loaded image again, after `tamper`.
fn run_again(device: &mut Device, tamper: impl FnOnce(&Device)) -> LaunchOutcome {
    device.run_tampered("", &[], |device| {
        let mut config = device.arena.config();
        config.flags |= RunFlags::RUN_AGAIN.bits();
        device.arena.set_config(&config);
        tamper(device);
    })
}

/// More consumers than a line and a chunk hold, more producers than are read at once; many tasks; none; some of both kinds.
fn graphs() -> Vec<Arc<Dag>> {
    let wide = dag::fork_join(3, 150);
    let mut random: Vec<Arc<Dag>> = (0..4).map(|seed| Dag::random(seed, 700)).collect();
    random.push(Dag::new(wide, CoreKind::ALL));
    random.push(Dag::new(vec![Vec::new(); 5_000], CoreKind::ALL));
    random.push(Dag::new(dag::chain(100), CoreKind::ALL));
    random
}

/// The edges that are in the arena, from both sides.
fn check_lines(device: &Device, dag: &Dag) {
    let regions = device.arena.regions();
    let tasks = device.arena.tasks(regions[region::TASKS]).unwrap();
    let chunks = device.arena.chunks(regions[region::EDGES]).unwrap();
    let mut expected = vec![Vec::new(); dag.nodes()];
    for (consumer, producers) in (0..).zip(dag.producers()) {
        let task = &tasks[consumer as usize];
        assert_eq!(task.edges_in.load(Relaxed) as usize, producers.len(), "task {consumer}");
        producers.iter().for_each(|producer| expected[*producer as usize].push(consumer));
    }
    for (task, expected) in tasks.iter().zip(&mut expected) {
        let mut walk = ConsumerWalk::new(task.fanout.load(Relaxed) & !CLOSED);
        let mut found: Vec<u32> = std::iter::from_fn(|| walk.next(task, chunks)).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, *expected);
    }
}

#[test]
fn what_is_loaded_is_what_the_image_says_and_runs_again() {
    for_every_hosting(host_builds(), |device| {
        for dag in graphs() {
            check(device, &dag);
            check_lines(device, &dag);
            for _ in 0..3 {
                dag.reset();
                let outcome = run_again(device, |_| {});
                assert_eq!(outcome.fault, None, "{:?}", device.arena.epitaph());
                dag.check();
                let counts = &device.arena.instances()[0];
                assert_eq!(counts.added.load(Relaxed), dag.nodes() as u64);
                assert_eq!(counts.published.load(Relaxed), dag.nodes() as u64);
                assert_eq!(counts.edges.load(Relaxed), dag.edges() as u64);
            }
            check_lines(device, &dag);
        }
    });
}

#[track_caller]
fn check_refused(device: &mut Device, fault: Fault, tamper: impl FnOnce(&Device)) {
    let before = device.tasks_run();
    let outcome = run_again(device, tamper);
    assert_eq!((outcome.fault, outcome.arena_lost), (Some(fault), false));
    assert_eq!(device.arena.epitaph().fault, fault.code());
    assert_eq!(device.tasks_run(), before, "nothing ran");
}

#[test]
fn what_does_not_stand_does_not_run_again() {
    let (one, other) = (Dag::random(5, 60), Dag::random(6, 60));
    for_every_hosting(host_builds(), |device| {
        let image = bytes_of(&other.parts());
        let write = |device: &Device| {
            let mut regions = device.arena.regions();
            regions[region::GRAPH].bytes = image.len() as u64;
            device.arena.window().write_bytes(regions[region::GRAPH].offset, &image).unwrap();
            device.arena.set_regions(&regions);
        };
        // Fresh memory.
        check_refused(device, Fault::GRAPH_NOT_LOADED, write);
        check(device, &one);
        // Another image where that of `one` was.
        check_refused(device, Fault::GRAPH_NOT_LOADED, write);
        // It differed from `one` before it was lost.
        check(device, &one);
        // A task that the run before has not completed.
        check_refused(device, Fault::GRAPH_NOT_LOADED, |device| {
            let tasks = device.arena.tasks(device.arena.regions()[region::TASKS]).unwrap();
            tasks[7].state.store(TaskState::DISPATCHED.get(), Relaxed);
        });
        assert_eq!(device.arena.epitaph().task.slot, 7);
        assert_eq!(device.arena.epitaph().detail, [3, 4]);
        // It fell, so that it does not stand.
        check_refused(device, Fault::GRAPH_NOT_LOADED, |_| {});
        check(device, &other);
        assert_eq!(run_again(device, |_| {}).fault, None);
        // Another variant uses the arena.
        device.options.variant = RuntimeVariant::AICPU_BUILD_GRAPH;
        check(device, &one);
        check_refused(device, Fault::RUNTIME_FLAGS, |_| {});
        device.options.variant = RuntimeVariant::HOST_BUILD_GRAPH;
        check_refused(device, Fault::GRAPH_NOT_LOADED, |_| {});
        let outcome = run_image(device, &image);
        assert_eq!(outcome.fault, None);
    });
}
