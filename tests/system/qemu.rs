//! The device `qemu`: every example in every variant, build mode and fanout strategy gives the bits of
//! a2a3sim; and whatever goes wrong ends in a fault, with the device in order again.
//!
//! Needs QEMU and a compiler for AArch64; both are brought where they are missing (see `pto_image_build`), and where
//! they cannot be had these tests fail and say why.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pto_examples::host::{self, Example, Inputs, Params, Prepared, RunMode};
use pto_examples::training_loop::{Layouts, Training, TrainingSizes};
use pto_examples::workload::WorkloadFile;
use pto_host::abi::{CoreKind, Fault, FuncId, RuntimeVariant};
use pto_host::fw::{Image, ImageKind};
use pto_host::graph::{Comparison, ElementType, GraphBuilder, TaskSpec};
use pto_host::session::HostBuffer;
use pto_host::stitch::{self, HostTensor, Stitcher};
use pto_host::workloads::Workload;
use pto_host::workloads::program::{
    BlockShape, BuilderReference, GraphArgument, GraphTask, OwnedPredicate, Program, ProgramBody,
    Role, TensorDescription, TensorElement, TensorLayout,
};
use pto_host::workloads::tile::DType;
use pto_host::{
    Device, DeviceOptions, Error, FaultReport, HostGraph, QemuDeviceOptions, RunOptions, RunReport,
    SessionOptions, Work, func,
};
use pto_image_build::{Profile, Request, packages};

use crate::ways::{self, Outputs};

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
        (of(ImageKind::Qemu), of(ImageKind::Kernels))
    })
}

fn open(options: &QemuDeviceOptions) -> Device {
    let (firmware, kernels) = images();
    let mut device =
        Device::open_qemu(options, firmware, kernels).unwrap_or_else(|error| panic!("{error}"));
    device.register_library().expect("the blob holds the library");
    device
}

/// A machine for tests of faults.
pub(crate) fn small() -> Device {
    open(&QemuDeviceOptions {
        aicpu: 2,
        aic: 0,
        aiv: 2,
        gm_bytes: 64 << 20,
        ..QemuDeviceOptions::default()
    })
}

fn prepare(example: &dyn Example, device: &Device) -> Prepared {
    // Little, because a vCPU is slower than a core.
    host::prepare(example, example.sizes().little, device).expect("the sizes are accepted")
}

/// What the simulator makes of an example.
fn on_simulator(example: &dyn Example) -> Outputs {
    let mut device = host::open_sim(DeviceOptions::default()).expect("it opens");
    device.register_library().expect("the library registers");
    let mut prepared = prepare(example, &device);
    let way = RunMode::of(example.program()).next().expect("there is a way");
    let report = way.run(&mut device, &mut prepared, &RunOptions::default());
    report.unwrap_or_else(|error| panic!("{error}"));
    prepared.outputs().expect("the outputs are read")
}

fn in_every_way(example: &dyn Example) {
    let mut expected = Some(on_simulator(example));
    let mut device = open(&QemuDeviceOptions::default());
    println!("{}: {:?}", example.name(), device.start_times());
    let mut prepared = prepare(example, &device);
    ways::in_every_way(example, &mut device, &mut prepared, &mut expected);
}

mod examples {
    pto_examples::examples! { [super::ways::test_each] }
}

/// The machine's AICPU expands plans, puts short calls together, and its cores execute tile kernels: partial tiles, functions of
/// elements, products.
#[test]
fn workloads_give_the_bits_of_program_order() {
    let mut device = open(&QemuDeviceOptions::default());
    for (text, given) in [
        (include_str!("../../examples/workloads/matmul.workload"), &[][..]),
        (include_str!("../../examples/workloads/softmax.workload"), &[("scale", "0.5")]),
        (include_str!("../../examples/workloads/short_kernels.workload"), &[]),
        (include_str!("../../examples/workloads/short_chains.workload"), &[]),
    ] {
        let file = WorkloadFile::read(text).expect("the file holds a workload");
        let mut params = Params::defaults(file.params());
        for (name, value) in given {
            let number = file.number(name, value).expect("it is a number of type f32");
            params.set(name, &number).expect("the value is accepted");
        }
        let mut prepared =
            file.prepare(&params, &Inputs::default(), &device).expect("the device has room");
        for way in RunMode::of(file.program()) {
            let case = format!("{}, {way}", file.name());
            let report = way.run(&mut device, &mut prepared, &RunOptions::default());
            let report =
                report.unwrap_or_else(|error| panic!("{case}: {error} {:?}", prepared.explain()));
            assert_eq!(report.kernels, prepared.size().tasks, "{case}");
            let verdict = prepared.verify().expect("the outputs are read");
            assert!(verdict.passed(), "{case}: {verdict:?}");
        }
    }
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
    fault_of(device.run(Work::HostGraph(&image), &options))
}

