//! The interface in C, called from here as a builder in C would.

extern crate std;

use core::ffi::c_void;
use core::ptr::with_exposed_provenance_mut;

use pto_abi::graph::{BuildError, EdgeOutcome, GraphBuilder, TaskSpec};
use pto_abi::{CoreKind, Fault, GmAddr, GmWindow, TaskId};
use std::vec::Vec;

use crate::calls::{
    Calls, aicpu_runtime_add_successor_conditional, aicpu_runtime_add_task,
    aicpu_runtime_publish_task,
};
use crate::{CBuilder, seat};

#[derive(Default)]
struct Graph {
    tasks: Vec<(u16, CoreKind, Vec<u64>)>,
    edges: Vec<(u32, u32)>,
    published: Vec<u32>,
}

impl GraphBuilder for Graph {
    fn orch_args(&self) -> &[u64] {
        &[]
    }
    fn add_task(&mut self, task: TaskSpec<'_>) -> Result<TaskId, Fault> {
        self.tasks.push((task.func_id.0, task.kind, task.args.to_vec()));
        Ok(TaskId { slot: u32::try_from(self.tasks.len()).unwrap() - 1, generation: 9 })
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
        Err(Fault::BUILD_GM_RANGE)
    }
}

/// Builds as the builder of `runtime` would; gives the graph and the fault of the run.
fn build(runtime: usize, build: impl FnOnce(*mut c_void)) -> (Graph, Option<Fault>) {
    let mut graph = Graph::default();
    let mut calls = Calls { graph: &mut graph, generation: 9, fault: None };
    seat::with(runtime, &mut calls, || build(with_exposed_provenance_mut(runtime))).unwrap();
    let fault = calls.fault;
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

#[test]
fn the_weak_default_says_that_there_is_no_builder() {
    let mut memory = [0_u64; 8];
    // SAFETY: memory of this test; nothing but its address is used.
    let window = unsafe { GmWindow::from_raw(memory.as_mut_ptr().cast(), 64, GmAddr(0)) };
    let built = CBuilder::new(window, 9).build(&mut Graph::default());
    assert_eq!(built, Err(BuildError::Fault(Fault::BUILD_NO_BUILDER)));
}
