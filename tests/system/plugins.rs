//! Builders in C++ and C as they are, in an image for the device `qemu` (`pto fw build --builder`): plugins that a host
//! loads elsewhere, and programs with tensors; one with shapes and records, and one of ranges on a2a3sim as well.
//!
//! Needs QEMU and the cross compilers; what is missing is brought.

use std::ffi::CString;
use std::path::{Path, PathBuf};

use pto_aicore_kernels::dag_value;
use pto_examples::host::{self, Inputs, Params, Prepared, Tensor};
use pto_host::abi::{Fault, FuncId, RuntimeVariant};
use pto_host::fw::ImageKind;
use pto_host::virtual_time::VirtualOptions;
use pto_host::{
    Device, DeviceOptions, Error, Hosting, Kernel, QemuDeviceOptions, RunControl, RunOptions, Work,
    func,
};
use pto_image_build::{BuilderSource, Built, Profile, Request, packages};
use pto_native::field::FieldRuntime;
use pto_native::{Failure, FailureKind, HostedBuilders, SharedDevice};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace").to_path_buf()
}

/// x = 2 * (x + 1), in rows of a tensor, each through a tensor of the heap; then the first element of each is read.
const TENSORS_CPP: &str = r#"
#include "pto_stream.hpp"

namespace {
// The same name as in the other plugins.
template <class Graph>
int build(Graph &stream, const uint64_t *words) {
    const pto::Tensor x = pto::dense(words[0], PTO_ELEMENT_TYPE_F32, {8, 32});
    const uint64_t one = 0x3F800000;
    for (uint32_t row = 0; row < 8; row++) {
        pto::Scope scope(stream);
        const pto::Tensor sum = stream.alloc(PTO_ELEMENT_TYPE_F32, {32}), own = x.slice(0, row, 1);
        stream.submit(1, CoreType::AIV, {pto::in(own), pto::scalar(one), pto::out(sum), pto::scalar(32)});
        stream.submit(0, CoreType::AIV, {pto::in(sum), pto::in(sum), pto::out(own), pto::scalar(32)});
    }
    for (uint32_t row = 0; row < 8; row++) {
        if (stream.get(x, {row, 0}) != words[1 + row]) { return 70 + static_cast<int>(row); }
    }
    return stream.status();
}
}  // namespace

extern "C" int build_graph_aicpu(Runtime *runtime) {
    pto::Stream stream(runtime);
    return build(stream, runtime->orch_args);
}
"#;

/// A task with a tensor in C; then one that is wrong.
const TENSORS_C: &str = r#"
#include "pto_firmware.h"

int one_task(Runtime *runtime) {
    const pto_stream_task task = {.struct_size = sizeof task, .func_id = 1, .core_type = 1};
    pto_stream_arg args[4] = {{.kind = PTO_ARG_KIND_IN}, {.kind = PTO_ARG_KIND_SCALAR, .scalar = 0x3F800000},
                              {.kind = PTO_ARG_KIND_OUT}, {.kind = PTO_ARG_KIND_SCALAR, .scalar = 256}};
    const pto_stream_tensor x = {.base = runtime->orch.orch_args[0], .bytes = 1024, .strides = {1}, .shape = {256}, .rank = 1};
    args[0].tensor = args[2].tensor = x;
    if (pto_stream_submit(runtime, &task, args, 4, 0, 0) != 0) { return 1; }
    args[2].tensor.offset = 1;
    return pto_stream_submit(runtime, &task, args, 4, 0, 0) == -1 ? 0 : 2;
}
"#;

/// Rows of tiles of eight numbers, each row from the one above: ranges with every kind of variation and of wait, and, in a run that streams, a range on
/// tensors. Words: the rows, whether the run streams, the func ids of `add` and `add_scalar`.
const RANGES_CPP: &str = r#"
#include "pto_stream.hpp"

