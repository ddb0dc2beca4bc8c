//! Runs that fail: the fault and its epitaph are right, and the device goes on.

use std::sync::Arc;

use pto_abi::runtime::NOBODY;
use pto_abi::symbol::symbol;
use pto_abi::{CoreKind, Fault, FuncId, TaskId};
use pto_aicore_kernels::func;
use pto_graph::{BuildError, GraphBuilder, TaskSpec};
use pto_sim_shim::LaunchOutcome;

use super::dag::Dag;
use super::ways::{check, for_every_hosting, named, options};
use crate::common::{Device, LaunchOptions};

fn empty_task() -> TaskSpec<'static> {
    TaskSpec::new(func::EMPTY_AIV, CoreKind::AIV, &[])
}

pub(crate) fn returns_a_code<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    graph.submit(empty_task(), &[])?;
    Err(BuildError::Failed(-41))
}

pub(crate) fn panics<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    for _ in 0..200 {
        graph.submit(empty_task(), &[])?;
    }
    panic!("the builder of the tests panics here, on purpose");
}

pub(crate) fn names_an_unknown_func<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    graph.submit(TaskSpec { func_id: FuncId(1024), ..empty_task() }, &[])?;
    Ok(())
}

pub(crate) fn names_a_missing_kernel<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    graph.submit(TaskSpec { func_id: FuncId(999), ..empty_task() }, &[])?;
    Ok(())
}

pub(crate) fn adds_an_aiv_task<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    graph.submit(empty_task(), &[])?;
    Ok(())
}

pub(crate) fn adds_a_cycle<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let first = graph.submit(empty_task(), &[])?;
    let a = graph.add_task(empty_task())?;
    let b = graph.add_task(empty_task())?;
    for (producer, consumer) in [(first, a), (a, b), (b, a)] {
        graph.add_edge(producer, consumer)?;
    }
    graph.publish(a)?;
    graph.publish(b)?;
    Ok(())
}

pub(crate) fn forgets_to_publish<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let first = graph.submit(empty_task(), &[])?;
    let second = graph.add_task(empty_task())?;
    graph.add_edge(first, second)?;
    Ok(())
}

/// What a builder must end in: its fault, and what `check` finds in the epitaph.
struct FaultCase {
    builder: &'static str,
    fault: Fault,
    task: u32,
    func_id: u32,
    detail: [u64; 2],
}

const CASES: &[FaultCase] = &[
    FaultCase {
        builder: "code",
        fault: Fault::BUILD_FAILED,
        task: NOBODY,
        func_id: NOBODY,
        detail: [u64::MAX - 40, 0],
    },
    FaultCase {
        builder: "unknown_func",
        fault: Fault::BUILD_UNKNOWN_FUNC,
        task: 0,
        func_id: 1024,
        detail: [1024, 1023],
    },
    FaultCase {
        builder: "missing_kernel",
        fault: Fault::BUILD_KERNEL_MISSING,
        task: 0,
        func_id: 999,
        detail: [999, 0],
    },
    FaultCase {
        builder: "not_published",
        fault: Fault::BUILD_NOT_PUBLISHED,
        task: 1,
        func_id: NOBODY,
        detail: [0, 0],
    },
    FaultCase {
        builder: "nobody",
        fault: Fault::BUILD_NO_BUILDER,
        task: NOBODY,
        func_id: NOBODY,
        detail: [symbol("nobody"), 0],
    },
];

/// The fault is the run's, the epitaph is that of this fault, and the device goes on.
#[track_caller]
fn check_fault(device: &mut Device, outcome: &LaunchOutcome, fault: Fault, good: &Arc<Dag>) {
    assert_eq!(outcome.fault, Some(fault));
    assert!(!outcome.arena_lost);
    assert!(device.arena.fault().epitaph_is_sealed());
    assert_eq!(device.arena.epitaph().fault, fault.code());
    check(device, good);
    check(device, good);
}

