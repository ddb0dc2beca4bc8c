//! A firmware crate of a user's own, in this workspace and copied to outside of it: its graph builders in Rust and in
//! C, and its kernels, run on the device `qemu`.
//!
//! Needs QEMU and the tools that images are built with; what is missing is brought (see `pto_image_build`).

use std::fs;
use std::path::{Path, PathBuf};

use pto_aicore_kernels::dag_value;
use pto_examples::host::{self, Inputs, Params};
use pto_host::abi::{CoreKind, Fault, FuncId};
use pto_host::fw::{Image, ImageKind};
use pto_host::{
    Capacities, Device, Error, Kernel, QemuDeviceOptions, RunOptions, StreamCapacities, Work, func,
};
use pto_image_build::{Profile, Request, packages};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace").to_path_buf()
}

/// Copies the example as its head says: the folder, with its dependencies pointing to here.
fn copy_outside(to: &Path) {
    let example = root().join("linker/example-firmware");
    for folder in ["", "src", "c"] {
        fs::create_dir_all(to.join(folder)).expect("a folder");
        let entries = fs::read_dir(example.join(folder)).expect("the example").flatten();
        for file in entries.map(|entry| entry.path()).filter(|path| path.is_file()) {
            let name = file.file_name().expect("a file has a name");
            fs::copy(&file, to.join(folder).join(name)).expect("a copy");
        }
    }
    let manifest = fs::read_to_string(example.join("Cargo.toml")).expect("a manifest");
    let manifest = manifest.replace("\"../", &format!("\"{}/", root().join("linker").display()));
    fs::write(to.join("Cargo.toml"), manifest).expect("a file");
    // The versions that are here already: no registry is asked.
    fs::copy(root().join("Cargo.lock"), to.join("Cargo.lock")).expect("a copy");
}

/// Where this build of the workspace puts things.
fn target_folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is below the target").to_path_buf()
}

/// Firmware and kernels of the crate in `folder`.
fn build(folder: &Path, profile: Profile) -> (Image, Image) {
    let say = |sentence: &str| println!("{sentence}");
    packages::install(&[packages::QEMU, packages::CROSS_C, packages::CROSS_CXX], &say)
        .unwrap_or_else(|why| panic!("{why}"));
    let request = Request {
        crate_folder: Some(folder.to_path_buf()),
        // A copy outside of the workspace finds there what the workspace has built.
        target_folder: Some(target_folder()),
        profile,
        ..Request::default()
    };
    let built = pto_image_build::build(&request, &say);
    let built = built.unwrap_or_else(|error| panic!("{error}"));
    let of = |kind| {
        let found = built.iter().find(|built| built.image.kind == kind);
        found.expect("both are built").image.clone()
    };
    (of(ImageKind::Qemu), of(ImageKind::Kernels))
}

fn open((firmware, kernels): &(Image, Image)) -> Device {
    let options = QemuDeviceOptions {
        aicpu: 2,
        aic: 1,
        aiv: 2,
        gm_bytes: 64 << 20,
        ..QemuDeviceOptions::default()
    };
    Device::open_qemu(&options, firmware, kernels).unwrap_or_else(|error| panic!("{error}"))
}

fn run(device: &mut Device, builder: &str, orch_args: &[u64]) -> Result<u64, Error> {
    let options = RunOptions { aicpu_instances: 2, ..RunOptions::default() };
    let report = device.run(Work::AicpuBuilder { builder, orch_args }, &options)?;
    Ok(report.tasks)
}

fn fault_of(result: Result<u64, Error>) -> (Fault, String) {
    match result {
        Err(Error::Fault { fault, report }) => (fault, report.to_string()),
        other => panic!("no fault: {other:?}"),
    }
}

/// Numbers that are not all alike, and exact in `f32` for what is done with them.
fn numbers(count: u16) -> Vec<f32> {
    (0..count).map(|index| f32::from(index % 9) - 4.0).collect()
}

