//! Timelines of runs on the device `qemu`: the image that records does so in every variant and with both fanout
//! strategies, whole and in order; one that does not says so.

use std::sync::OnceLock;

use pto_examples::host::{self, Prepared, Program, RunMode};
use pto_host::abi::trace::TraceOwner;
use pto_host::abi::{BuildMode, FanoutStrategy, RuntimeVariant};
use pto_host::fw::{Image, ImageKind, Tracing};
use pto_host::timeline::Analysis;
use pto_host::{
    Capacities, Device, QemuDeviceOptions, RunOptions, RunReport, TraceOptions, WhenFull, Work,
};
use pto_image_build::{Profile, Request, packages};

use crate::timelines::whole_and_in_order;

/// Firmware and kernels.
fn images(tracing: Tracing) -> (Image, Image) {
    let say = |sentence: &str| println!("{sentence}");
    packages::install(&[packages::QEMU], &say).unwrap_or_else(|why| panic!("{why}"));
    let request = Request { profile: Profile::Release, tracing, ..Request::default() };
    let built = pto_image_build::build(&request, &say).unwrap_or_else(|error| panic!("{error}"));
    let of = |kind| {
        let found = built.iter().find(|built| built.image.kind == kind);
        found.expect("both are built").image.clone()
    };
    (of(ImageKind::Qemu), of(ImageKind::Kernels))
}

fn open() -> Device {
    static IMAGES: OnceLock<(Image, Image)> = OnceLock::new();
    let (firmware, kernels) = IMAGES.get_or_init(|| images(Tracing::On));
    assert_eq!(firmware.tracing, Tracing::On);
    let opened = Device::open_qemu(&QemuDeviceOptions::default(), firmware, kernels);
    let mut device = opened.unwrap_or_else(|error| panic!("{error}"));
    device.register_library().expect("the blob holds the library");
    device
}

fn prepare(device: &Device) -> Prepared {
    prepare_one(device, "random_dag", &[("tasks", "500"), ("max_predecessors", "7")])
}

fn prepare_one(device: &Device, name: &str, sizes: &[(&str, &str)]) -> Prepared {
    let example = host::find(name).expect("the example exists");
    host::prepare(example, sizes, device).expect("the sizes are accepted")
}

fn run(
    device: &mut Device,
    prepared: &mut Prepared,
    way: RunMode,
    options: &RunOptions,
) -> RunReport {
    let result = way.run(device, prepared, options);
    let report = result.unwrap_or_else(|error| panic!("{way} {options:?}: {error}"));
    assert!(prepared.verify().expect("the outputs are read").passed());
    report
}

/// A variant with schedulers that run meanwhile.
const fn concurrent(variant: RuntimeVariant) -> RunMode {
    RunMode { variant, build_mode: BuildMode::CONCURRENT, fanout: FanoutStrategy::LOCK_FREE }
}

#[test]
fn every_variant_and_strategy_is_traced() {
    let mut device = open();
    let mut prepared = prepare(&device);
    for way in RunMode::of(Program::Graph) {
        let case = way.to_string();
        let traced = RunOptions { trace: Some(TraceOptions::default()), ..RunOptions::default() };
        // Cores stay in service: what they record changes from run to run.
        let plain = RunOptions { trace: None, ..traced.clone() };
        assert!(run(&mut device, &mut prepared, way, &plain).trace.is_none(), "{case}");
        let report = run(&mut device, &mut prepared, way, &traced);
        let trace = report.trace.expect("the run was traced");
        let size = prepared.size();
        assert_eq!(trace.tasks.len() as u64, size.tasks, "{case}");
        assert_eq!(trace.edges.len() as u64, size.edges, "{case}");
        assert_eq!(trace.dropped(), 0, "{case}: {:?}", trace.lanes);
        assert_eq!((trace.lanes.len(), trace.cores.len()), (4 + 12, 12), "{case}");
        whole_and_in_order(&trace, &case);
        let analysis = Analysis::of(&trace).expect("it can be analysed");
        assert!(analysis.over_bound() >= 1.0, "{case}");
    }
}

