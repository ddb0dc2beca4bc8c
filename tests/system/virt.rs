//! The device `virt`: every example in every variant, build mode and fanout strategy gives the bits of
//! a2a3sim; and whatever goes wrong ends in a fault, with the device in order again.
//!
//! Needs QEMU and a compiler for AArch64; both are brought where they are missing (see `pto_image_build`), and where
//! they cannot be had these tests fail and say why.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pto_examples::host::{self, Inputs, Params, Prepared, Program, Tensor};
use pto_host::abi::{CoreKind, FanoutStrategy, Fault, FuncId, RuntimeVariant};
use pto_host::fw::{Image, ImageKind};
use pto_host::graph::{GraphBuilder, TaskSpec};
use pto_host::{
    Capacities, Device, DeviceOptions, Error, FaultReport, HostGraph, RunOptions,
    VirtDeviceOptions, Work, func,
};
use pto_image_build::{Profile, Request, packages};

/// Small, because a vCPU is slower than a core: all parts of the examples, little of each.
const SIZES: &[(&str, &[(&str, &str)])] = &[
    ("vector_example", &[("rows", "20"), ("cols", "70")]),
    ("matmul", &[("m", "70"), ("n", "33"), ("k", "90")]),
    (
        "paged_attention",
        &[
            ("batch", "3"),
            ("heads", "4"),
            ("kv_heads", "2"),
            ("head_dim", "24"),
            ("block_size", "16"),
            ("max_context", "70"),
        ],
    ),
    ("random_dag", &[("tasks", "600"), ("max_predecessors", "9")]),
    ("cholesky", &[("n", "50"), ("tile", "16")]),
    (
        "newton_solve",
        &[("batch", "3"), ("n", "20"), ("tile", "16"), ("columns", "3"), ("wave", "2")],
    ),
    (
        "decoder_layer",
        &[
            ("batch", "2"),
            ("hidden", "40"),
            ("intermediate", "70"),
            ("heads", "4"),
            ("kv_heads", "2"),
            ("head_dim", "8"),
            ("block_size", "8"),
            ("max_context", "30"),
            ("tile_n", "16"),
            ("tile_k", "24"),
        ],
    ),
    (
        "moe_layer",
        &[
            ("tokens", "5"),
            ("hidden", "24"),
            ("intermediate", "20"),
            ("experts", "8"),
            ("top_k", "2"),
            ("tile_n", "16"),
        ],
    ),
    ("task_shapes", &[("tasks", "24"), ("layers", "9"), ("rows", "6"), ("together", "2")]),
];

/// Firmware and kernels, built once.
fn images() -> &'static (Image, Image) {
    static IMAGES: OnceLock<(Image, Image)> = OnceLock::new();
    IMAGES.get_or_init(|| {
        let say = |sentence: &str| println!("{sentence}");
        packages::install(&[packages::QEMU], &say).unwrap_or_else(|why| panic!("{why}"));
        let request = Request { profile: Profile::Release, ..Request::default() };
        let built = pto_image_build::build(&request, &say);
        let built = built.unwrap_or_else(|error| panic!("{error}"));
        let of = |kind| {
            let found = built.iter().find(|built| built.image.kind == kind);
            found.expect("both are built").image.clone()
        };
        (of(ImageKind::Virt), of(ImageKind::Kernels))
    })
}

fn open(options: &VirtDeviceOptions) -> Device {
    let (firmware, kernels) = images();
    let mut device =
        Device::open_virt(options, firmware, kernels).unwrap_or_else(|error| panic!("{error}"));
    device.register_library().expect("the blob holds the library");
    device
}

/// A machine for tests of faults.
fn small() -> Device {
    open(&VirtDeviceOptions {
        aicpu: 2,
        aic: 0,
        aiv: 2,
        gm_bytes: 64 << 20,
        ..VirtDeviceOptions::default()
    })
}