/// The builder `polynomials`, which runs kernels of the crate's own.
fn own_kernels(device: &mut Device) {
    const ROWS: u16 = 5;
    const LENGTH: u16 = 33;
    let values = numbers(ROWS * LENGTH);
    let x = device.upload(&values).expect("room");
    let room = device.zeroed::<f32>(values.len()).expect("room");
    let y = device.upload(&[0.5_f32; LENGTH as usize]).expect("room");
    let weight = 2.0_f32.to_bits().into();
    let words =
        [x.address().0, room.address().0, y.address().0, ROWS.into(), LENGTH.into(), weight];
    assert_eq!(run(device, "polynomials", &words).unwrap_or_else(|error| panic!("{error}")), 10);
    let polynomial = |x: f32| 1.0 - x / 2.0 + x * x / 4.0 - x * x * x / 8.0 + x * x * x * x / 16.0;
    let column = |index: usize| values.iter().skip(index).step_by(LENGTH.into());
    let expected = (0..usize::from(LENGTH))
        .map(|index| column(index).fold(0.5, |sum, x| sum + 2.0 * polynomial(*x)));
    assert_eq!(y.read().expect("it is read"), expected.collect::<Vec<f32>>());
}

/// The builder in C: a fork and a join.
fn builder_in_c(device: &mut Device) {
    const WIDTH: u32 = 40;
    const SEED: u64 = 99;
    let nodes = WIDTH as usize + 2;
    let values = device.zeroed::<u64>(nodes).expect("room");
    let counters = device.zeroed::<u32>(nodes).expect("room");
    let producers: Vec<u32> = vec![0; WIDTH as usize].into_iter().chain(1..=WIDTH).collect();
    let producers = device.upload(&producers).expect("room");
    let addresses = [values.address().0, counters.address().0, producers.address().0];
    let words = [&addresses[..], &[WIDTH.into(), SEED]].concat();
    let tasks = run(device, "build_graph_aicpu", &words).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(tasks, nodes as u64);
    let fork = dag_value(SEED, 0, std::iter::empty());
    let middle = (1..=u64::from(WIDTH)).map(|node| dag_value(SEED, node, std::iter::once(fork)));
    let join = dag_value(SEED, u64::from(WIDTH) + 1, middle);
    assert_eq!(values.read().expect("it is read").last(), Some(&join));
    assert_eq!(counters.read().expect("it is read"), vec![1; nodes]);
    let (fault, text) = fault_of(run(device, "build_graph_aicpu", &[1]));
    assert_eq!(fault, Fault::BUILD_FAILED);
    assert!(text.contains('7'), "the builder's own code in {text}");
}

/// Rings for 64 tasks: the machine is small. A record takes one depth of scopes more.
fn small_rings() -> RunOptions {
    let stream =
        StreamCapacities { window: 64, map_entries: 512, heap_rings: 2, heap_bytes: 1 << 12 };
    let capacities =
        Capacities { tasks: 64, arg_words: 1024, edges: 512, stream, ..Capacities::default() };
    RunOptions { aicpu_instances: 2, capacities, ..RunOptions::default() }
}