fn fault_of(ran: Result<RunReport, Error>) -> (Fault, Box<FaultReport>) {
    match ran {
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
    // The calls of a builder on the AICPU are not compared with anything. Its first task adds 8 elements where nothing is mapped.
    let unmapped = 0x3000;
    let words = [unmapped, unmapped, unmapped, unmapped, unmapped, unmapped, 8, 8];
    let work = Work::AicpuBuilder { builder: "vector_example", orch_args: &words };
    let (fault, report) = fault_of(device.run(work, &budgets()));
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
    let refused = |options: &QemuDeviceOptions, firmware: &Image, kernels: &Image| {
        let opened = Device::open_qemu(options, firmware, kernels);
        opened.expect_err("no device").to_string()
    };
    let options = QemuDeviceOptions::default();
    let text = refused(
        &QemuDeviceOptions { program: "qemu-of-nobody".into(), ..options.clone() },
        firmware,
        kernels,
    );
    assert!(text.contains("apt-get install qemu-system-arm"), "{text}");
    let text = refused(&QemuDeviceOptions { aiv: 60, ..options.clone() }, firmware, kernels);
    assert!(text.contains("at most 64"), "{text}");
    let text =
        refused(&QemuDeviceOptions { gm_bytes: 9 << 30, ..options.clone() }, firmware, kernels);
    assert!(text.contains("8 GiB"), "{text}");
    assert!(refused(&options, kernels, firmware).contains("qemu cannot have"));
}

#[test]
fn a_function_of_this_process_is_no_kernel_there() {
    extern "C" fn nothing(_: *const u64) {}
    let mut device = small();
    let kernel = pto_host::Kernel::from_fn("mine", CoreKind::AIV, nothing);
    let refused = device.register_kernel(FuncId(500), kernel).unwrap_err().to_string();
    assert!(refused.contains("cannot run on qemu"), "{refused}");
}

/// Three programs that were compiled apart, stitched on the image: the loss falls, the result is that of the reference, and nothing is copied
/// or converted after the first round but what is planned.
#[test]
fn the_training_loop_runs_on_the_image() {
    let sizes = TrainingSizes {
        batch: 4,
        inner: 32,
        outer: 32,
        tile: 32,
        iterations: 5,
        rate: 0.5,
        seed: 1,
    };
    for layouts in [Layouts::Same, Layouts::Differ] {
        let run = RunOptions { aicpu_instances: 2, ..RunOptions::default() };
        let device = open(&QemuDeviceOptions::default());
        let session = device.session(SessionOptions { run, ..SessionOptions::default() }).unwrap();
        let mut training = Training::new(&session, sizes, layouts).expect("the image has plans");
        for _ in 0..sizes.iterations {
            training.round().unwrap_or_else(|error| panic!("{error}"));
        }
        let report = training.finish().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(report.failures(), [""; 0], "{}", report.rest);
        let planned = if layouts == Layouts::Same { 0 } else { 2 * 4 * 32 * 32 };
        assert_eq!(report.rest.converted_bytes, 4 * planned, "{}", report.rest);
    }
}

/// A tensor of a program file.
fn tensor(shape: &[u64], name: &str, role: Role) -> TensorDescription {
    TensorDescription {
        name: name.to_owned(),
        role,
        dtype: DType::F32,
        shape: shape.to_vec(),
        layout: TensorLayout::device(),
        begins_with_zeros: false,
    }
}

/// Tasks of a program file with blocks, several kernels and a predicate run on the image, and share a launch with plans.
#[test]
fn tasks_of_program_files_have_shapes_on_the_image() {
    let add = |from, to, value: f32| GraphTask {
        kernel: "add".to_owned(),
        kind: CoreKind::AIV,
        args: [from, from, to]
            .map(|tensor| GraphArgument::Tensor { tensor, offset: 0 })
            .into_iter()
            .chain([GraphArgument::Word(8 * 16)])
            .collect(),
        producers: vec![],
        block_shape: BlockShape {
            when: Some(OwnedPredicate {
                element: TensorElement { tensor: 0, offset: 4, element: ElementType::F32 },
                comparison: Comparison::EQUAL,
                value: value.to_bits().into(),
            }),
            ..BlockShape::default()
        },
    };
    let together = GraphTask {
        kernel: "empty_aic".to_owned(),
        kind: CoreKind::AIC,
        args: vec![],
        producers: vec![],
        block_shape: BlockShape {
            mix: vec!["empty_aiv".to_owned()],
            blocks: 3,
            ..BlockShape::default()
        },
    };
    // The second element is 1 when it runs. The last task does not run.
    let tasks = vec![add(0, 1, 1.0), together, add(1, 1, 2.0)];
    let tensors = [("X", Role::Input), ("Y", Role::Output)];
    let tensors = tensors.map(|(name, role)| tensor(&[8, 16], name, role)).to_vec();
    let shaped = Program::new("shaped", ProgramBody::Graph(tasks), tensors).unwrap();
    let text = "workload copy {
  schedule round_robin workers 1 window 8192 stall
  tensor X : f32[8, 16]
  tensor Y : f32[8, 16]
  kernel copy(x: in f32[8, 16], y: out f32[8, 16]) {
    %0 = load x : f32[8, 16]
    store y, %0
  }
  do parallel i in dense 1 { copy[i](x = X[i * 8 for 8], y = Y[i * 8 for 8]) }
}";
    let copy = Program::of_workload(&Workload::parse(text).unwrap().check().unwrap()).unwrap();
    let run = RunOptions { aicpu_instances: 2, ..RunOptions::default() };
    let device = open(&QemuDeviceOptions::default());
    let session = device.session(SessionOptions { run, ..SessionOptions::default() }).unwrap();
    let stitcher = Stitcher::new(&session).unwrap();
    let [shaped, copy] = [shaped, copy].map(|program| stitcher.load(program).unwrap());
    let elements: Vec<_> = (0..128_u16).map(f32::from).collect();
    let x = HostTensor::of_f32(&[8, 16], &elements).unwrap();
    for overlap in [1, 4] {
        let stream = stitcher.overlapping_stream(overlap).unwrap();
        let mut x = stream.to_device(&x, &TensorLayout::device()).unwrap();
        for program in [&copy, &shaped, &copy] {
            x = stream.run(program, stitch::Inputs::new().give("X", x)).unwrap().take("Y").unwrap();
        }
        let found = stream.to_host(&x).unwrap_or_else(|error| panic!("{error}")).to_f32().unwrap();
        let expected: Vec<_> = elements.iter().map(|x| 2.0 * x).collect();
        assert_eq!(found, expected, "{overlap} in a launch");
    }
}

