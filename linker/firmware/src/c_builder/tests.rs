//! The interface in C, called from here as a builder in C or C++ would.

extern crate std;

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::mem::offset_of;
use core::ptr::with_exposed_provenance_mut;

use pto_abi::foreign::{StreamArg, StreamTask, StreamTensor};
use pto_abi::runtime::{RunConfig, Runtime};
use pto_abi::{CoreKind, Fault, GmAddr, GmWindow, TaskId};
use pto_graph::{
    BuildError, BuilderSet, EdgeOutcome, ElementType, GraphBuilder, HostedBuilder, LaunchArgs,
    OpResult, StreamBuilder, StreamOp, Submission, TaskDesc, TensorView, link_and_publish,
};
use pto_native::foreign::Build;
use pto_native::foreign::object::{RuntimeObject, field};
use pto_native::foreign::stream::StreamVariation;
use std::boxed::Box;
use std::vec::Vec;

use crate::c_builder::calls::{
    aicpu_runtime_add_successor_conditional, aicpu_runtime_add_task, aicpu_runtime_publish_task,
    pto_stream_submit, pto_stream_submit_range,
};
use crate::c_builder::{DeviceBuilders, DeviceReads, build_c, build_cpp, build_slots};

#[derive(Default)]
struct Graph {
    tasks: Vec<(u16, CoreKind, Vec<u64>)>,
    edges: Vec<(u32, u32)>,
    published: Vec<u32>,
    words: Vec<u64>,
}

impl HostedBuilder for Graph {}

impl GraphBuilder for Graph {
    fn launch_args(&self) -> LaunchArgs<'_> {
        LaunchArgs::of(&self.words)
    }
    fn submit_desc(&mut self, submission: Submission<'_>) -> Result<Option<TaskId>, Fault> {
        let word = |arg: &pto_graph::Arg<'_>| match arg {
            pto_graph::Arg::Scalar(word) => *word,
            other => other.tensor().unwrap().address().0,
        };
        let Submission { desc, after, publish, .. } = submission;
        let (func_id, kind, args) = match desc {
            TaskDesc::Kernel(task) => (task.func_id, task.kind, task.args.to_vec()),
            TaskDesc::Tensors(task) => {
                (task.func_id, task.kind, task.args.iter().map(word).collect())
            }
            _ => return Ok(None),
        };
        self.tasks.push((func_id.0, kind, args));
        let id = TaskId { slot: u32::try_from(self.tasks.len()).unwrap() - 1, generation: 9 };
        link_and_publish(self, id, (after, publish))?;
        Ok(Some(id))
    }
    fn add_edge(&mut self, producer: TaskId, consumer: TaskId) -> Result<EdgeOutcome, Fault> {
        assert_eq!((producer.generation, consumer.generation), (9, 9));
        self.edges.push((producer.slot, consumer.slot));
        Ok(EdgeOutcome::Added)
    }
    fn publish(&mut self, task: TaskId) -> Result<(), Fault> {
        self.published.push(task.slot);
        Ok(())
    }
    fn read_u32(&self, _: GmAddr) -> Result<u32, Fault> {
        Ok(0)
    }
}

/// Builds as the builder of `runtime` would; gives the graph and the fault of the run.
fn build(runtime: usize, program: impl FnOnce(*mut c_void)) -> (Graph, Option<Fault>) {
    let mut graph = Graph::default();
    let mut build = Build::new(&mut graph);
    let runtime = with_exposed_provenance_mut(runtime);
    build_slots::with(runtime, &mut build, || program(runtime)).unwrap();
    let fault = build.fault();
    (graph, fault)
}

fn add(runtime: *mut c_void, args: &[u64], func_id: i32, core_type: i32) -> i32 {
    let count = i32::try_from(args.len()).unwrap();
    // SAFETY: the words are there; this is called from within `build`.
    unsafe { aicpu_runtime_add_task(runtime, args.as_ptr(), count, func_id, core_type, 0) }
}

fn edge(runtime: *mut c_void, from: i32, to: i32) -> i32 {
    // SAFETY: this is called from within `build`.
    unsafe { aicpu_runtime_add_successor_conditional(runtime, from, to) }
}

fn publish(runtime: *mut c_void, task: i32) -> i32 {
    // SAFETY: this is called from within `build`.
    unsafe { aicpu_runtime_publish_task(runtime, task) }
}