/// The streaming program `shapes`, on one cluster: every part of every block runs once.
fn shaped_tasks(device: &mut Device) {
    const BLOCKS: usize = 10;
    let table = device.zeroed::<u64>(3 * BLOCKS).expect("room");
    let flag = device.zeroed::<u32>(1).expect("room");
    let orch_args = [table.address().0, BLOCKS as u64, flag.address().0];
    let work = Work::Stream { builder: "shapes", orch_args: &orch_args };
    let report = device.run(work, &small_rings()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(report.tasks, 6);
    let expected = |cell: usize| {
        let (block, is_first_vector) = (cell / 3, cell % 3 == 1);
        // The clusters; those at once, and those under the predicate that is true; the vector cores, twice.
        let of_clusters = 1 + 2 * u64::from(block == 0);
        of_clusters + u64::from(is_first_vector) * (1 + u64::from(block < 2))
    };
    let expected: Vec<u64> = (0..3 * BLOCKS).map(expected).collect();
    assert_eq!(table.read().expect("it is read"), expected);
}

/// The program of the example `task_shapes` in C++, whose parts that start together wait for each other.
fn shapes_in_cpp(device: &mut Device) {
    let example = host::find("task_shapes").expect("the example exists");
    let mut params = Params::defaults(example.params());
    for (param, value) in
        [("tasks", "12"), ("layers", "8"), ("rows", "3"), ("together", "1"), ("meet", "1")]
    {
        params.set(param, value).expect("the size is accepted");
    }
    let mut prepared = example.prepare(&params, &Inputs::default(), device).expect("room");
    prepared.reset().expect("the outputs are reset");
    let work = Work::Stream { builder: "shapes_in_cpp", orch_args: prepared.orch_args() };
    let report = device.run(work, &small_rings()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(report.tasks, 96);
    let verdict = prepared.verify().expect("the outputs are read");
    assert!(verdict.passed(), "{verdict:?}");
}

fn everything_of(images: &(Image, Image)) {
    let mut device = open(images);
    let own = device.flashed_kernels();
    let is_there = |id, name, kind| {
        own.iter()
            .any(|(func_id, kernel)| (func_id.0, kernel.name(), kernel.kind()) == (id, name, kind))
    };
    assert!(is_there(64, "axpy", CoreKind::AIV) && is_there(65, "polynomial", CoreKind::AIC));
    device.register_flashed().unwrap_or_else(|error| panic!("{error}"));
    own_kernels(&mut device);
    builder_in_c(&mut device);
    shaped_tasks(&mut device);
    shapes_in_cpp(&mut device);
    // The same program in Rust, and as a plugin in C++.
    for builder in ["increments", "increments_in_cpp"] {
        let vector = device.upload(&[0.5_f32; 100]).expect("room");
        let tasks = run(&mut device, builder, &[vector.address().0, 100, 20]);
        assert_eq!(tasks.unwrap_or_else(|error| panic!("{error}")), 20);
        assert_eq!(vector.read().expect("it is read"), [20.5; 100]);
    }
    let (fault, text) = fault_of(run(&mut device, "increments_in_cpp", &[1]));
    assert_eq!(fault, Fault::BUILD_FAILED);
    assert!(text.contains('7'), "the builder's own code in {text}");
}

#[test]
fn it_builds_and_runs_in_the_workspace() {
    let images = build(&root().join("linker/example-firmware"), Profile::Checked);
    everything_of(&images);
    let mut device = open(&images);
    // A kernel of one's own under another func id, besides the library.
    device.register_library().expect("the blob holds the library");
    let (_, axpy) = device.flashed_kernels().into_iter().find(|(_, k)| k.name() == "axpy").unwrap();
    device.register_kernel(FuncId(500), axpy).expect("it is free");
    let empty = run(&mut device, "diamond", &[func::EMPTY_AIV.0.into()]);
    assert_eq!(empty.unwrap_or_else(|error| panic!("{error}")), 4);
    let (fault, _) = fault_of(run(&mut device, "diamond", &[64]));
    assert_eq!(fault, Fault::BUILD_KERNEL_MISSING, "64 was not registered");
    let twice = device.register_flashed().unwrap_err().to_string();
    assert!(twice.contains("func id"), "{twice}");
}

#[test]
fn it_builds_and_runs_outside_of_the_workspace() {
    let folder = tempfile::tempdir().expect("a folder");
    copy_outside(folder.path());
    everything_of(&build(folder.path(), Profile::Release));
}

/// An image without a builder in C.
#[test]
fn a_missing_builder_in_c_is_a_fault() {
    let request = Request { profile: Profile::Release, ..Request::default() };
    let built = pto_image_build::build(&request, &|sentence| println!("{sentence}"));
    let built = built.unwrap_or_else(|error| panic!("{error}"));
    let of = |kind| built.iter().find(|one| one.image.kind == kind).unwrap().image.clone();
    let mut device = open(&(of(ImageKind::Qemu), of(ImageKind::Kernels)));
    device.register_library().expect("the blob holds the library");
    let (fault, text) = fault_of(run(&mut device, "build_graph_aicpu", &[]));
    assert_eq!(fault, Fault::BUILD_NO_BUILDER);
    assert!(text.contains("build_graph_aicpu"), "{text}");
}

#[test]
fn what_is_flashed_is_for_devices_that_flash() {
    let mut device = host::open_sim(pto_host::DeviceOptions::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let refused = device.register_flashed().unwrap_err().to_string();
    assert!(refused.contains("a2a3sim has no flashed kernels"), "{refused}");
    let known = Kernel::library("add").expect("the library has it");
    device.register_kernel(FuncId(64), known).expect("it is free");
    // The programs of the examples, the one that expands workloads, and those that measure collectives and a layer of a group.
    assert_eq!(host::EXAMPLES.len() + 3, device.builders().len());
}