namespace {
constexpr int64_t TILE = 32, ROW = 256;
constexpr uint64_t N = 8;
// The bits of 0 to 7.
const uint64_t numbers[8] = {0, 0x3F800000, 0x40000000, 0x40400000, 0x40800000, 0x40A00000, 0x40C00000, 0x40E00000};
}  // namespace

extern "C" int build_graph_aicpu(Runtime *runtime) {
    const uint64_t *words = runtime->orch_args;
    const uint64_t x = words[0];
    const int add = static_cast<int>(words[2]), add_scalar = static_cast<int>(words[3]);
    const auto row = [&](uint64_t number) { return x + ROW * number; };
    const CoreType aiv = CoreType::AIV;
    // Tile t: t more than above.
    const int64_t one = pto::submit_range(runtime, 8, add_scalar, aiv, {row(0), 0, row(1), N},
                                          {pto::grows(0, TILE), pto::listed(1, numbers), pto::grows(2, TILE)});
    // Twice the tile above.
    const int64_t two = pto::submit_range(runtime, 8, add, aiv, {row(1), row(1), row(2), N},
                                          {pto::grows(0, TILE), pto::grows(1, TILE), pto::grows(2, TILE)}, {pto::each({one, 8})});
    // The tile above and its left neighbour; the first one has none.
    uint64_t left[8];
    for (uint64_t t = 0; t < 8; t++) { left[t] = row(2) + TILE * (t == 0 ? 0 : t - 1); }
    const int64_t three = pto::submit_range(runtime, 8, add, aiv, {row(2), 0, row(3), N},
                                            {pto::grows(0, TILE), pto::listed(1, left), pto::grows(2, TILE)}, {pto::window({two, 8}, -1, 2)});
    // Pairs.
    const int64_t four = pto::submit_range(runtime, 4, add, aiv, {row(3), row(3) + TILE, row(4), N},
                                           {pto::grows(0, 2 * TILE), pto::grows(1, 2 * TILE), pto::grows(2, TILE)},
                                           {pto::window({three, 8}, 0, 2, 2)});
    const int64_t five = pto::submit_range(runtime, 1, add, aiv, {row(4), row(4) + 3 * TILE, row(5), N}, {}, {pto::all({four, 4})});
    // Twice the sum, and the pairs in the middle.
    const int64_t before[3] = {five, four + 1, four + 2};
    const uint32_t ends[2] = {1, 3};
    const uint64_t from[2] = {row(5), row(4) + TILE}, other[2] = {row(5), row(4) + 2 * TILE};
    const int64_t six = pto::submit_range(runtime, 2, add, aiv, {row(5), row(5), row(6), N},
                                          {pto::listed(0, from), pto::listed(1, other), pto::grows(2, TILE)},
                                          {pto::listed_up_to(before, ends)});
    if (one != 0 || two != 8 || three != 16 || four != 24 || five != 28 || six != 29) { return 1; }
    if (words[1] == 0) { return 0; }
    pto::Stream stream(runtime);
    const pto::Tensor whole = pto::dense(x, PTO_ELEMENT_TYPE_F32, {8, 64});
    const pto::Tensor source = whole.slice(0, 6, 1).slice(1, 0, 8), target = whole.slice(0, 7, 1).slice(1, 0, 8);
    const uint64_t added[2] = {numbers[1], numbers[2]};
    const int64_t seven = stream.submit_range(2, pto::Task(add_scalar, aiv), {pto::in(source), pto::scalar(0), pto::out(target), pto::scalar(N)},
                                              {pto::grows(0, TILE), pto::listed(1, added), pto::grows(2, TILE)}, {six, six + 1});
    // Each of them waits for its own tile.
    const int64_t eight = stream.submit_range(2, pto::Task(add_scalar, aiv), {pto::inout(target), pto::scalar(added[0]), pto::no_dep(target), pto::scalar(N)},
                                              {pto::grows(0, TILE), pto::grows(2, TILE)});
    return seven == 31 && eight == 33 ? stream.status() : 2;
}
"#;

