//! Graphs that are built on the host.

use std::sync::{Arc, Mutex, PoisonError};

use pto_host::abi::GmAddr;
use pto_host::graph::TaskSpec;
use pto_native::{Failure, GraphDraft, checked};

use crate::argument::{put_if_wanted, values};
use crate::error::{answer, answer_to};
use crate::handle;

/// A graph that is being built. Created by `pto_graph_create`, destroyed by `pto_graph_destroy`; it can be run any
/// number of times, on any device, and tasks can be added between runs.
#[derive(Debug)]
pub struct OpaqueGraph;

/// Creates an empty graph.
///
/// Fails when `graph` is null. Thread safety: any thread.
///
/// # Safety
/// `graph` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_graph_create(graph: *mut *mut OpaqueGraph) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe {
        answer_to(graph, "graph", || {
            let draft = Arc::new(Mutex::new(GraphDraft::default()));
            Ok(handle::open(draft))
        })
    }
}

/// Destroys a graph.
///
/// Fails with INVALID_HANDLE. Thread safety: any thread; a run that uses the graph keeps it.
#[unsafe(no_mangle)]
pub extern "C" fn pto_graph_destroy(graph: *mut OpaqueGraph) -> i32 {
    answer(|| handle::close(graph))
}

fn on<R>(
    graph: *const OpaqueGraph,
    act: impl FnOnce(&mut GraphDraft) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let graph = handle::get(graph)?;
    let mut draft = graph.lock().unwrap_or_else(PoisonError::into_inner);
    act(&mut draft)
}

/// Adds a task: `args` are `num_args` addresses and scalars, at most 128; `core_type` is 0 (AIC) or 1 (AIV). Its id,
/// which counts from 0, is in `task`.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, BUILD_UNKNOWN_FUNC, BUILD_UNKNOWN_KIND, BUILD_TOO_MANY_ARGS,
/// BUILD_TASKS_FULL; nothing was added. Thread safety: any thread; calls on one graph follow one another.
///
/// # Safety
/// `args` is null or readable for `num_args` words; `task` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_graph_add_task(
    graph: *const OpaqueGraph,
    func_id: i32,
    core_type: i32,
    args: *const u64,
    num_args: u32,
    task: *mut i32,
) -> i32 {
    let body = || {
        let (func_id, kind) = checked(func_id.into(), core_type.into())?;
        // SAFETY: the caller vouches for the pointers, here and below.
        let args = unsafe { values(args, num_args.into(), "args") }?;
        let spec = TaskSpec { func_id, kind, args, kernel: GmAddr::NULL };
        let id = on(graph, |graph| graph.add_task(spec))?;
        // The limit of tasks is far below the sign.
        Ok(i32::try_from(id).unwrap_or(i32::MAX))
    };
    // SAFETY: the caller vouches for the pointer.
    unsafe { answer_to(task, "task", body) }
}

/// Makes task `consumer` wait for task `producer`.
///
/// Fails with INVALID_HANDLE, BUILD_UNKNOWN_TASK, BUILD_SELF_EDGE; nothing was added. A cycle is found when the graph is
/// run. Thread safety: any thread; calls on one graph follow one another.
#[unsafe(no_mangle)]
pub extern "C" fn pto_graph_add_edge(
    graph: *const OpaqueGraph,
    producer: i32,
    consumer: i32,
) -> i32 {
    answer(|| on(graph, |graph| graph.add_edge(producer.into(), consumer.into())))
}

/// Says how many tasks and edges a graph has; either pointer may be null.
///
/// Fails with INVALID_HANDLE. Thread safety: any thread; calls on one graph follow one another.
///
/// # Safety
/// `tasks` and `edges` are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_graph_size(
    graph: *const OpaqueGraph,
    tasks: *mut u64,
    edges: *mut u64,
) -> i32 {
    answer(|| {
        let (task_count, edge_count) =
            on(graph, |graph| Ok((graph.graph().task_count(), graph.graph().edges().len())))?;
        for (to, count, name) in [(tasks, task_count, "tasks"), (edges, edge_count, "edges")] {
            // SAFETY: the caller vouches for the pointer.
            unsafe { put_if_wanted(to, name, count as u64) }?;
        }
        Ok(())
    })
}
