//! Calls of library kernels that their kernels cannot take: refused before anything runs, with the task, the kernel and the argument.

use std::num::NonZeroUsize;

use pto_aicore_kernels::dag_value;
use pto_host::abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_host::graph::{
    Arg, Bindings, BuildError, Chain, ChainTemplate, ElementType, GraphBuilder, Link, NoBuilders,
    StreamBuilder, TaskRange, TaskSpec, TensorRange, TensorTask, TensorView, builder_set,
};
use pto_host::session::{SessionError, SessionOptions, Submitted};
use pto_host::{
    Device, DeviceBuffer, DeviceOptions, Error, GraphImage, HostGraph, Hosting, Kernel, RunOptions,
    Work, func,
};

const N: u64 = 4;

fn device() -> Device {
    let hosting = Hosting::Pool { os_threads: NonZeroUsize::MIN };
    let options = DeviceOptions { aic: 4, aiv: 8, gm_bytes: 16 << 20, hosting };
    let mut device = Device::open_sim(options, NoBuilders).expect("16 MiB");
    device.register_library().expect("an empty table");
    device
}

fn tensors(device: &Device) -> [DeviceBuffer<f32>; 2] {
    [(); 2].map(|()| device.zeroed::<f32>(4).expect("room"))
}

/// A graph of this task after one that does nothing.
fn graph(device: &Device, task: TaskSpec<'_>) -> GraphImage {
    HostGraph::build(device, &[], |graph| {
        let first = graph.submit(TaskSpec::new(func::EMPTY_AIC, CoreKind::AIC, &[]), &[])?;
        graph.submit(task, &[first])?;
        Ok(())
    })
    .expect("a graph")
}

fn refused(device: &mut Device, image: &GraphImage, words: &[&str]) {
    let error = match device.run(Work::HostGraph(image), &RunOptions::default()) {
        Err(Error::Call { what }) => what,
        other => panic!("{words:?}: {other:?}"),
    };
    for word in words {
        assert!(error.contains(word), "no {word:?} in {error:?}");
    }
}

/// A task may bring the address of its code. A core would begin there, whatever is there.
#[test]
fn code_that_is_no_kernel_is_refused() {
    let mut device = device();
    for (address, kind) in [(8, CoreKind::AIV), (u64::MAX, CoreKind::AIC)] {
        let task = TaskSpec { kernel: GmAddr(address), ..TaskSpec::new(FuncId(0), kind, &[]) };
        let alone =
            HostGraph::build(&device, &[], |graph| Ok(graph.submit(task, &[]).map(|_| ())?));
        let said = format!("no kernel that is registered has its code at {}", GmAddr(address));
        refused(&mut device, &alone.unwrap(), &["task 0", &said]);
        let second = graph(&device, task);
        refused(&mut device, &second, &["task 1", &said]);
        refused(&mut device, &GraphImage::from_bytes(second.to_bytes()), &[&said]);
    }
}

/// Arguments of `exp` that it does not take, and what is said of each.
fn wrong_calls(a: u64, out: u64) -> Vec<(Vec<u64>, &'static [&'static str])> {
    let nowhere: &[&str] = &["exp: argument 0, a, is an address, and ", "lies in no allocation"];
    vec![
        (vec![a, out], &["exp takes 3 arguments (a, out, n), and the task has 2"]),
        (vec![], &["exp takes 3 arguments", "has 0"]),
        (vec![a, out, N, 7], &["exp takes 3 arguments", "has 4"]),
        (vec![0, out, N], nowhere),
        (vec![a + (8 << 20), out, N], nowhere),
        (vec![a, 64, N], &["argument 1, out, is an address, and 0x40 lies in no allocation"]),
        (vec![a, out, N + 1], &["argument 0, a, reaches to byte 20 of the allocation at ", "16"]),
        (vec![a, out + 4, N], &["argument 1, out, reaches to byte 20 of the allocation"]),
        (vec![a, out, 500_000_000], &["argument 0, a, reaches to byte 2000000000 of"]),
        (vec![a, out, u64::MAX], &["argument 0, a, reaches to byte more than 2^64 of"]),
        (vec![a + 2, out, 2], &["argument 0, a, begins at byte 2 of", "a multiple of 4"]),
    ]
}