#[test]
fn calls_reach_the_graph() {
    let (graph, fault) = build(0x1000, |runtime| {
        assert_eq!((add(runtime, &[5, 6], 3, 0), add(runtime, &[], 4, 1)), (0, 1));
        assert_eq!(edge(runtime, 0, 1), 0);
        assert_eq!((publish(runtime, 0), publish(runtime, 1)), (0, 0));
    });
    assert_eq!(fault, None);
    assert_eq!(graph.tasks[0], (3, CoreKind::AIC, std::vec![5, 6]));
    assert_eq!(graph.tasks[1], (4, CoreKind::AIV, std::vec![]));
    assert_eq!((graph.edges, graph.published), (std::vec![(0, 1)], std::vec![0, 1]));
}

#[test]
fn the_first_failure_is_the_fault_and_nothing_is_done_after_it() {
    type Call = fn(*mut c_void) -> i32;
    let wrong: [(Fault, Call); 5] = [
        (Fault::BUILD_UNKNOWN_KIND, |runtime| add(runtime, &[], 0, 2)),
        (Fault::BUILD_UNKNOWN_FUNC, |runtime| add(runtime, &[], -1, 0)),
        (Fault::BUILD_TOO_MANY_ARGS, |runtime| add(runtime, &[0; 129], 0, 0)),
        (Fault::BUILD_UNKNOWN_TASK, |runtime| edge(runtime, -1, 0)),
        (Fault::BUILD_UNKNOWN_TASK, |runtime| publish(runtime, -1)),
    ];
    for (runtime, (expected, call)) in (0x2000..).step_by(64).zip(wrong) {
        let (graph, fault) = build(runtime, |runtime| {
            assert_eq!((call(runtime), add(runtime, &[], 0, 0)), (-1, -1));
        });
        assert_eq!((fault, graph.tasks.len()), (Some(expected), 0));
    }
}

#[test]
fn a_call_from_elsewhere_fails() {
    assert_eq!(publish(with_exposed_provenance_mut(0x7000), 0), -1);
    assert_eq!(publish(core::ptr::null_mut(), 0), -1);
}

/// An arena with nothing in it but what a launch says of itself.
fn arena() -> GmWindow<'static> {
    let words = Box::leak(std::vec![0_u64; size_of::<Runtime>() / 8 + 8].into_boxed_slice());
    let start = words.as_mut_ptr();
    let start = start.wrapping_add(start.align_offset(64));
    // SAFETY: memory that is never freed, and that nothing else refers to.
    let window =
        unsafe { GmWindow::from_raw(start.cast(), size_of::<Runtime>() as u64, GmAddr(0x4000)) };
    let config: RunConfig = window.read(offset_of!(Runtime, config) as u64).unwrap();
    let config = RunConfig { worker_count: 3, aicpu_instances: 2, build_mode: 1, ..config };
    window.write(offset_of!(Runtime, config) as u64, &config).unwrap();
    window.write(offset_of!(Runtime, kernel_addrs) as u64 + 8 * 5, &0x777_u64).unwrap();
    window
}

unsafe extern "C" fn in_c(runtime: *mut c_void) -> c_int {
    assert_eq!((add(runtime, &[1], 7, 1), publish(runtime, 0)), (0, 0));
    0
}

unsafe extern "C" fn in_cpp(runtime: *mut c_void) -> c_int {
    let object: *const RuntimeObject = runtime.cast();
    // SAFETY: the builder of a device calls this with an object; here and below.
    let read = |offset| unsafe { field::<c_int>(object, offset) };
    let fields = [offset_of!(RuntimeObject, worker_count), offset_of!(RuntimeObject, sche_cpu_num)];
    assert_eq!(fields.map(read), [3, 2]);
    assert_eq!(read(offset_of!(RuntimeObject, orch_argc)), 1);
    // SAFETY: the object lives until the builder returns.
    let object = unsafe { &*object };
    assert_eq!(
        (object.orch_args[0], object.kernel_addrs[5], object.kernel_addrs[6]),
        (42, 0x777, 0)
    );
    let api = object.aicpu_build_api;
    // SAFETY: no words are passed; memory is not followed.
    unsafe {
        assert_eq!((api.add_task)(runtime, core::ptr::null(), 0, 5, 0, 0x999), 0);
    }
    // SAFETY: the functions of the object accept the runtime of this call.
    let count = unsafe { (object.calls.get_task_count)(runtime) };
    assert_eq!(count, 1);
    // SAFETY: the functions of the object accept the runtime of this call.
    assert!(unsafe { (object.host_api.device_malloc)(64) }.is_null());
    // SAFETY: the functions of the object accept the runtime of this call.
    unsafe { (object.calls.record_device_alloc)(runtime, core::ptr::null_mut()) };
    // SAFETY: the functions of the object accept the runtime of this call.
    unsafe { (api.publish_task)(runtime, 0) };
    0
}

fn c<G: HostedBuilder>(graph: &mut G) -> Result<(), BuildError> {
    // SAFETY: the function is one for any runtime.
    unsafe { build_c(graph, in_c) }
}

