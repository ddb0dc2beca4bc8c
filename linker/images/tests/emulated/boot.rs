//! The image boots, and runs graphs of both variants in every mode.

use std::time::Duration;

use crate::built::Images;
use crate::graphs::Pattern;
use crate::session::{Cores, Tables};
use crate::session::{Session, Setup};
use pto_abi::RuntimeVariant;
use pto_aicore_kernels::func;
use pto_examples::host::{Program, RunMode};

const PATTERNS: [Pattern; 4] = [
    Pattern::Chain(200),
    Pattern::Independent(300),
    Pattern::ForkJoin(24, 8),
    Pattern::Wavefront(16, 16),
];

#[test]
fn every_graph_in_every_mode() {
    runs_graphs_in(Session::start(5), RunMode::of(Program::Graph));
}

/// The image for size has sequences of instructions as functions of their own, and no streaming runtime.
#[test]
fn every_graph_on_an_image_for_size() {
    let ways = RunMode::of(Program::Graph);
    let ways = ways.filter(|way| way.variant != RuntimeVariant::TENSORMAP_AND_RINGBUFFER);
    runs_graphs_in(Session::start_image(Images::get().scheduler.clone(), 5), ways);
}

fn runs_graphs_in(mut session: Session, ways: impl Iterator<Item = RunMode>) {
    println!("boot: {:?}", session.machine.boot_times());
    for way in ways {
        for pattern in PATTERNS {
            let RunMode { variant, build_mode: mode, fanout } = way;
            let setup = Setup { variant, mode, fanout, ..Setup::default() };
            let ended = session.run(pattern, &setup).unwrap_or_else(|e| panic!("{e}"));
            println!("{way} {pattern:?}: {:?}", ended.time);
            let console = session.machine.console();
            assert_eq!(ended.fault, None, "{pattern:?} {setup:?} {:?}\n{console}", ended.logs);
            assert_eq!(ended.wrong, [""; 0], "{pattern:?} {setup:?}");
        }
    }
    assert!(session.machine.exceptions().is_empty());
    for vcpu in 0..session.machine.vcpus() {
        let used = session.machine.stack_used(vcpu);
        println!("vCPU {vcpu}: stack {used} bytes");
        assert!(used < 64 << 10, "vCPU {vcpu}: stack {used} bytes");
    }
}

#[test]
fn cores_stay_in_service_between_runs() {
    let mut session = Session::start(7);
    let setup = Setup {
        instances: 3,
        workers: [2, 2],
        func_id: func::DAG_NODE_AIC.0,
        cores: Cores::Keep,
        ..Setup::default()
    };
    for round in 0..20 {
        let ended = session.run(PATTERNS[round % 4], &setup).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(ended.fault, None);
        assert_eq!(ended.wrong, [""; 0]);
    }
    session.machine.let_go(Duration::from_secs(5)).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn kernels_run_wherever_they_are_copied() {
    let mut session = Session::start(5);
    for _ in 0..3 {
        session.take(12_345);
        session.copy_kernels();
        let ended = session.run(PATTERNS[3], &Setup::default()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((ended.fault, ended.wrong), (None, Vec::new()));
    }
}

/// All lengths up to 72 bytes at all places in eight: the image has calls of its own for them.
#[test]
fn memory_is_copied_and_filled() {
    let mut session = Session::start(5);
    let setup =
        Setup { variant: Pattern::Memory.variant(), tables: Tables::None, ..Setup::default() };
    let ended = session.run(Pattern::Memory, &setup).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((ended.fault, ended.completed), (None, 0), "{:?}", ended.logs);
}

/// The boot stays far below a second, whatever the machine's size (the budget is generous: other tests run).
#[test]
fn boots_quickly() {
    for vcpus in [1, 2, 4, 16, 40] {
        let times = Session::start(vcpus).machine.boot_times();
        println!("{vcpus} vCPUs: {:?}, of which in the guest {:?}", times.total, times.guest);
        assert!(times.total < Duration::from_secs(5));
    }
}