#[test]
fn a_graph_with_a_wrong_call_is_refused_and_the_device_goes_on() {
    let mut device = device();
    let [a, out] = tensors(&device);
    let right = [a.address().0, out.address().0, N];
    for (args, words) in wrong_calls(right[0], right[1]) {
        let image = graph(&device, TaskSpec::new(func::EXP, CoreKind::AIV, &args));
        let read = GraphImage::from_bytes(image.to_bytes());
        for image in [&image, &read] {
            refused(&mut device, image, &[&["task 1: "], words].concat());
        }
    }
    let kind = graph(&device, TaskSpec::new(func::EXP, CoreKind::AIC, &right));
    refused(&mut device, &kind, &["task 1: exp runs on aiv cores, and the task is for aic"]);
    let kind = graph(&device, TaskSpec::new(func::EMPTY_AIV, CoreKind::AIC, &[]));
    refused(&mut device, &kind, &["task 1: empty_aiv runs on aiv cores"]);
    // Of no elements, the address is not used.
    for args in [right, [0, 0, 0]] {
        let image = graph(&device, TaskSpec::new(func::EXP, CoreKind::AIV, &args));
        let report = device.run(Work::HostGraph(&image), &RunOptions::default()).expect("it runs");
        assert_eq!((report.tasks, out.read().unwrap()), (2, vec![1.0; 4]));
    }
}

/// What was right when a graph was checked may be wrong later; then it is checked again.
#[test]
fn memory_that_was_freed_and_that_of_the_runtime_are_refused() {
    let mut device = device();
    let [a, out] = tensors(&device);
    let words = [a.address().0, out.address().0, N];
    let image = graph(&device, TaskSpec::new(func::EXP, CoreKind::AIV, &words));
    for _ in 0..2 {
        device.run(Work::HostGraph(&image), &RunOptions::default()).expect("it runs");
    }
    // The arena is somewhere after the tensors.
    let (start, bytes) = (device.gm_address().0, device.describe().gm_bytes);
    let unallocated = (start..start + bytes)
        .step_by(4096)
        .filter(|address| device.allocation(GmAddr(*address)).is_none());
    for address in unallocated.collect::<Vec<_>>() {
        let args = [words[0], address, N];
        let image = graph(&device, TaskSpec::new(func::EXP, CoreKind::AIV, &args));
        refused(&mut device, &image, &["argument 1, out, is an address"]);
    }
    drop(a);
    refused(&mut device, &image, &["exp: argument 0, a, is an address", "not freed"]);
}