fn prepare(name: &str, device: &Device) -> Prepared {
    let example = host::find(name).expect("the example exists");
    let (_, sizes) = SIZES.iter().find(|(example, _)| *example == name).expect("it has sizes");
    let mut params = Params::defaults(example.params());
    for (param, value) in *sizes {
        params.set(param, value).expect("the size is accepted");
    }
    host::resolve(example, &mut params, &Inputs::default()).expect("the sizes agree");
    example.prepare(&params, &Inputs::default(), device).expect("the device has room")
}

/// What the simulator makes of an example.
fn on_simulator(name: &str) -> Vec<(&'static str, Tensor)> {
    let mut device = host::open_sim(DeviceOptions::default()).expect("it opens");
    device.register_library().expect("the library registers");
    let mut prepared = prepare(name, &device);
    prepared.reset().expect("the outputs are reset");
    let variant = host::find(name).expect("the example exists").program().variants()[0];
    let options =
        RunOptions { capacities: capacities(&prepared, variant), ..RunOptions::default() };
    let report = device.run(prepared.work(variant), &options);
    report.unwrap_or_else(|error| panic!("{error}"));
    prepared.outputs().expect("the outputs are read")
}

/// Those of the whole graph, or of a window that holds all of it.
fn capacities(prepared: &Prepared, variant: RuntimeVariant) -> Capacities {
    match variant {
        RuntimeVariant::TENSORMAP_AND_RINGBUFFER => prepared.capacities().streamed_whole(),
        _ => prepared.capacities(),
    }
}

fn in_every_way(name: &str) {
    let expected = on_simulator(name);
    let mut device = open(&VirtDeviceOptions::default());
    println!("{name}: {:?}", device.start_times());
    let mut prepared = prepare(name, &device);
    let program = host::find(name).expect("the example exists").program();
    for &variant in program.variants() {
        for &build_mode in program.build_modes() {
            for &fanout in FanoutStrategy::ALL {
                let way = format!("{name}, {variant}, {build_mode}, {fanout}");
                prepared.reset().expect("the outputs are reset");
                let capacities = capacities(&prepared, variant);
                let options =
                    RunOptions { build_mode, fanout, capacities, ..RunOptions::default() };
                let image = (variant == RuntimeVariant::HOST_BUILD_GRAPH)
                    .then(|| prepared.build_on_host(&device).expect("the host builds the graph"));
                let work = match &image {
                    Some(image) => Work::HostGraph(image),
                    None => prepared.work(variant),
                };
                let report = device.run(work, &options);
                let report = report.unwrap_or_else(|error| panic!("{way}: {error}"));
                if program != Program::TensorsAndValues {
                    assert_eq!(report.tasks, prepared.size().tasks, "{way}");
                }
                if report.stream.is_none() {
                    assert_eq!(report.edges, prepared.size().edges, "{way}");
                }
                let verdict = prepared.verify().expect("the outputs are read");
                assert!(verdict.passed(), "{way}: {verdict:?}");
                let outputs = prepared.outputs().expect("the outputs are read");
                assert!(outputs == expected, "{way}: other bits than on a2a3sim");
            }
        }
    }
}

#[test]
fn vector_example_in_every_way() {
    in_every_way("vector_example");
}

#[test]
fn matmul_in_every_way() {
    in_every_way("matmul");
}

#[test]
fn paged_attention_in_every_way() {
    in_every_way("paged_attention");
}

#[test]
fn random_dag_in_every_way() {
    in_every_way("random_dag");
}

#[test]
fn cholesky_in_every_way() {
    in_every_way("cholesky");
}

#[test]
fn newton_solve_in_every_way() {
    in_every_way("newton_solve");
}

#[test]
fn decoder_layer_in_every_way() {
    in_every_way("decoder_layer");
}

#[test]
fn moe_layer_in_every_way() {
    in_every_way("moe_layer");
}

#[test]
fn task_shapes_in_every_way() {
    in_every_way("task_shapes");
}