#[test]
fn full_rings_say_what_they_dropped() {
    let mut device = open();
    let mut prepared = prepare(&device);
    for when_full in [WhenFull::DropOldest, WhenFull::KeepOldest] {
        let trace = TraceOptions { instance_events: Some(64), core_events: Some(8), when_full };
        let options = RunOptions { trace: Some(trace), ..RunOptions::default() };
        let report = run(
            &mut device,
            &mut prepared,
            concurrent(RuntimeVariant::AICPU_BUILD_GRAPH),
            &options,
        );
        let trace = report.trace.expect("the run was traced");
        let lane_of = |owner| trace.lanes.iter().find(|lane| lane.owner == owner);
        let builder = lane_of(TraceOwner::Instance(0)).expect("instance 0 has a lane");
        assert!(builder.read == 64 && builder.dropped >= 1000, "{builder:?}");
        assert!(trace.lanes.iter().filter(|lane| lane.dropped > 0).count() > 4);
    }
}

/// The host reads the machine's memory while the run lasts.
#[test]
fn full_rings_that_wait_lose_nothing() {
    let mut device = open();
    let mut prepared = prepare(&device);
    let trace =
        TraceOptions { instance_events: Some(64), core_events: Some(8), when_full: WhenFull::Wait };
    let options = RunOptions { trace: Some(trace), ..RunOptions::default() };
    for &variant in RuntimeVariant::ALL {
        let report = run(&mut device, &mut prepared, concurrent(variant), &options);
        let trace = report.trace.expect("the run was traced");
        assert_eq!(trace.dropped(), 0, "{variant}: {:?}", trace.lanes);
        assert_eq!(trace.edges.len() as u64, prepared.size().edges, "{variant}");
        whole_and_in_order(&trace, variant.name());
    }
}

/// A stream of every shape gives its slots to one task after the other.
#[test]
fn a_stream_longer_than_its_window_is_traced_as_a_whole() {
    let mut device = open();
    let sizes = [("tasks", "24"), ("layers", "20"), ("rows", "6"), ("together", "2")];
    let mut prepared = prepare_one(&device, "task_shapes", &sizes);
    prepared.reset().expect("the outputs are reset");
    let held = Capacities { tasks: 64, arg_words: 0, edges: 0, ..prepared.capacities() };
    let capacities = held.streamed_whole();
    assert_eq!(capacities.stream.window, 64);
    let trace = Some(TraceOptions { when_full: WhenFull::Wait, ..TraceOptions::default() });
    let options = RunOptions { trace, capacities, ..RunOptions::default() };
    let work = prepared.work(RuntimeVariant::TENSORMAP_AND_RINGBUFFER);
    let report = device.run(work, &options).unwrap_or_else(|error| panic!("{error}"));
    assert!(prepared.verify().expect("the outputs are read").passed());
    let trace = report.trace.expect("the run was traced");
    assert_eq!((trace.tasks.len(), trace.dropped()), (480, 0), "{:?}", trace.lanes);
    for task in &trace.tasks {
        let at = task.at;
        assert!(at.added.is_some() && at.added <= at.published && at.published <= at.completed);
        // One whose predicate is false is never dispatched.
        let own = [at.dispatched, at.started, at.finished];
        assert!(own.iter().all(Option::is_some) || own.iter().all(Option::is_none), "{task:?}");
        assert!(own.is_sorted() && own[2].is_none_or(|end| Some(end) <= at.completed), "{task:?}");
    }
    let cells: u64 = report.parts_run.iter().sum();
    assert_eq!(trace.runs().filter(|run| run.run.at.started.is_some()).count() as u64, cells);
    assert!(trace.edges.iter().all(|edge| edge.producer < edge.consumer));
}

#[test]
fn an_image_that_does_not_trace_says_so() {
    let (firmware, kernels) = images(Tracing::Off);
    let opened = Device::open_qemu(&QemuDeviceOptions::default(), &firmware, &kernels);
    let mut device = opened.unwrap_or_else(|error| panic!("{error}"));
    let options = RunOptions { trace: Some(TraceOptions::default()), ..RunOptions::default() };
    let work = Work::AicpuBuilder { builder: "chain", orch_args: &[] };
    let refused = device.run(work, &options).unwrap_err().to_string();
    assert!(refused.contains("pto fw build --tracing"), "{refused}");
}
