//! Timelines of real runs: recorded in every hosting mode, runtime variant and fanout strategy, they are whole,
//! in order, and what the graph says; full rings say what they dropped.

use std::num::NonZeroUsize;
use std::sync::Arc;

use pto_bench::csr::Csr;
use pto_bench::family::Family;
use pto_bench::program::{GraphJob, Kernel, NAME, Program};
use pto_host::abi::trace::TraceOwner;
use pto_host::abi::{CoreKind, FanoutStrategy, Fault, RuntimeVariant};
use pto_host::graph::{GraphBuilder, TaskSpec};
use pto_host::timeline::{Analysis, Task, Trace};
use pto_host::virtual_time::VirtualOptions;
use pto_host::{
    Capacities, Device, DeviceOptions, Error, HostGraph, Hosting, RunOptions, TraceOptions,
    WhenFull, Work, func,
};

const TASKS: u32 = 2000;
const SHAPES: [&str; 4] = ["chain", "independent", "fork_join", "wavefront"];
/// What the device's program was given to build.
const WORK: Work<'_> = Work::AicpuBuilder { builder: NAME, orch_args: &[] };

fn hostings() -> [Hosting; 4] {
    let pool = |n| Hosting::Pool { os_threads: NonZeroUsize::new(n).expect("not zero") };
    [pool(1), pool(3), Hosting::Threads, Hosting::Virtual(VirtualOptions::default())]
}

/// A device whose program builds this graph.
fn open(hosting: Hosting, graph: &Csr) -> Device {
    let options = DeviceOptions { aic: 4, aiv: 8, hosting, ..DeviceOptions::default() };
    let program = Program::default();
    program.assign(GraphJob { graph: Arc::new(graph.clone()), kernel: Kernel::Empty });
    let mut device = Device::open_sim(options, program).expect("the device opens");
    device.register_library().expect("the library registers once");
    device
}

fn graph(name: &str) -> Csr {
    Family::by_name(name).expect("a family").graph(TASKS)
}

fn options(graph: &Csr, trace: Option<TraceOptions>) -> RunOptions {
    let (tasks, edges) = (graph.tasks(), graph.edges());
    let capacities = Capacities { tasks, edges, ..Capacities::default() };
    RunOptions { capacities, trace, ..RunOptions::default() }
}

fn traced(device: &mut Device, options: &RunOptions) -> Trace {
    let report = device.run(WORK, options).expect("the run passes");
    *report.trace.expect("the run was recorded")
}

/// Every task has every moment, and one agent's or a happens-before's order is the clock's.
pub(crate) fn whole_and_in_order(trace: &Trace, way: &str) {
    for (slot, Task { core, scheduler, at, .. }) in trace.tasks.iter().enumerate() {
        let way = format!("{way}, task {slot}: {at:?}");
        assert!(at.added <= at.published && at.added.is_some(), "{way}");
        assert!(at.ready.is_some() && at.ready <= at.dispatched, "{way}");
        assert!(at.dispatched <= at.started && at.started <= at.finished, "{way}");
        assert!(at.started.is_some() && at.finished <= at.completed, "{way}");
        assert!(core.is_some() && scheduler.is_some(), "{way}");
    }
    for edge in &trace.edges {
        let [producer, consumer] =
            [edge.producer, edge.consumer].map(|slot| trace.task(slot).expect("a task"));
        assert!(producer.at.finished <= consumer.at.started, "{way}: {edge:?}");
    }
}

#[test]
fn every_way_to_run_is_traced() {
    for hosting in hostings() {
        for name in SHAPES {
            let graph = graph(name);
            let mut device = open(hosting, &graph);
            for &fanout in FanoutStrategy::ALL {
                let way = format!("{name}, {hosting}, {fanout}");
                let options =
                    RunOptions { fanout, ..options(&graph, Some(TraceOptions::default())) };
                let trace = traced(&mut device, &options);
                let (tasks, edges) = (graph.tasks(), graph.edges());
                assert_eq!(
                    (trace.tasks.len(), trace.edges.len() as u64),
                    (tasks as usize, edges),
                    "{way}"
                );
                assert_eq!(trace.dropped(), 0, "{way}: {:?}", trace.lanes);
                assert_eq!((trace.lanes.len(), trace.cores.len()), (4 + 12, 12), "{way}");
                whole_and_in_order(&trace, &way);
                let analysis = Analysis::of(&trace).expect("it can be analysed");
                assert!(analysis.over_bound() >= 1.0, "{way}");
                assert_eq!(analysis.tasks_timed, tasks as usize, "{way}");
            }
        }
    }
}

#[test]
fn a_graph_of_the_host_is_traced_with_its_kernels() {
    let mut device = open(Hosting::default(), &graph("chain"));
    let mut graph = HostGraph::new(&device, &[]);
    let first =
        graph.submit(TaskSpec::new(func::EMPTY_AIC, CoreKind::AIC, &[]), &[]).expect("a task");
    graph
        .submit(TaskSpec::new(func::SPIN_AIV, CoreKind::AIV, &[20_000]), &[first])
        .expect("a task");
    let image = graph.finish().expect("the graph is right");
    let options = RunOptions { trace: Some(TraceOptions::default()), ..RunOptions::default() };
    let report = device.run(Work::HostGraph(&image), &options).expect("the run passes");
    let trace = report.trace.expect("recorded");
    whole_and_in_order(&trace, "host");
    assert_eq!(trace.kernel(trace.tasks[1].func_id), "spin_aiv");
    assert_eq!(trace.run["runtime"], RuntimeVariant::HOST_BUILD_GRAPH.name());
    assert!(trace.tasks[1].duration_ns() > 20_000, "{:?}", trace.tasks[1]);
    assert_eq!(Analysis::of(&trace).expect("analysed").critical_path, [0, 1]);
}