/// Of the other kernels, the words say how much memory there is at least.
#[test]
fn sizes_of_kernels_without_matrices_are_checked() {
    let mut device = device();
    let table = device.zeroed::<u64>(4).unwrap();
    let (at, float) = (table.address().0, u64::from(ElementType::F32.get()));
    for (func, kind, args, says) in [
        (
            func::DAG_NODE_AIC,
            CoreKind::AIC,
            &[4, 0, at, at, at, 0][..],
            "values, reaches to byte 40",
        ),
        (
            func::DAG_NODE_AIV,
            CoreKind::AIV,
            &[0, 0, at, at, at, 9],
            "producers, reaches to byte 36",
        ),
        (func::DAG_NODE_AIV, CoreKind::AIV, &[u64::MAX, 0, at, at, at, 0], "values, reaches to"),
        (func::MOE_ROUTE, CoreKind::AIV, &[at, at, at, 4, 2, 3, 2], "experts, reaches to byte 48"),
        (func::PART_AIV, CoreKind::AIV, &[at + 8, 0, 0], "cells, reaches to byte 40"),
        (
            func::REDUCE,
            CoreKind::AIV,
            &[at, at, at, 9, float | 9 << 16, 0],
            "a, reaches to byte 36",
        ),
        (func::TILE_AIV, CoreKind::AIV, &[at, 33, at, at, 0, at], "code, reaches to byte 33"),
        // The last of three parts comes after two others of 64 elements each.
        (
            func::REDUCE,
            CoreKind::AIV,
            &[at, at, at, 2, float | 2 << 16, 3],
            "b, reaches to byte 520",
        ),
        (
            func::DAG_NODE_AIV,
            CoreKind::AIV,
            &[0, 0, at + 4, at, at, 0],
            "values, begins at byte 4 of the allocation",
        ),
        // What takes no memory takes time.
        (
            func::COPY,
            CoreKind::AIV,
            &[at, at, 1 << 40, 1, 0, 0],
            "a, has 1099511627776 rows or columns that take no memory",
        ),
        (func::COPY, CoreKind::AIV, &[0, 0, 1 << 40, 0, 9, 9], "a, has 1099511627776 rows"),
        (func::COPY, CoreKind::AIV, &[0, 0, 0, 1 << 40, 9, 9], "a, has 1099511627776 rows"),
        // The number of tokens of an expert is in memory.
        (
            func::MOE_GATHER,
            CoreKind::AIV,
            &[at, at, at, at, at, 1, 1, 1, 1, 1],
            "list, is used as far as numbers in memory say",
        ),
    ] {
        let image = graph(&device, TaskSpec::new(func, kind, args));
        refused(&mut device, &image, &["task 1: ", says]);
    }
}

/// Numbers that memory holds do not lead a node out of what its words say.
#[test]
fn producers_that_are_not_before_their_node_are_none() {
    let mut device = device();
    let values = device.upload(&[7_u64, 0]).unwrap();
    let counters = device.zeroed::<u32>(2).unwrap();
    let producers = device.upload(&[u32::MAX, 0, 1, 1 << 30]).unwrap();
    let args = [1, 3, values.address().0, counters.address().0, producers.address().0, 4];
    let image = graph(&device, TaskSpec::new(func::DAG_NODE_AIV, CoreKind::AIV, &args));
    device.run(Work::HostGraph(&image), &RunOptions::default()).expect("it runs");
    assert_eq!(values.read().unwrap()[1], dag_value(3, 1, [7].into_iter()));
}

/// A kernel of one's own declares its cores, and nothing else.
#[test]
fn of_a_kernel_of_ones_own_the_cores_are_checked() {
    unsafe extern "C" fn nothing(_: *const u64) {}
    let mut device = device();
    let own = FuncId(200);
    device.register_kernel(own, Kernel::from_fn("own", CoreKind::AIV, nothing)).unwrap();
    let image = graph(&device, TaskSpec::new(own, CoreKind::AIC, &[1, 2]));
    refused(&mut device, &image, &["task 1: own runs on aiv cores, and the task is for aic"]);
    let image = graph(&device, TaskSpec::new(own, CoreKind::AIV, &[1, 2]));
    device.run(Work::HostGraph(&image), &RunOptions::default()).expect("any words");
}