/// A graph `Y = X + X` of 8 tasks, whose kernel has this name.
fn doubled(kernel: &str) -> Program {
    let of = |tensor, offset| GraphArgument::Tensor { tensor, offset };
    let task = |tile: u64| GraphTask {
        kernel: kernel.to_owned(),
        kind: CoreKind::AIV,
        args: [0, 0, 1]
            .map(|tensor| of(tensor, tile * 64))
            .into_iter()
            .chain([GraphArgument::Word(16)])
            .collect(),
        producers: vec![],
        block_shape: BlockShape::plain(),
    };
    let tensors = [("X", Role::Input), ("Y", Role::Output)];
    let tensors = tensors.map(|(name, role)| tensor(&[8, 16], name, role)).to_vec();
    Program::new("doubled", ProgramBody::Graph((0..8).map(task).collect()), tensors).unwrap()
}

/// Graphs, recordings and builders in program files run on the image. Graphs that follow each other share a launch. Kernels of one's own, and builders
/// that the image does not have, are refused by name.
#[test]
fn programs_of_every_kind_run_on_the_image_or_are_refused() {
    let run = RunOptions { aicpu_instances: 2, ..RunOptions::default() };
    let device = open(&QemuDeviceOptions::default());
    let session = device.session(SessionOptions { run, ..SessionOptions::default() }).unwrap();
    let stitcher = Stitcher::new(&session).unwrap();
    let graph = doubled("add");
    // What a stream was asked while it was captured, as a program.
    let (x_at, y_at) = (session.zeroed::<f32>(128).unwrap(), session.zeroed::<f32>(128).unwrap());
    let captured = session.stream().unwrap();
    captured.begin_capture().unwrap();
    captured
        .launch(func::ADD, &[x_at.address().0, x_at.address().0, y_at.address().0, 128])
        .unwrap();
    let recording = captured.end_capture().unwrap();
    let described = graph.tensors().iter().cloned();
    let placed: Vec<_> = described.zip([x_at.address(), y_at.address()]).collect();
    let recorded = stitcher.program_of("recorded", &recording, &placed).unwrap();
    let load = |program: &Program| {
        let read = Program::from_bytes(&program.to_bytes()).unwrap();
        stitcher.load(read).unwrap_or_else(|error| panic!("{error}"))
    };
    let (graph, recorded) = (load(&graph), load(&recorded));
    let ones = HostTensor::of_f32(&[8, 16], &[1.0; 128]).unwrap();
    for overlap in [1, 3] {
        let stream = stitcher.overlapping_stream(overlap).unwrap();
        let mut x = stream.to_device(&ones, &TensorLayout::device()).unwrap();
        let before = stitcher.counters();
        for program in [&graph, &recorded, &graph] {
            x = stream.run(program, stitch::Inputs::new().give("X", x)).unwrap().take("Y").unwrap();
        }
        let found = stream.to_host(&x).unwrap_or_else(|error| panic!("{error}")).to_f32().unwrap();
        assert_eq!(found, [8.0; 128], "{overlap} in a launch");
        let launches = stitcher.counters().since(&before).launches;
        assert_eq!(launches, if overlap == 1 { 3 } else { 1 });
    }

    let own = stitcher.load(doubled("mine")).map(drop).unwrap_err().to_string();
    assert!(own.contains("mine"), "{own}");
    let of = |tensor| GraphArgument::Tensor { tensor, offset: 0 };
    let by = |name: &str| {
        let tensor = |name, role| tensor(&[1024], name, role);
        let words = (0..6).map(of).chain([1024, 256].map(GraphArgument::Word));
        let reference = BuilderReference {
            name: name.to_owned(),
            variant: RuntimeVariant::AICPU_BUILD_GRAPH,
            words: words.collect(),
        };
        let inputs = ["a", "b"].map(|name| tensor(name, Role::Input));
        let between = ["sum", "plus_1", "plus_2"].map(|name| tensor(name, Role::Temporary));
        let tensors = inputs.into_iter().chain(between).chain([tensor("out", Role::Output)]);
        Program::new("built", ProgramBody::Builder(reference), tensors.collect()).unwrap()
    };
    let missing = stitcher.load(by("nowhere")).map(drop).unwrap_err().to_string();
    assert!(missing.contains("builder nowhere") && missing.contains("qemu"), "{missing}");
    let built = load(&by("vector_example"));
    let stream = stitcher.overlapping_stream(3).unwrap();
    let ones = HostTensor::of_f32(&[1024], &[1.0; 1024]).unwrap();
    let [a, b] = [(); 2].map(|()| stream.to_device(&ones, &TensorLayout::device()).unwrap());
    let inputs = stitch::Inputs::new().give("a", a).give("b", b);
    let out = stream.run(&built, inputs).unwrap().take("out").unwrap();
    let found = stream.to_host(&out).unwrap_or_else(|error| panic!("{error}")).to_f32().unwrap();
    // (a + b + 1) * (a + b + 2).
    assert_eq!(found, [12.0; 1024]);
}