fn cpp<G: HostedBuilder>(graph: &mut G) -> Result<(), BuildError> {
    // SAFETY: the function is one for class Runtime.
    unsafe { build_cpp(graph, in_cpp) }
}

fn streams<G: HostedBuilder>(graph: &mut G) -> Result<(), BuildError> {
    // SAFETY: the function is one for any runtime.
    unsafe { build_c(graph, submits) }
}

fn reads<G: HostedBuilder>(graph: &mut G) -> Result<(), BuildError> {
    graph.read_u32(GmAddr(0x80)).map(drop).map_err(BuildError::from)?;
    if let Some(stream) = graph.as_stream() {
        let view = TensorView::dense(GmAddr(0x100), ElementType::F64, &[4]);
        stream.get(&view, &[2])?;
        stream.set(&view, &[3], 1)?;
    }
    Ok(())
}

pto_graph::builder_set! {
    struct Set { "c" => c, "cpp" => cpp, "streams" => streams, "reads" => reads }
}

/// Notes what is looked at.
#[derive(Clone)]
struct Looks;

std::thread_local! {
    static LOOKS: Cell<Vec<(u64, u64)>> = const { Cell::new(Vec::new()) };
}

impl DeviceReads for Looks {
    fn look(&self, address: GmAddr, bytes: u64) {
        let mut looks = LOOKS.take();
        looks.push((address.0, bytes));
        LOOKS.set(looks);
    }
}

fn symbol(name: &str) -> u64 {
    pto_abi::symbol::symbol(name)
}

fn run(name: &str, graph: &mut Graph) -> Result<(), BuildError> {
    DeviceBuilders::new(Set, arena(), Looks).build(symbol(name), graph).unwrap()
}

#[test]
fn a_builder_in_c_is_one_of_the_set() {
    let mut graph = Graph::default();
    assert_eq!(run("c", &mut graph), Ok(()));
    assert_eq!((graph.tasks.len(), graph.published), (1, std::vec![0]));
    // Elsewhere than on a device there is no arena.
    assert_eq!(c(&mut Graph::default()), Err(Fault::BUILD_NO_BUILDER.into()));
}

#[test]
fn a_builder_in_cpp_gets_a_runtime_of_its_class() {
    let mut graph = Graph { words: std::vec![42], ..Graph::default() };
    // What only the host can do ends the build, and nothing is done after it.
    assert_eq!(run("cpp", &mut graph), Err(Fault::BUILD_HOST_ONLY.into()));
    assert_eq!((graph.tasks.len(), graph.published.len()), (1, 0));
}

unsafe extern "C" fn submits(runtime: *mut c_void) -> c_int {
    let task = StreamTask { struct_size: 16, func_id: 9, core_type: 1, ..StreamTask::default() };
    let args = [StreamArg { kind: 4, scalar: 77, ..StreamArg::default() }];
    // SAFETY: the pointers are those of values here.
    let number = unsafe {
        pto_stream_submit(runtime, &raw const task, args.as_ptr(), 1, core::ptr::null(), 0)
    };
    c_int::try_from(number).unwrap()
}

#[test]
fn tensors_are_for_runs_that_stream() {
    let mut graph = Graph::default();
    assert_eq!(run("streams", &mut graph), Err(Fault::BUILD_NOT_STREAMING.into()));
    let builders = DeviceBuilders::new(Set, arena(), Looks);
    assert_eq!(builders.build_stream(symbol("streams"), &mut graph), Some(Ok(())));
    assert_eq!(graph.tasks, [(9, CoreKind::AIV, std::vec![77])]);
    assert_eq!(graph.published, [0]);
}

/// A range of a tensor that grows by rows and of a scalar with a list; `count`: of its words, `tasks` of the range, `arg` which argument grows.
fn range(runtime: *mut c_void, (tasks, count, arg): (u32, u32, u32), after: &[i64]) -> i64 {
    let task = StreamTask { struct_size: 16, func_id: 9, core_type: 1, ..StreamTask::default() };
    let view = TensorView::dense(GmAddr(0x100), ElementType::F32, &[8, 4]).slice(0, 0, 1);
    let tensor = StreamTensor::from(&view);
    let args = [
        StreamArg { kind: 2, tensor, ..StreamArg::default() },
        StreamArg { kind: 4, scalar: 77, ..StreamArg::default() },
    ];
    let words = [5_u64, 6, 4];
    let varies = [
        StreamVariation { arg, count: 0, step: 16, words: core::ptr::null() },
        StreamVariation { arg: 1, count, step: 0, words: words.as_ptr() },
    ];
    let after_count = u32::try_from(after.len()).unwrap();
    // SAFETY: the pointers are those of values here, and as many as are said, or fewer.
    unsafe {
        pto_stream_submit_range(
            runtime,
            &raw const task,
            args.as_ptr(),
            2,
            after.as_ptr(),
            after_count,
            tasks,
            varies.as_ptr(),
            2,
        )
    }
}

