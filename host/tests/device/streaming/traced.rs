//! Timelines of streams that are longer than their windows: every task is there once, with its own moments.

use pto_host::abi::{CoreKind, FuncId, GmAddr, TaskId};
use pto_host::graph::{Arg, BuildError, ElementType, StreamBuilder, TensorTask, TensorView};
use pto_host::timeline::{Analysis, Edge, Task, Trace, file};
use pto_host::virtual_time::VirtualOptions;
use pto_host::{Hosting, RunOptions, TraceOptions, WhenFull, Work, func};

use super::support::{open, pool, small};

const TASKS: u32 = 20_000;
const WINDOW: u32 = 256;
/// Chains of tasks, one after the other in turn.
const CHAINS: u32 = 7;

/// The kernel of a task, and its further kernels on the same cluster.
fn kernels(number: u32) -> (FuncId, CoreKind, &'static [FuncId]) {
    match number % 5 {
        4 => (func::EMPTY_AIC, CoreKind::AIC, &[func::EMPTY_AIV]),
        2 | 3 => (func::EMPTY_AIC, CoreKind::AIC, &[]),
        _ => (func::EMPTY_AIV, CoreKind::AIV, &[]),
    }
}

/// Tasks of several kinds in chains; one in a hundred waits for the very first one as well.
pub(crate) fn chains<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let [base, tasks] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    let (base, tasks) = (GmAddr(*base), u32::try_from(*tasks).unwrap_or(0));
    let tensor = TensorView::dense(base, ElementType::U32, &[CHAINS, 16]);
    let mut first: Option<TaskId> = None;
    for number in 0..tasks {
        let (func_id, kind, mix) = kernels(number);
        let own = tensor.slice(0, number % CHAINS, 1);
        let args = [Arg::Scalar(9), Arg::InOut(&own)];
        let task = TensorTask::new(func_id, kind, &args).mix(mix);
        let after = if number % 100 == 99 { first.as_slice() } else { &[] };
        let id = stream.submit_tensors(&task.after(after))?;
        first.get_or_insert(id);
    }
    Ok(())
}

fn traced(hosting: Hosting, trace: TraceOptions) -> Trace {
    let mut device = open(hosting);
    let words = device.zeroed::<u32>(CHAINS as usize * 16).unwrap();
    let mut options = RunOptions { trace: Some(trace), ..small(WINDOW) };
    options.capacities.edges = 6 * 256;
    options.capacities.stream.map_entries = 1024;
    let orch_args = [words.address().0, TASKS.into()];
    let work = Work::Stream { builder: "chains", orch_args: &orch_args };
    let report = device.run(work, &options).unwrap_or_else(|error| panic!("{hosting}: {error}"));
    assert_eq!(report.tasks, u64::from(TASKS));
    *report.trace.unwrap()
}

/// Its moments are there, and in order.
fn is_whole(task: &Task) -> bool {
    let at = task.at;
    let own = [at.ready, at.dispatched, at.started, at.finished, at.completed];
    at.added.is_some()
        && at.added <= at.published
        && own.iter().all(Option::is_some)
        && own.is_sorted()
        && task.core.is_some()
        && task.scheduler.is_some()
}

#[test]
fn every_task_of_a_long_stream_is_there_once() {
    let wait = TraceOptions { when_full: WhenFull::Wait, ..TraceOptions::default() };
    let seeded = Hosting::Virtual(VirtualOptions::default());
    for hosting in [pool(1), pool(2), Hosting::Threads, seeded] {
        let trace = traced(hosting, wait);
        assert_eq!((trace.tasks.len(), trace.dropped()), (TASKS as usize, 0), "{hosting}");
        for (number, task) in (0_u32..).zip(&trace.tasks) {
            let (func_id, kind, _) = kernels(number);
            let way = format!("{hosting}, task {number}: {task:?}");
            assert_eq!((task.func_id, task.kind), (func_id.0, kind), "{way}");
            assert!(is_whole(task), "{way}");
        }
        let of = |number: u32| trace.task(number).unwrap().at;
        for Edge { producer, consumer } in &trace.edges {
            let is_of_first = (*producer, consumer % 100) == (0, 99) && *consumer <= WINDOW;
            assert!(producer + CHAINS == *consumer || is_of_first, "{producer} to {consumer}");
            assert!(of(*producer).finished <= of(*consumer).started, "{producer} to {consumer}");
        }
        assert!(trace.edges.len() > 1000, "{hosting}: {}", trace.edges.len());
        // Every fifth task has two parts.
        let parts = |number: u32| trace.parts.iter().filter(move |part| part.task == number);
        assert_eq!(trace.parts.len(), 2 * TASKS as usize / 5, "{hosting}");
        for number in [4, 10_004, TASKS - 1] {
            let of_lanes: Vec<_> = parts(number).map(|part| part.run.func_id).collect();
            assert_eq!(of_lanes, [func::EMPTY_AIC.0, func::EMPTY_AIV.0], "{hosting}");
            assert!(parts(number).all(|part| is_whole(&part.run)), "{hosting}");
        }
        let analysis = Analysis::of(&trace).unwrap();
        assert!(analysis.over_bound() >= 1.0, "{hosting}");
    }
}

#[test]
fn a_long_timeline_goes_through_its_file() {
    let wait = TraceOptions { when_full: WhenFull::Wait, ..TraceOptions::default() };
    let trace = traced(pool(1), wait);
    let mut bytes = Vec::new();
    file::write(&trace, &mut bytes).unwrap();
    assert!(file::read(&bytes).unwrap() == trace);
}

/// Rings that drop events know one end of the stream, and say how much of it.
#[test]
fn an_end_of_a_long_stream_is_said_to_be_one() {
    for when_full in [WhenFull::DropOldest, WhenFull::KeepOldest] {
        let trace = TraceOptions { instance_events: Some(2048), core_events: Some(512), when_full };
        let trace = traced(pool(1), trace);
        let known = trace.tasks.len();
        assert!((100..2048).contains(&known), "{when_full:?}: {known}");
        assert_eq!(trace.run["recorded"], format!("{known} of {TASKS} tasks"));
        let whole = trace.tasks.iter().filter(|task| is_whole(task)).count();
        assert!(whole > 50, "{when_full:?}: {whole}");
        assert!(trace.edges.iter().all(|edge| edge.producer < edge.consumer));
    }
}