#[test]
fn a_launch_that_its_kernel_cannot_take_is_refused_and_the_stream_goes_on() {
    let session = device().session(SessionOptions::default()).unwrap();
    let (a, out) = (session.zeroed::<f32>(4).unwrap(), session.zeroed::<f32>(4).unwrap());
    let stream = session.stream().unwrap();
    let refusal = |refused: Result<Submitted, SessionError>| match refused {
        Err(SessionError::Device(error)) if matches!(*error, Error::Call { .. }) => {
            error.to_string()
        }
        other => panic!("{other:?}"),
    };
    let right = [a.address().0, out.address().0, N];
    for (args, words) in wrong_calls(right[0], right[1]) {
        let error = refusal(stream.launch(func::EXP, &args));
        assert!(words.iter().all(|word| error.contains(word)), "{words:?} in {error:?}");
    }
    let cells = refusal(stream.launch_blocks(func::PART_AIV, 2, &[out.address().0, 0, 0]));
    assert!(cells.contains("cells, reaches to byte 64"), "{cells}");

    // What is captured is checked at once, and again with what is bound later.
    let short = session.zeroed::<f32>(2).unwrap();
    for launches in [1, 9] {
        stream.begin_capture().unwrap();
        refusal(stream.launch(func::EXP, &[0, right[1], N]));
        for _ in 0..launches {
            stream.launch(func::EXP, &right).unwrap();
        }
        let recording = stream.end_capture().unwrap();
        stream.launch_recording(&recording, &[]).unwrap();
        stream.synchronize().unwrap();
        let bindings = [(a.address(), short.address())];
        let late = stream.launch_recording(&recording, &bindings).map(drop);
        let late = late.and_then(|()| stream.synchronize()).unwrap_err().to_string();
        assert!(late.contains("exp: argument 0, a, reaches to byte 16 of"), "{launches}: {late}");
    }
    stream.launch(func::EXP, &right).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(out.read().unwrap(), [1.0; 4]);
}

builder_set! {
    /// Programs that call `exp` with words of the host's choice.
    struct CallPrograms { "words" => words, "chain" => chain, "template" => template, "range" => range }
    stream {
        "tensors" => tensors_of_a_task, "tensor range" => tensors_of_a_range, "replay" => replayed
    }
}

fn words<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let args = graph.orch_args().to_vec();
    graph.submit(TaskSpec::new(func::EMPTY_AIC, CoreKind::AIC, &[]), &[])?;
    graph.submit(TaskSpec::new(func::EXP, CoreKind::AIV, &args), &[])?;
    Ok(())
}

fn chain<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let args = graph.orch_args().to_vec();
    graph.submit(TaskSpec::new(func::EMPTY_AIC, CoreKind::AIC, &[]), &[])?;
    let links = [
        Link::new(TaskSpec::new(func::EMPTY_AIV, CoreKind::AIV, &[])),
        Link::new(TaskSpec::new(func::EXP, CoreKind::AIV, &args)),
    ];
    graph.submit_chain(&Chain::new(&links), &[])?;
    Ok(())
}

fn template<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let args = graph.orch_args().to_vec();
    graph.submit(TaskSpec::new(func::EMPTY_AIC, CoreKind::AIC, &[]), &[])?;
    let links = [Link::new(TaskSpec::new(func::EXP, CoreKind::AIV, &args)).times(2)];
    let mut filled = ChainTemplate::new();
    graph.fill_template(&mut filled, &Chain::new(&links))?;
    graph.submit_template(&filled, &[])?;
    Ok(())
}

fn range<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let args = graph.orch_args().to_vec();
    graph.submit(TaskSpec::new(func::EMPTY_AIC, CoreKind::AIC, &[]), &[])?;
    let task = TaskSpec::new(func::EXP, CoreKind::AIV, &args);
    let mut ids = [TaskId::NONE; 3];
    graph.submit_range(&TaskRange::new(task).times(3), &mut ids)?;
    Ok(())
}

/// The words that are addresses as tensors of 16 bytes.
fn with_tensors<R>(words: &[u64], submit: impl FnOnce(&[Arg<'_>]) -> R) -> R {
    let views: Vec<_> =
        words.iter().map(|word| TensorView::dense(GmAddr(*word), ElementType::F32, &[4])).collect();
    let args: Vec<_> = words
        .iter()
        .zip(&views)
        .enumerate()
        .map(|(at, (word, view))| match at {
            0 => Arg::In(view),
            1 => Arg::Out(view),
            _ => Arg::Scalar(*word),
        })
        .collect();
    submit(&args)
}

fn tensors_of_a_task<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let words = stream.orch_args().to_vec();
    stream.submit(TaskSpec::new(func::EMPTY_AIC, CoreKind::AIC, &[]), &[])?;
    with_tensors(&words, |args| {
        stream.submit_tensors(&TensorTask::new(func::EXP, CoreKind::AIV, args))
    })?;
    Ok(())
}

fn tensors_of_a_range<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let words = stream.orch_args().to_vec();
    stream.submit(TaskSpec::new(func::EMPTY_AIC, CoreKind::AIC, &[]), &[])?;
    with_tensors(&words, |args| {
        let task = TensorTask::new(func::EXP, CoreKind::AIV, args);
        let mut ids = [TaskId::NONE; 2];
        stream.submit_tensor_range(&TensorRange::new(task).times(2), &mut ids)
    })?;
    Ok(())
}