/// What the rows of [`RANGES_CPP`] are after a run, from the first one.
fn rows_after(first: &[f32], streams: bool) -> Vec<f32> {
    let mut rows = vec![0.0; 8 * 64];
    rows[..64].copy_from_slice(first);
    let tile = |row: usize, tile: usize| 64 * row + 8 * tile;
    for at in 0..64 {
        let (column, own) = (at % 8, at / 8);
        let number = f32::from(u16::try_from(own).expect("few"));
        rows[64 + at] = rows[at] + number;
        rows[128 + at] = 2.0 * rows[64 + at];
        rows[192 + at] = rows[128 + at] + rows[tile(2, own.saturating_sub(1)) + column];
    }
    for column in 0..8 {
        for own in 0..4 {
            rows[tile(4, own) + column] =
                rows[tile(3, 2 * own) + column] + rows[tile(3, 2 * own + 1) + column];
        }
        rows[tile(5, 0) + column] = rows[tile(4, 0) + column] + rows[tile(4, 3) + column];
        rows[tile(6, 0) + column] = 2.0 * rows[tile(5, 0) + column];
        rows[tile(6, 1) + column] = rows[tile(4, 1) + column] + rows[tile(4, 2) + column];
        for own in (0..2).filter(|_| streams) {
            rows[tile(7, own) + column] = rows[tile(6, own) + column] + [2.0, 3.0][own];
        }
    }
    rows
}

/// What the program of ranges is given on this device, and the rows.
fn prepared_rows(
    device: &Device,
    streams: bool,
) -> (pto_host::DeviceBuffer<f32>, Vec<u64>, Vec<f32>) {
    let mut held: Vec<f32> = (0_u16..64).map(f32::from).collect();
    let expected = rows_after(&held, streams);
    held.resize(expected.len(), 0.0);
    let rows = device.upload(&held).expect("room");
    let ids = [func::ADD, func::ADD_SCALAR].map(|id| u64::from(id.0));
    let words = vec![rows.address().0, streams.into(), ids[0], ids[1]];
    (rows, words, expected)
}

#[test]
fn ranges_in_cpp_run_in_every_hosting_mode() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name);
    for (name, text) in [("orchestrate", ORCHESTRATION_CPP), ("ranges", RANGES_CPP)] {
        let source = file(&format!("{name}.cpp"));
        std::fs::write(&source, text).expect("a file");
        shared_object(&source, &file(&format!("{name}.so")));
    }
    let plugin = CString::new(file("ranges.so").as_os_str().as_encoded_bytes()).expect("a path");
    let variants = [RuntimeVariant::AICPU_BUILD_GRAPH, RuntimeVariant::TENSORMAP_AND_RINGBUFFER];
    let hostings = [
        Hosting::Threads,
        Hosting::Pool { os_threads: std::num::NonZeroUsize::MIN.saturating_add(1) },
        Hosting::Virtual(VirtualOptions::default()),
    ];
    // A watched program sees other addresses than those of the device.
    let ways = hostings.into_iter().flat_map(|hosting| variants.map(|variant| (hosting, variant)));
    for ((hosting, variant), is_watched) in ways.flat_map(|way| [(way, false), (way, true)]) {
        let (aic, aiv, gm_bytes) = (4, 8, 512 << 20);
        let options = DeviceOptions { hosting, aic, aiv, gm_bytes };
        let builders = HostedBuilders::default();
        let sim = Device::open_sim(options, builders.clone());
        let mut sim = sim.unwrap_or_else(|error| panic!("{error}"));
        sim.register_library().expect("the library registers");
        let streams = variant == RuntimeVariant::TENSORMAP_AND_RINGBUFFER;
        let (rows, given, expected) = prepared_rows(&sim, streams);
        let device = SharedDevice::over(sim, builders);
        let path = plugin.as_ptr().expose_provenance() as u64;
        let mut words: Vec<u64> = std::iter::once(path).chain(given).collect();
        let options = RunOptions::default();
        let make = if is_watched { FieldRuntime::watched } else { FieldRuntime::new };
        let mut runtime = make(&device, &options).expect("a runtime");
        // SAFETY: the function reads these words; the path lives as long as the test.
        unsafe { runtime.orchestrate(&file("orchestrate.so"), "orchestrate", &mut words) }
            .unwrap_or_else(|failure| panic!("{failure}"));
        let report = runtime.run(variant, &options, &RunControl::default());
        let way = format!("{hosting:?}, {variant}, watched {is_watched}");
        let tasks = report.unwrap_or_else(|failure| panic!("{way}: {failure}")).tasks;
        assert_eq!(tasks, if streams { 35 } else { 31 }, "{way}");
        assert_eq!(rows.read().expect("it is read"), expected, "{way}");
    }
}