unsafe extern "C" fn submits_ranges(runtime: *mut c_void) -> c_int {
    assert_eq!(range(runtime, (3, 3, 0), &[]), 0);
    // After the three of the first one; with more tasks to wait for than one submission may have.
    assert_eq!(range(runtime, (3, 3, 0), &[2; 33]), 3);
    assert_eq!(publish(runtime, 5), 0, "it has this number");
    0
}

unsafe extern "C" fn submits_a_long_range(runtime: *mut c_void) -> c_int {
    assert_eq!((range(runtime, (129, 3, 0), &[]), range(runtime, (3, 3, 0), &[])), (-1, -1));
    0
}

unsafe extern "C" fn submits_no_range(runtime: *mut c_void) -> c_int {
    assert_eq!(range(runtime, (0, 3, 0), &[]), -1);
    0
}

unsafe extern "C" fn submits_with_a_short_list(runtime: *mut c_void) -> c_int {
    assert_eq!(range(runtime, (3, 2, 0), &[]), -1);
    0
}

unsafe extern "C" fn submits_with_a_short_list_after_many(runtime: *mut c_void) -> c_int {
    assert_eq!(range(runtime, (3, 3, 0), &[]), 0);
    assert_eq!(range(runtime, (3, 2, 0), &[0; 33]), -1);
    0
}

unsafe extern "C" fn submits_with_an_argument_too_many(runtime: *mut c_void) -> c_int {
    assert_eq!(range(runtime, (3, 3, 2), &[]), -1);
    0
}

#[test]
fn a_range_is_its_tasks() {
    let build = |program| {
        let mut graph = Graph::default();
        let set = One(program);
        let builders = DeviceBuilders::new(set, arena(), Looks);
        let ended = builders.build_stream(symbol("one"), &mut graph).unwrap();
        (graph, ended)
    };
    let (graph, ended) = build(submits_ranges);
    assert_eq!(ended, Ok(()));
    let words = [[0x100, 5], [0x110, 6], [0x120, 4]];
    let expected = [words, words].concat();
    assert!(graph.tasks.iter().map(|task| &task.2[..]).eq(expected.iter().map(|words| &words[..])));
    assert_eq!(graph.published, [0, 1, 2, 3, 4, 5, 5]);
    let refused: [(_, usize, unsafe extern "C" fn(*mut c_void) -> c_int); 5] = [
        (Fault::BUILD_RANGE_LENGTH, 0, submits_a_long_range),
        (Fault::BUILD_RANGE_LENGTH, 0, submits_no_range),
        (Fault::BUILD_CHAIN_VARIES, 0, submits_with_a_short_list),
        (Fault::BUILD_CHAIN_VARIES, 3, submits_with_a_short_list_after_many),
        (Fault::BUILD_CHAIN_VARIES, 0, submits_with_an_argument_too_many),
    ];
    for (fault, tasks, program) in refused {
        let (graph, ended) = build(program);
        assert_eq!((ended, graph.tasks.len()), (Err(fault.into()), tasks));
    }
}

/// One program.
#[derive(Clone)]
struct One(unsafe extern "C" fn(*mut c_void) -> c_int);

impl BuilderSet for One {
    fn names(&self) -> &[&str] {
        &["one"]
    }
    fn build<G: HostedBuilder>(&self, _: u64, graph: &mut G) -> Option<Result<(), BuildError>> {
        // SAFETY: the function is one for any runtime.
        Some(unsafe { build_c(graph, self.0) })
    }
}

#[test]
fn what_the_host_wrote_is_looked_at_in_both_kinds_of_runs() {
    let builders = DeviceBuilders::new(Set, arena(), Looks);
    assert_eq!(builders.build(symbol("reads"), &mut Graph::default()), Some(Ok(())));
    assert_eq!(LOOKS.take(), [(0x80, 4)]);
    assert_eq!(builders.build_stream(symbol("reads"), &mut Graph::default()), Some(Ok(())));
    assert_eq!(LOOKS.take(), [(0x80, 4), (0x110, 8), (0x118, 8)]);
}

impl StreamBuilder for Graph {
    fn stream_op(&mut self, op: StreamOp<'_>) -> Result<OpResult, Fault> {
        match op {
            StreamOp::Get(..) => Ok(OpResult::Value(0)),
            StreamOp::Set(..) => Ok(OpResult::Done),
            _ => Err(Fault::STREAM_HEAP_RING),
        }
    }
}