/// The firmware of the image stays up, reads the rings, returns when it is idle or its time is over, and comes up again.
#[test]
fn a_session_runs_on_the_image() {
    let run = RunOptions { run_budget: Some(Duration::from_secs(4)), ..budgets() };
    let session = small().session(SessionOptions { run, ..SessionOptions::default() }).unwrap();
    let (adds, copies) = (session.stream().unwrap(), session.stream().unwrap());
    let (arrived, computed) = (session.event().unwrap(), session.event().unwrap());
    let sum = session.zeroed::<f32>(64).unwrap();
    let one = session.zeroed::<f32>(64).unwrap();
    let word = session.zeroed::<u64>(1).unwrap();
    copies.copy_to_device(one.address(), 1.0_f32.to_le_bytes().repeat(64)).unwrap();
    copies.record(&arrived).unwrap();
    adds.wait(&arrived).unwrap();
    let (from, to) = (one.address().0, sum.address().0);
    for _ in 0..300 {
        adds.launch(func::ADD, &[from, to, to, 64]).unwrap();
    }
    adds.launch_blocks(func::EMPTY_AIV, 5, &[]).unwrap();
    adds.write_value(word.address(), 9).unwrap();
    adds.record(&computed).unwrap();
    copies.wait(&computed).unwrap();
    let result = HostBuffer::new(256).unwrap();
    copies.copy_from_device(sum.address(), &result).unwrap();
    session.synchronize_within(Duration::from_secs(60)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(result.to_vec(), 300.0_f32.to_le_bytes().repeat(64));
    assert_eq!(word.read().unwrap(), [9]);
    assert!(computed.since(&arrived).is_some());
    let starts = session.firmware_starts();
    std::thread::sleep(Duration::from_millis(200));
    assert!(!session.is_firmware_up(), "it is idle");
    adds.launch(func::ADD, &[from, to, to, 64]).unwrap();
    adds.synchronize_within(Duration::from_secs(60)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(sum.read().unwrap(), [301.0; 64]);
    assert!(session.firmware_starts() > starts);
}