/// The program of ranges on the emulated machine, in both kinds of run.
fn ranges(device: &mut Device) {
    for id in [func::ADD, func::ADD_SCALAR] {
        rename(device, id, id.0);
    }
    for streams in [false, true] {
        let (rows, words, expected) = prepared_rows(device, streams);
        let (builder, orch_args) = ("ranges", words.as_slice());
        let work = match streams {
            true => Work::Stream { builder, orch_args },
            false => Work::AicpuBuilder { builder, orch_args },
        };
        let report = device.run(work, &options()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(report.tasks, if streams { 35 } else { 31 });
        assert_eq!(rows.read().expect("it is read"), expected);
    }
    for id in [func::ADD, func::ADD_SCALAR] {
        device.unregister_kernel(id).expect("it is there");
    }
}

/// Hands the words on, and the plugin whose path is the first one, to a device that takes plugins.
pub(crate) const ORCHESTRATION_CPP: &str = r#"
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>
#include "runtime.h"

extern "C" int orchestrate(Runtime *runtime, uint64_t *words, int count) {
    std::ifstream file(reinterpret_cast<const char *>(words[0]), std::ios::binary);
    const std::vector<char> plugin((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    runtime->orch_argc = count - 1;
    std::memcpy(runtime->orch_args, words + 1, 8 * (count - 1));
    return runtime->try_set_aicpu_orch_so(plugin.data(), plugin.size()) ? 0 : 1;
}
"#;

/// Tasks of every shape, and records: the example `task_shapes` in C++.
fn shapes_cpp() -> PathBuf {
    root().join("linker/example-firmware/c/shapes.cpp")
}

/// Of the example `task_shapes`; no more blocks at once than one cluster has.
const SHAPES: [(&str, &str); 4] =
    [("tasks", "24"), ("layers", "9"), ("rows", "6"), ("together", "1")];

/// The example on a device, with room for its layers.
fn prepared_shapes(device: &Device) -> Prepared {
    let example = host::find("task_shapes").expect("the example exists");
    let mut params = Params::defaults(example.params());
    for (name, value) in SHAPES {
        params.set(name, value).expect("the size is accepted");
    }
    host::resolve(example, &mut params, &Inputs::default()).expect("the sizes agree");
    example.prepare(&params, &Inputs::default(), device).expect("the device has room")
}

/// What the program makes of it, in whatever language it is: a run on `device`, checked.
fn cells_after(prepared: &mut Prepared, run: impl FnOnce(&[u64]) -> u64) -> Tensor {
    prepared.reset().expect("the outputs are reset");
    assert_eq!(run(prepared.orch_args()), prepared.size().tasks);
    let verdict = prepared.verify().expect("the outputs are read");
    assert!(verdict.passed(), "{verdict:?}");
    prepared.outputs().expect("the outputs are read").pop().expect("one output").1
}

/// The image with all of them, and the blob of kernels.
fn images(folder: &Path) -> Vec<Built> {
    let say = |sentence: &str| println!("{sentence}");
    packages::install(&[packages::QEMU, packages::CROSS_C, packages::CROSS_CXX], &say)
        .unwrap_or_else(|why| panic!("{why}"));
    let written = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("a file");
        path
    };
    let example = root().join("examples/cpp/random_dag/kernels/aicpu/build_graph.cpp");
    let named = |name: &str, function: &str, path| {
        let (name, function) = (name.to_owned(), function.to_owned());
        BuilderSource { name, function, path }
    };
    let plugin = BuilderSource::FUNCTION;
    let builders = vec![
        named("random_dag", plugin, example),
        named("tensors", plugin, written("tensors.cpp", TENSORS_CPP)),
        named("one_task", "one_task", written("one_task.c", TENSORS_C)),
        named("shapes", plugin, shapes_cpp()),
        named("ranges", plugin, written("ranges.cpp", RANGES_CPP)),
    ];
    let request = Request { builders, profile: Profile::Release, ..Request::default() };
    pto_image_build::build(&request, &say).unwrap_or_else(|error| panic!("{error}"))
}

fn open(images: &[Built]) -> Device {
    let of = |kind| &images.iter().find(|one| one.image.kind == kind).expect("both").image;
    let options = QemuDeviceOptions {
        aicpu: 2,
        aic: 1,
        aiv: 2,
        gm_bytes: 512 << 20,
        ..QemuDeviceOptions::default()
    };
    let device = Device::open_qemu(&options, of(ImageKind::Qemu), of(ImageKind::Kernels));
    device.unwrap_or_else(|error| panic!("{error}"))
}

/// The kernel of the library with this func id, under another one.
fn rename(device: &mut Device, library: FuncId, to: u16) {
    let kernels = device.flashed_kernels();
    let (_, kernel): (_, Kernel) =
        kernels.into_iter().find(|(id, _)| *id == library).expect("the library has it");
    device.register_kernel(FuncId(to), kernel).unwrap_or_else(|error| panic!("{error}"));
}

fn options() -> RunOptions {
    RunOptions { aicpu_instances: 2, ..RunOptions::default() }
}

/// The plugin of `examples/cpp/random_dag`, unmodified: each node waits for the two before it.
fn random_dag(device: &mut Device) {
    const NODES: u32 = 300;
    const SEED: u64 = 11;
    let producers_of = |node: u32| node.saturating_sub(2)..node;
    let (mut first, mut producers) = (vec![0], Vec::new());
    for node in 0..NODES {
        producers.extend(producers_of(node));
        first.push(u32::try_from(producers.len()).expect("few"));
    }
    let kinds: Vec<u32> = (0..NODES).map(|node| node % 2).collect();
    let values = device.zeroed::<u64>(NODES as usize).expect("room");
    let counters = device.zeroed::<u32>(NODES as usize).expect("room");
    let (first, producers, kinds) = (
        device.upload(&first).expect("room"),
        device.upload(&producers).expect("room"),
        device.upload(&kinds).expect("room"),
    );
    let words = [
        values.address().0,
        counters.address().0,
        first.address().0,
        producers.address().0,
        kinds.address().0,
        NODES.into(),
        SEED,
    ];
    for (id, to) in [(func::DAG_NODE_AIC, 0), (func::DAG_NODE_AIV, 1)] {
        rename(device, id, to);
    }
    let mut expected: Vec<u64> = Vec::new();
    for node in 0..NODES {
        let of = producers_of(node).map(|producer| expected[producer as usize]);
        let value = dag_value(SEED, node.into(), of);
        expected.push(value);
    }
    let (builder, orch_args) = ("random_dag", words.as_slice());
    for work in [Work::AicpuBuilder { builder, orch_args }, Work::Stream { builder, orch_args }] {
        let report = device.run(work, &options()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(report.tasks, u64::from(NODES));
        assert_eq!(values.read().expect("it is read"), expected);
    }
    assert_eq!(counters.read().expect("it is read"), vec![2; NODES as usize]);
}

fn tensors(device: &mut Device) {
    for id in [0, 1] {
        device.unregister_kernel(FuncId(id)).expect("it is there");
    }
    rename(device, func::ADD, 0);
    rename(device, func::ADD_SCALAR, 1);
    let held: Vec<f32> = (0_u16..256).map(f32::from).collect();
    let x = device.upload(&held).expect("room");
    let expected: Vec<f32> = held.iter().map(|x| 2.0 * (x + 1.0)).collect();
    let firsts = expected.iter().step_by(32).map(|first| u64::from(first.to_bits()));
    let words: Vec<u64> = std::iter::once(x.address().0).chain(firsts).collect();
    let (builder, orch_args) = ("tensors", words.as_slice());
    let report = device.run(Work::Stream { builder, orch_args }, &options());
    assert_eq!(report.unwrap_or_else(|error| panic!("{error}")).tasks, 16);
    assert_eq!(x.read().expect("it is read"), expected);
    let refused = device.run(Work::AicpuBuilder { builder, orch_args }, &options());
    assert_eq!(fault_of(&refused), Fault::BUILD_NOT_STREAMING);
    let one = Work::Stream { builder: "one_task", orch_args: &orch_args[..1] };
    assert_eq!(fault_of(&device.run(one, &options())), Fault::STREAM_VIEW_RANGE);
}

/// The plugin makes the bits of the program in Rust, on the image and as a plugin of a2a3sim.
fn shapes(device: &mut Device) {
    for id in [func::PART_AIC, func::PART_AIV] {
        rename(device, id, id.0);
    }
    let mut prepared = prepared_shapes(device);
    let on_qemu = cells_after(&mut prepared, |orch_args| {
        let work = Work::Stream { builder: "shapes", orch_args };
        device.run(work, &options()).unwrap_or_else(|error| panic!("{error}")).tasks
    });
    for id in [func::PART_AIC, func::PART_AIV] {
        device.unregister_kernel(id).expect("it is there");
    }
    assert!(on_qemu == shapes_in_rust(), "other bits than in Rust");
}

fn shapes_in_rust() -> Tensor {
    let mut device =
        host::open_sim(DeviceOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    device.register_library().expect("the library registers");
    let mut prepared = prepared_shapes(&device);
    cells_after(&mut prepared, |orch_args| {
        let work = Work::Stream { builder: "task_shapes", orch_args };
        device.run(work, &RunOptions::default()).unwrap_or_else(|error| panic!("{error}")).tasks
    })
}

/// A shared object of this source, as a user compiles it.
pub(crate) fn shared_object(source: &Path, to: &Path) {
    packages::install(&[packages::CXX], &|sentence: &str| println!("{sentence}"))
        .unwrap_or_else(|why| panic!("{why}"));
    let mut compiler = std::process::Command::new(packages::CXX.name);
    compiler.args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I"]);
    compiler.arg(root().join("bindings/include")).arg(source).arg("-o").arg(to);
    let output = compiler.output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_plugin_with_shapes_and_recordings_runs_on_the_simulator() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name);
    std::fs::write(file("orchestrate.cpp"), ORCHESTRATION_CPP).expect("a file");
    shared_object(&file("orchestrate.cpp"), &file("orchestrate.so"));
    shared_object(&shapes_cpp(), &file("shapes.so"));
    let builders = HostedBuilders::default();
    let sim = Device::open_sim(DeviceOptions::default(), builders.clone());
    let mut sim = sim.unwrap_or_else(|error| panic!("{error}"));
    sim.register_library().expect("the library registers");
    let mut prepared = prepared_shapes(&sim);
    let device = SharedDevice::over(sim, builders);
    let plugin = CString::new(file("shapes.so").as_os_str().as_encoded_bytes()).expect("a path");
    let options = RunOptions::default();
    // It reads its table through the runtime, and follows no address of the device's memory.
    let cells = cells_after(&mut prepared, |orch_args| {
        let path = plugin.as_ptr().expose_provenance() as u64;
        let mut words: Vec<u64> = std::iter::once(path).chain(orch_args.iter().copied()).collect();
        let mut runtime = FieldRuntime::watched(&device, &options).expect("a runtime");
        // SAFETY: the function reads these words; the path lives as long as the test.
        unsafe { runtime.orchestrate(&file("orchestrate.so"), "orchestrate", &mut words) }
            .unwrap_or_else(|failure| panic!("{failure}"));
        let streaming = RuntimeVariant::TENSORMAP_AND_RINGBUFFER;
        let report = runtime.run(streaming, &options, &RunControl::default());
        report.unwrap_or_else(|failure| panic!("{failure}")).kernels
    });
    assert!(cells == shapes_in_rust(), "other bits than in Rust");
}

fn fault_of<R: std::fmt::Debug>(result: &Result<R, Error>) -> Fault {
    match result {
        Err(Error::Fault { fault, .. }) => *fault,
        other => panic!("no fault: {other:?}"),
    }
}

#[test]
fn plugins_are_builders_of_an_image() {
    let folder = tempfile::tempdir().expect("a folder");
    let images = images(folder.path());
    let firmware =
        images.iter().find(|one| one.image.kind == ImageKind::Qemu).expect("it is built");
    assert_eq!(firmware.image.builders, ["random_dag", "tensors", "one_task", "shapes", "ranges"]);
    let mut device = open(&images);
    shapes(&mut device);
    ranges(&mut device);
    random_dag(&mut device);
    tensors(&mut device);
    // Builders that other languages register are for the simulator.
    let shared = SharedDevice::over(device, HostedBuilders::default());
    let refused = shared.takes_builders().unwrap_err();
    assert!(
        refused.is(FailureKind::BUILDER_NOT_FOR_DEVICE) && refused.remedy.contains("--builder")
    );
}

#[test]
fn what_cannot_be_built_is_said() {
    packages::install(&[packages::CROSS_C, packages::CROSS_CXX], &|_| {})
        .unwrap_or_else(|why| panic!("{why}"));
    let said = |request: Request| match pto_image_build::build(&request, &|_| {}) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it was built"),
    };
    let builder = |text: &str| BuilderSource::parse(text);
    let missing = Request { builders: vec![builder("no_such.cpp")], ..Request::default() };
    assert!(said(missing).contains("there is no file 'no_such.cpp'"));
    let here = root().join(file!());
    let here = here.to_str().expect("a path is text");
    let twice = vec![builder(here), builder(here)];
    let text = said(Request { builders: twice, ..Request::default() });
    assert!(text.contains("two builders are called \"build_graph_aicpu\""), "{text}");
    let both = Request {
        builders: vec![builder(here)],
        crate_folder: Some(root().join("linker/example-firmware")),
        ..Request::default()
    };
    assert!(said(both).contains("names its builders itself"));
}

/// Words: the case, and two tensors of 16 numbers.
const CALLS: &str = r#"
#include "pto_stream.hpp"

extern "C" int build_graph_aicpu(Runtime *runtime) {
    const uint64_t *words = runtime->orch_args;
    const int exp = 3;
    uint64_t args[3] = {words[1], words[2], words[0] == 1 ? 17u : 16u};
    if (words[0] < 2) {
        const int task = aicpu_runtime_add_task(runtime, args, 3, exp, CoreType::AIV, 0);
        aicpu_runtime_publish_task(runtime, task);
        return task;
    }
    pto::Stream stream(runtime);
    const pto::Tensor in = pto::dense(words[1], PTO_ELEMENT_TYPE_F32, {16}), out = pto::dense(words[2], PTO_ELEMENT_TYPE_F32, {16});
    stream.submit(exp, CoreType::AIV, {pto::in(in), pto::out(out), pto::scalar(16)});
    switch (words[0]) {
    case 2: break;
    case 3: stream.submit(exp, CoreType::AIV, {pto::in(in), pto::out(out), pto::scalar(17)}); break;
    case 4: stream.submit(exp, CoreType::AIC, {pto::in(in), pto::out(out), pto::scalar(16)}); break;
    case 5: stream.submit(exp, CoreType::AIV, {pto::in(in), pto::out(out)}); break;
    case 6: stream.submit(exp, CoreType::AIV, {pto::scalar(0), pto::out(out), pto::scalar(16)}); break;
    default: pto::submit_range(runtime, 2, exp, CoreType::AIV, {words[1], words[2], 16}, {pto::grows(1, 32)}); break;
    }
    return stream.status();
}
"#;

/// On a2a3sim an error that names plugin, task and argument, before the task runs. In C: `bindings/c/tests/c/builder_calls.c`.
#[test]
fn calls_of_a_plugin_that_a_kernel_does_not_take_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let compiled = |name: &str, source: &str| {
        let [from, to] = ["cpp", "so"].map(|end| folder.path().join(format!("{name}.{end}")));
        std::fs::write(&from, source).expect("a file");
        shared_object(&from, &to);
        to
    };
    let (orchestration, plugin) =
        (compiled("orchestrate", ORCHESTRATION_CPP), compiled("calls", CALLS));
    let device = SharedDevice::open_sim(DeviceOptions::default()).expect("a device");
    device.with(|device| device.register_library()).expect("no run").expect("its own ids");
    let [input, output] = [(); 2].map(|()| device.memory().alloc(64).expect("room").0);
    device.memory().copy_to_device(pto_host::abi::GmAddr(input), &[0; 64]).expect("it fits");
    let path = CString::new(plugin.as_os_str().as_encoded_bytes()).expect("a path");
    let run = |case: u64, variant: RuntimeVariant, is_watched: bool| -> Result<(), Failure> {
        let options = RunOptions::default();
        let mut runtime = if is_watched {
            FieldRuntime::watched(&device, &options)?
        } else {
            FieldRuntime::new(&device, &options)?
        };
        let mut words = [path.as_ptr().expose_provenance() as u64, case, input, output];
        // SAFETY: the function reads these words; the path lives until it returns.
        unsafe { runtime.orchestrate(&orchestration, "orchestrate", &mut words) }?;
        runtime.run(variant, &options, &RunControl::default()).map(drop)
    };
    let (plain, streaming) =
        (RuntimeVariant::AICPU_BUILD_GRAPH, RuntimeVariant::TENSORMAP_AND_RINGBUFFER);
    let bad = [
        (1, plain, "task 0: exp: argument 0, a, reaches to byte 68 of the allocation at"),
        (1, streaming, "task 0: exp: argument 0, a, reaches to byte 68 of the allocation at"),
        (3, streaming, "task 1: exp: argument 0, a, reaches to byte 68 of the tensor at"),
        (4, streaming, "task 1: exp runs on aiv cores, and the task is for aic"),
        (5, streaming, "task 1: exp takes 3 arguments (a, out, n), and the task has 2"),
        (6, streaming, "task 1: exp: argument 0, a, is an address, and 0x0 lies in no allocation"),
        (7, streaming, "task 2: exp: argument 1, out, reaches to byte 96 of the allocation at"),
    ];
    for is_watched in [false, true] {
        for (case, variant, said) in bad {
            let failure = run(case, variant, is_watched).expect_err(said);
            assert!(failure.is(FailureKind::KERNEL_CALL), "{case}: {failure}");
            assert!(failure.message.contains("`build_graph_aicpu`"), "{case}: {failure}");
            assert!(failure.message.contains(said), "{case}: {failure}");
        }
        for (case, variant) in [(0, plain), (0, streaming), (2, streaming)] {
            run(case, variant, is_watched).unwrap_or_else(|failure| panic!("{case}: {failure}"));
        }
    }
}