#[test]
fn a_builder_that_fails() {
    let good = Dag::random(31, 60);
    for_every_hosting(options(), |device| {
        for case in CASES {
            named(case.builder, || {
                let outcome = device.run(case.builder, &[]);
                let epitaph = device.arena.epitaph();
                assert_eq!(outcome.fault, Some(case.fault));
                assert_eq!(epitaph.instance, 0, "the builder raised it");
                let found = (epitaph.task.slot, epitaph.func_id, epitaph.detail);
                assert_eq!(found, (case.task, case.func_id, case.detail));
                check_fault(device, &outcome, case.fault, &good);
            });
        }
    });
}

#[test]
fn a_builder_that_panics() {
    let good = Dag::random(32, 60);
    for_every_hosting(options(), |device| {
        for _ in 0..3 {
            let start = std::time::Instant::now();
            let outcome = device.run("panics", &[]);
            assert!(
                start.elapsed().as_secs() < 5,
                "the run does not wait for an instance that is gone"
            );
            check_fault(device, &outcome, Fault::RUN_PANIC, &good);
        }
    });
}

#[test]
fn a_builder_that_refuses_its_words() {
    let good = Dag::random(33, 30);
    for_every_hosting(options(), |device| {
        let outcome = device.run("dag", &[]);
        check_fault(device, &outcome, Fault::BUILD_ORCH_ARGS, &good);
        let outcome = device.run("dag", &[u64::MAX]);
        check_fault(device, &outcome, Fault::BUILD_ORCH_ARGS, &good);
    });
}

#[test]
fn more_schedulers_than_clusters() {
    let good = Dag::random(34, 30);
    for_every_hosting(options(), |device| {
        let outcome = device.run_tampered("an_aiv_task", &[], |device| {
            let mut config = device.arena.config();
            config.aicpu_instances = 8;
            device.arena.set_config(&config);
        });
        assert_eq!(device.arena.epitaph().detail, [6, 7], "clusters, schedulers");
        check_fault(device, &outcome, Fault::SCHEDULE_NO_CORES, &good);
    });
}

#[test]
fn no_core_of_the_kind() {
    let good = Dag::random(35, 30);
    for_every_hosting(options(), |device| {
        let outcome = device.run_tampered("an_aiv_task", &[], |device| {
            let mut config = device.arena.config();
            config.worker_count = device.options.aic;
            device.arena.set_config(&config);
        });
        let detail = device.arena.epitaph().detail;
        assert_eq!(detail[0], u64::from(CoreKind::AIV.get()));
        check_fault(device, &outcome, Fault::BUILD_NO_CORE_OF_KIND, &good);
    });
}

#[test]
fn a_wrong_header_is_refused_and_the_next_launch_is_not() {
    let good = Dag::random(36, 30);
    for_every_hosting(options(), |device| {
        check(device, &good);
        let outcome = device.run_tampered("dag", &[0], |device| {
            let mut header = device.arena.header();
            header.layout_hash = 0;
            device.arena.set_header(&header);
        });
        check_fault(device, &outcome, Fault::RUNTIME_LAYOUT_HASH, &good);
    });
}

#[test]
fn a_cycle_is_a_deadlock_that_is_named() {
    let good = Dag::random(37, 30);
    for_every_hosting(LaunchOptions { stall_budget_ms: 150, ..options() }, |device| {
        let outcome = device.run("cycle", &[]);
        let epitaph = device.arena.epitaph();
        assert_eq!(outcome.fault, Some(Fault::STALL_DEADLOCK));
        assert_eq!((epitaph.added, epitaph.published, epitaph.completed), (3, 3, 1));
        assert_eq!((epitaph.blocked_count, epitaph.busy_cores), (2, 0));
        let named: Vec<_> = epitaph.blocked[..2].iter().map(|b| (b.task, b.producer)).collect();
        assert_eq!(named, [(1, 2), (2, 1)]);
        assert!(epitaph.since_ns > 150_000_000 && epitaph.task != TaskId::NONE);
        check_fault(device, &outcome, Fault::STALL_DEADLOCK, &good);
    });
}

#[test]
fn a_graph_that_does_not_fit() {
    let good = Dag::random(38, 30);
    let large = Dag::random(38, 5_101);
    for_every_hosting(options(), |device| {
        let outcome = device.run("dag", &[large.register()]);
        check_fault(device, &outcome, Fault::BUILD_TASKS_FULL, &good);
    });
}