/// Records the call of another size, and replays it with the words.
fn replayed<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let [a, out, n] = *stream.orch_args() else { return Err(BuildError::Failed(3)) };
    let view = |at| TensorView::dense(GmAddr(at), ElementType::F32, &[4]);
    let (a, out) = (view(a), view(out));
    let recorded = stream.record(&[a, out], |stream, bound| {
        let (a, out) = (bound.tensor(0), bound.tensor(1));
        let args = [Arg::In(&a), Arg::Out(&out), bound.scalar(0)];
        stream.submit_tensors(&TensorTask::new(func::EXP, CoreKind::AIV, &args))?;
        Ok::<_, Fault>(())
    })?;
    stream.replay(&recorded, &Bindings { tensors: &[a, out], scalars: &[n] })?;
    Ok(())
}

fn device_with_programs() -> Device {
    let hosting = Hosting::Pool { os_threads: NonZeroUsize::MIN };
    let options = DeviceOptions { aic: 4, aiv: 8, gm_bytes: 512 << 20, hosting };
    let mut device = Device::open_sim(options, CallPrograms).expect("512 MiB");
    device.register_library().expect("an empty table");
    device
}

/// The run of a program with these words, on the device itself or while it adds to a stream.
fn program<'a>(builder: &'a str, orch_args: &'a [u64], streams: bool) -> Work<'a> {
    if streams {
        Work::Stream { builder, orch_args }
    } else {
        Work::AicpuBuilder { builder, orch_args }
    }
}

#[test]
fn a_wrong_call_of_a_builder_program_is_refused_and_the_device_goes_on() {
    let mut device = device_with_programs();
    let [a, out] = tensors(&device);
    let right = [a.address().0, out.address().0, N];
    for (builder, streams) in [
        ("words", false),
        ("chain", false),
        ("template", false),
        ("range", false),
        ("words", true),
        ("chain", true),
        ("template", true),
        ("range", true),
    ] {
        for (args, words) in wrong_calls(right[0], right[1]) {
            let work = program(builder, &args, streams);
            let error = match device.run(work, &RunOptions::default()) {
                Err(Error::Call { what }) => what,
                other => panic!("{builder}, {words:?}: {other:?}"),
            };
            assert!(error.contains("task 1: "), "{builder}: {error}");
            assert!(
                words.iter().all(|word| error.contains(word)),
                "{builder}: {words:?} in {error}"
            );
        }
        let work = program(builder, &right, streams);
        device.run(work, &RunOptions::default()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(out.read().unwrap(), [1.0; 4], "{builder}");
    }
}

#[test]
fn a_wrong_call_on_tensors_is_refused_and_the_device_goes_on() {
    let mut device = device_with_programs();
    let [a, out] = tensors(&device);
    let right = [a.address().0, out.address().0, N];
    for builder in ["tensors", "tensor range", "replay"] {
        for wrong in [[0, right[1], N], [right[0], 64, N], [right[0], right[1], N + 1]] {
            let work = program(builder, &wrong, true);
            let error = match device.run(work, &RunOptions::default()) {
                Err(Error::Call { what }) => what,
                other => panic!("{builder}, {wrong:?}: {other:?}"),
            };
            assert!(error.contains("exp: argument "), "{builder}: {error}");
        }
        let work = program(builder, &right, true);
        device.run(work, &RunOptions::default()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(out.read().unwrap(), [1.0; 4], "{builder}");
    }
}
