//! The loader of `host_build_graph`: a builder that reads a graph image instead of running a program. It
//! goes through the same interface as every builder, so there is one path on which tasks come into being.

use heapless::Vec;
use pto_abi::graph::{GraphBuilder, TaskSpec};
use pto_abi::image::{CheckedImage, TaskRecord};
use pto_abi::limits::MAX_ARGS;
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};

/// Adds everything that the image holds, and publishes it. In topological order each task is published as
/// soon as it stands; otherwise all are added first.
///
/// # Errors
/// Those of [`GraphBuilder`].
pub(crate) fn load<G: GraphBuilder>(
    image: &CheckedImage<'_>,
    generation: u32,
    graph: &mut G,
) -> Result<(), Fault> {
    let count = image.task_count();
    if image.is_topological() {
        for slot in 0..count {
            let record = image.record(slot);
            submit(image, &record, TaskId { slot, generation }, graph)?;
        }
        return Ok(());
    }
    for slot in 0..count {
        add(image, &image.record(slot), graph)?;
    }
    for slot in 0..count {
        connect(image, &image.record(slot), TaskId { slot, generation }, graph)?;
    }
    Ok(())
}

/// Producers that are read before the task is submitted with all of them; a task with more is added edge by edge.
const PRODUCERS: usize = 32;

/// Adds, connects and publishes a task whose producers stand.
fn submit<G: GraphBuilder>(
    image: &CheckedImage<'_>,
    record: &TaskRecord,
    task: TaskId,
    graph: &mut G,
) -> Result<(), Fault> {
    let mut producers: Vec<TaskId, PRODUCERS> = Vec::new();
    for edge in record.first_edge..record.first_edge.saturating_add(record.edge_count) {
        let producer = TaskId { slot: image.producer(edge), ..task };
        if producers.push(producer).is_err() {
            add(image, record, graph)?;
            return connect(image, record, task, graph);
        }
    }
    with_spec(image, record, |spec| graph.submit(spec, &producers))?;
    Ok(())
}

// Not inlined: the way of few images, and of tasks with many producers.
#[inline(never)]
fn add<G: GraphBuilder>(
    image: &CheckedImage<'_>,
    record: &TaskRecord,
    graph: &mut G,
) -> Result<TaskId, Fault> {
    with_spec(image, record, |spec| graph.add_task(spec))
}

/// The task of a record, with a copy of its arguments.
#[inline]
fn with_spec(
    image: &CheckedImage<'_>,
    record: &TaskRecord,
    call: impl FnOnce(TaskSpec<'_>) -> Result<TaskId, Fault>,
) -> Result<TaskId, Fault> {
    let mut args: Vec<u64, { MAX_ARGS + 128 }> = Vec::new();
    for word in 0..u64::from(record.arg_count) {
        // 255 arguments are the most that a record can claim; the builder refuses more than MAX_ARGS.
        args.push(image.arg(u64::from(record.first_arg) + word)).unwrap_or_default();
    }
    let kind = CoreKind::try_from(record.kind).map_err(|_| Fault::BUILD_UNKNOWN_KIND)?;
    let kernel = GmAddr(record.kernel);
    call(TaskSpec { func_id: FuncId(record.func_id), kind, args: &args, kernel })
}

#[inline(never)]
fn connect<G: GraphBuilder>(
    image: &CheckedImage<'_>,
    record: &TaskRecord,
    consumer: TaskId,
    graph: &mut G,
) -> Result<(), Fault> {
    let generation = consumer.generation;
    for edge in record.first_edge..record.first_edge.saturating_add(record.edge_count) {
        graph.add_edge(TaskId { slot: image.producer(edge), generation }, consumer)?;
    }
    graph.publish(consumer)
}