#[test]
fn a_run_is_traced_only_if_it_is_asked_to_be() {
    let graph = graph("chain");
    for hosting in hostings() {
        let mut device = open(hosting, &graph);
        for trace in [None, Some(TraceOptions::default()), None, Some(TraceOptions::default())] {
            let report = device.run(WORK, &options(&graph, trace)).expect("the run passes");
            assert_eq!(report.trace.is_some(), trace.is_some(), "{hosting}");
            if let Some(trace) = &report.trace {
                // Nothing of an earlier run is left in the rings.
                assert_eq!(trace.tasks.len(), TASKS as usize);
                whole_and_in_order(trace, "again");
            }
        }
    }
}

#[test]
fn full_rings_keep_one_end_of_the_run_and_count_the_rest() {
    let graph = graph("chain");
    for when_full in [WhenFull::DropOldest, WhenFull::KeepOldest] {
        for hosting in hostings() {
            let trace =
                TraceOptions { instance_events: Some(256), core_events: Some(64), when_full };
            let trace = traced(&mut open(hosting, &graph), &options(&graph, Some(trace)));
            let way = format!("{hosting}, {when_full:?}");
            let builder = trace.lanes[0];
            assert_eq!(builder.owner, TraceOwner::Instance(0));
            // Added, published, edge of each task, and the first one's ready; and that of each task whose producer
            // had completed before: with OS threads any number of them.
            let causes = u64::from(3 * TASKS);
            let most = if matches!(hosting, Hosting::Virtual(_)) { causes } else { causes * 4 / 3 };
            assert_eq!(builder.read, 256, "{way}");
            assert!((causes..=most).contains(&(256 + builder.dropped)), "{way}: {builder:?}");
            let [first, last] =
                [0, TASKS - 1].map(|slot| trace.task(slot).expect("a task").at.added);
            let keeps = when_full == WhenFull::KeepOldest;
            assert_eq!((first.is_some(), last.is_some()), (keeps, !keeps), "{way}");
            let lanes = trace.lanes.iter().filter(|lane| matches!(lane.owner, TraceOwner::Core(_)));
            let core_events: u64 = lanes.map(|lane| lane.read + lane.dropped).sum();
            assert_eq!(core_events, u64::from(2 * TASKS), "{way}");
        }
    }
}

/// Rings of a few events each, and every event of the run arrives: the writers wait for the host.
#[test]
fn full_rings_that_wait_lose_nothing() {
    let graph = graph("wavefront");
    let trace =
        TraceOptions { instance_events: Some(64), core_events: Some(8), when_full: WhenFull::Wait };
    for hosting in hostings() {
        let mut device = open(hosting, &graph);
        // Cores stay in service, and the rings begin anew.
        for way in [format!("{hosting}"), format!("{hosting}, again")] {
            let trace = traced(&mut device, &options(&graph, Some(trace)));
            assert_eq!(trace.dropped(), 0, "{way}: {:?}", trace.lanes);
            assert_eq!(trace.edges.len() as u64, graph.edges(), "{way}");
            let builder = trace.lanes[0];
            assert!(builder.read > 50 * 64, "{way}: {builder:?}");
            whole_and_in_order(&trace, &way);
        }
    }
}

#[test]
fn a_run_that_fails_leaves_its_timeline() {
    let graph = graph("chain");
    let mut device = open(Hosting::default(), &graph);
    let mut options = options(&graph, Some(TraceOptions::default()));
    options.capacities.tasks = 100;
    let Err(Error::Fault { fault, report }) = device.run(WORK, &options) else {
        panic!("no fault")
    };
    assert_eq!(fault, Fault::BUILD_TASKS_FULL);
    let trace = report.trace.expect("recorded up to the fault");
    assert_eq!(trace.tasks.len(), 100);
    assert!(trace.tasks.iter().all(|task| task.at.published.is_some()));
}

#[test]
fn rings_that_no_memory_holds_are_refused() {
    let graph = graph("chain");
    let mut device = open(Hosting::default(), &graph);
    let trace = TraceOptions { instance_events: Some(u32::MAX), ..TraceOptions::default() };
    let refused = device.run(WORK, &options(&graph, Some(trace))).expect_err("refused").to_string();
    assert!(refused.contains("capacity trace"), "{refused}");
    let trace = TraceOptions { instance_events: Some(1 << 30), ..TraceOptions::default() };
    let refused = device.run(WORK, &options(&graph, Some(trace))).expect_err("refused").to_string();
    assert!(refused.contains("bytes of GM"), "{refused}");
    device.run(WORK, &options(&graph, None)).expect("the device is as before");
}