#[test]
fn no_example_is_left_out() {
    let names: Vec<_> = host::EXAMPLES.iter().map(|example| example.name()).collect();
    assert_eq!(names, SIZES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
}

fn budgets() -> RunOptions {
    RunOptions {
        aicpu_instances: 2,
        task_budget: Duration::from_millis(300),
        stall_budget: Duration::from_millis(500),
        bring_up_budget: Duration::from_secs(2),
        ..RunOptions::default()
    }
}

/// One task, run on its own; the fault that it ends in.
fn one_task(device: &mut Device, func_id: FuncId, args: &[u64]) -> (Fault, Box<FaultReport>) {
    let mut graph = HostGraph::new(device, &[]);
    graph.submit(TaskSpec::new(func_id, CoreKind::AIV, args), &[]).expect("a task");
    let image = graph.finish().expect("a graph");
    let options = RunOptions { aicpu_instances: 1, ..budgets() };
    match device.run(Work::HostGraph(&image), &options) {
        Err(Error::Fault { fault, report }) => (fault, report),
        other => panic!("no fault: {other:?}"),
    }
}

/// The device still computes.
fn serves_on(device: &mut Device) {
    let (a, b) = (device.upload(&[2.0_f32; 64]), device.upload(&[3.0_f32; 64]));
    let (a, b) = (a.expect("room"), b.expect("room"));
    let sum = device.zeroed::<f32>(64).expect("room");
    let mut graph = HostGraph::new(device, &[]);
    let args = [a.address().0, b.address().0, sum.address().0, 64];
    graph.submit(TaskSpec::new(func::ADD, CoreKind::AIV, &args), &[]).expect("a task");
    let image = graph.finish().expect("a graph");
    let options = RunOptions { aicpu_instances: 1, ..budgets() };
    device.run(Work::HostGraph(&image), &options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(sum.read().expect("it is read"), [5.0; 64]);
}

#[test]
fn an_exception_in_a_kernel_is_a_fault_with_registers() {
    let mut device = small();
    let kept = device.upload(&[7_u32; 100]).expect("room");
    let unmapped = 0x3000;
    let args = [unmapped, unmapped, unmapped, 8];
    let (fault, report) = one_task(&mut device, func::ADD, &args);
    assert_eq!(fault, Fault::CORE_EXCEPTION);
    let epitaph = report.epitaph.expect("an epitaph");
    assert_eq!((epitaph.func_id, epitaph.task.slot), (func::ADD.0.into(), 0));
    let text = report.to_string();
    for part in ["kernel add", "a data access that is not allowed", "0x3000", "x0 ", "console"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    serves_on(&mut device);
    assert_eq!(kept.read().expect("it is read"), [7; 100]);
}

#[test]
fn a_kernel_that_never_returns_costs_its_machine_only() {
    let mut device = small();
    let kept = device.upload(&[7_u32; 100]).expect("room");
    let (before, start) = (device.process_id(), Instant::now());
    let (fault, report) = one_task(&mut device, func::SPIN_AIV, &[u64::MAX]);
    assert_eq!(fault, Fault::STALL_CORE, "{report}");
    assert!(report.to_string().contains("spin_aiv"), "{report}");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    serves_on(&mut device);
    assert_ne!(device.process_id(), before, "another machine");
    assert_eq!(kept.read().expect("it is read"), [7; 100]);
}

#[test]
fn a_builder_that_fails_or_is_not_there_is_a_fault() {
    let mut device = small();
    let mut run = |builder: &str, orch_args: &[u64]| {
        let result = device.run(Work::AicpuBuilder { builder, orch_args }, &budgets());
        match result {
            Err(Error::Fault { fault, report }) => (fault, report.to_string()),
            other => panic!("no fault: {other:?}"),
        }
    };
    let (fault, text) = run("nobody", &[]);
    assert_eq!(fault, Fault::BUILD_NO_BUILDER);
    assert!(text.contains("\"nobody\"; the firmware has: vector_example"), "{text}");
    let (fault, text) = run("matmul", &[]);
    assert_eq!(fault, Fault::BUILD_ORCH_ARGS, "{text}");
    serves_on(&mut device);
}

fn signal(process: u32, name: &str) {
    let status = Command::new("kill").args([name, &process.to_string()]).status();
    assert!(status.expect("kill is there").success());
}

/// A run that lasts, and a signal to its machine in the middle of it.
fn disturbed(device: &mut Device, name: &'static str) -> (Fault, Box<FaultReport>, Duration) {
    let process = device.process_id().expect("a machine");
    let disturber = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        signal(process, name);
    });
    let mut graph = HostGraph::new(device, &[]);
    let task = TaskSpec::new(func::SPIN_AIV, CoreKind::AIV, &[u64::MAX]);
    graph.submit(task, &[]).expect("a task");
    let image = graph.finish().expect("a graph");
    let start = Instant::now();
    let options =
        RunOptions { aicpu_instances: 1, task_budget: Duration::from_secs(60), ..budgets() };
    let result = device.run(Work::HostGraph(&image), &options);
    disturber.join().expect("the signal is sent");
    match result {
        Err(Error::Fault { fault, report }) => (fault, report, start.elapsed()),
        other => panic!("no fault: {other:?}"),
    }
}

#[test]
fn a_machine_that_is_killed_in_a_run_is_a_fault() {
    let mut device = small();
    let (fault, report, _) = disturbed(&mut device, "-KILL");
    assert_eq!(fault, Fault::FW_LOST);
    let text = report.to_string();
    assert!(text.contains("QEMU ended") && text.contains("signal"), "{text}");
    assert!(report.epitaph.is_some() && !report.arena_lost, "{text}");
    serves_on(&mut device);
}

#[test]
fn a_machine_that_hangs_is_a_fault_within_its_budget() {
    let mut device = small();
    let process = device.process_id().expect("a machine");
    let (fault, report, time) = disturbed(&mut device, "-STOP");
    assert_eq!(fault, Fault::FW_LOST, "{report}");
    assert!(time < Duration::from_secs(8), "{time:?}");
    assert!(!is_there(process), "the machine is gone");
    serves_on(&mut device);
}

fn is_there(process: u32) -> bool {
    PathBuf::from(format!("/proc/{process}")).exists()
}

#[test]
fn devices_do_not_disturb_each_other_and_leave_nothing() {
    let mut devices = [small(), small(), small()];
    let processes: Vec<_> = devices.iter().filter_map(Device::process_id).collect();
    let (fault, ..) = disturbed(&mut devices[0], "-KILL");
    assert_eq!(fault, Fault::FW_LOST);
    devices.iter_mut().for_each(serves_on);
    assert_eq!(devices[1].process_id(), Some(processes[1]));
    let now: Vec<_> = devices.iter().filter_map(Device::process_id).collect();
    assert!(now.iter().all(|process| is_there(*process)));
    drop(devices);
    assert!(processes.iter().chain(&now).all(|process| !is_there(*process)));
}

#[test]
fn what_cannot_be_opened_says_why() {
    let (firmware, kernels) = images();
    let refused = |options: &VirtDeviceOptions, firmware: &Image, kernels: &Image| {
        let opened = Device::open_virt(options, firmware, kernels);
        opened.expect_err("no device").to_string()
    };
    let options = VirtDeviceOptions::default();
    let text = refused(
        &VirtDeviceOptions { qemu: "qemu-of-nobody".into(), ..options.clone() },
        firmware,
        kernels,
    );
    assert!(text.contains("apt-get install qemu-system-arm"), "{text}");
    let text = refused(&VirtDeviceOptions { aiv: 60, ..options.clone() }, firmware, kernels);
    assert!(text.contains("at most 64"), "{text}");
    let text =
        refused(&VirtDeviceOptions { gm_bytes: 9 << 30, ..options.clone() }, firmware, kernels);
    assert!(text.contains("8 GiB"), "{text}");
    assert!(refused(&options, kernels, firmware).contains("virt cannot have"));
}

#[test]
fn a_function_of_this_process_is_no_kernel_there() {
    extern "C" fn nothing(_: *const u64) {}
    let mut device = small();
    let kernel = pto_host::Kernel::from_fn("mine", CoreKind::AIV, nothing);
    let refused = device.register_kernel(FuncId(500), kernel).unwrap_err().to_string();
    assert!(refused.contains("cannot run on virt"), "{refused}");
}
