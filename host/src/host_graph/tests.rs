//! Graphs on the host: what is refused, what is found, what is emitted.

use pto_abi::image::CheckedImage;
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_graph::{BuildError, GraphBuilder, TaskSpec};

use super::{HostGraph, Limits};
use crate::device::tests::{device, options};
use crate::gm::Gm;
use crate::{Device, Error, GraphImage, func};

const NODE: TaskSpec<'_> = TaskSpec::new(func::EMPTY_AIV, CoreKind::AIV, &[5, 6]);

/// The producers of each task, as the firmware reads them.
fn producers(image: &GraphImage) -> (bool, Vec<Vec<u32>>) {
    let gm = Gm::map(1 << 16).unwrap();
    let window = gm.window().part(0, image.byte_count() as u64).unwrap();
    image.write_to(&window, 0).unwrap();
    let checked = CheckedImage::check(window).unwrap();
    let of_task = |task| {
        let task = checked.task(task);
        assert_eq!(checked.arg(u64::from(task.first_arg)), 5);
        let edges = task.first_edge..task.first_edge + task.edge_count;
        edges.map(|edge| checked.producer(edge)).collect()
    };
    (checked.is_topological(), (0..checked.task_count()).map(of_task).collect())
}

fn graph_of(device: &Device, tasks: u32, edges: &[(u32, u32)]) -> Result<GraphImage, Error> {
    let mut graph = HostGraph::new(device, &[]);
    let ids: Vec<TaskId> = (0..tasks).map(|_| graph.add_task(NODE).unwrap()).collect();
    for (producer, consumer) in edges {
        graph.add_edge(ids[*producer as usize], ids[*consumer as usize]).unwrap();
    }
    ids.iter().try_for_each(|id| graph.publish(*id)).unwrap();
    graph.finish()
}

#[test]
fn edges_in_any_order_reach_the_image_by_consumer() {
    let device = device();
    let (topological, of) =
        producers(&graph_of(&device, 4, &[(0, 1), (0, 2), (1, 3), (2, 3)]).unwrap());
    assert!(topological);
    assert_eq!(of, [vec![], vec![0], vec![0], vec![1, 2]]);
    let (topological, of) =
        producers(&graph_of(&device, 4, &[(2, 3), (0, 1), (1, 3), (0, 2)]).unwrap());
    assert!(topological);
    assert_eq!(of, [vec![], vec![0], vec![0], vec![2, 1]]);
    let (topological, of) = producers(&graph_of(&device, 3, &[(2, 1), (1, 0)]).unwrap());
    assert!(!topological);
    assert_eq!(of, [vec![1], vec![2], vec![]]);
}

#[test]
fn a_cycle_is_found_and_named() {
    let edges = [(9, 3), (0, 1), (3, 7), (7, 9), (9, 2), (1, 3)];
    let error = graph_of(&device(), 10, &edges).unwrap_err();
    assert_eq!(error.fault(), Some(Fault::GRAPH_CYCLE));
    assert!(error.to_string().contains("3 -> 7 -> 9 -> 3"), "{error}");
    let Error::Cycle { cycle } = error else { panic!("{error}") };
    assert_eq!(cycle.tasks(), [3, 7, 9]);
}

#[test]
fn a_large_cycle_is_found_in_a_large_graph() {
    let edges: Vec<_> = (0..50_000).map(|task| (task, (task + 1) % 50_000)).collect();
    let error = graph_of(&device(), 60_000, &edges).unwrap_err();
    let Error::Cycle { cycle } = error else { panic!("{error}") };
    assert_eq!(cycle.tasks().len(), 50_000);
}

#[test]
fn every_wrong_task_is_refused() {
    let device = device();
    let mut graph = HostGraph::new(&device, &[]);
    let mut refused = |task| graph.add_task(task).unwrap_err().name();
    let spec = |id, args| TaskSpec::new(FuncId(id), CoreKind::AIV, args);
    assert_eq!(refused(spec(1024, &[])), "BUILD_UNKNOWN_FUNC");
    assert_eq!(refused(spec(900, &[])), "BUILD_KERNEL_MISSING");
    assert_eq!(refused(spec(0, &[0; 129])), "BUILD_TOO_MANY_ARGS");
    assert_eq!(graph.task_count(), 0, "what is refused leaves nothing behind");
    graph.add_task(spec(0, &[0; 128])).unwrap();
    graph.add_task(TaskSpec { kernel: GmAddr(64), ..spec(900, &[]) }).unwrap();
}

#[test]
fn a_task_needs_a_core_of_its_kind() {
    let play = |_, _| crate::backend::fake::SUCCESS;
    let fake = crate::backend::fake::Fake::new(play);
    let mut device = Device::open_fake(options(0, 1, 1 << 16), fake).unwrap();
    device.register_library().unwrap();
    let cube = TaskSpec::new(func::EMPTY_AIC, CoreKind::AIC, &[]);
    let refused = HostGraph::new(&device, &[]).add_task(cube).unwrap_err();
    assert_eq!(refused, Fault::BUILD_NO_CORE_OF_KIND);
}

#[test]
fn every_wrong_edge_and_publish_is_refused() {
    let device = device();
    let stale = HostGraph::new(&device, &[]).add_task(NODE).unwrap();
    let mut graph = HostGraph::new(&device, &[]);
    let a = graph.add_task(NODE).unwrap();
    let b = graph.add_task(NODE).unwrap();
    let unknown = TaskId { slot: 2, ..a };
    let fault = |result: Result<_, Fault>| result.unwrap_err().name();
    for bad in [unknown, TaskId::NONE] {
        assert_eq!(fault(graph.add_edge(bad, a)), "BUILD_UNKNOWN_TASK");
        assert_eq!(fault(graph.add_edge(a, bad)), "BUILD_UNKNOWN_TASK");
        assert_eq!(graph.publish(bad), Err(Fault::BUILD_UNKNOWN_TASK));
    }
    assert_eq!(fault(graph.add_edge(stale, a)), "BUILD_STALE_TASK");
    assert_eq!(graph.publish(stale), Err(Fault::BUILD_STALE_TASK));
    assert_eq!(fault(graph.add_edge(a, a)), "BUILD_SELF_EDGE");
    graph.publish(b).unwrap();
    assert_eq!(fault(graph.add_edge(a, b)), "BUILD_CONSUMER_PUBLISHED");
    graph.add_edge(b, a).unwrap();
    assert_eq!(graph.publish(b), Err(Fault::BUILD_ALREADY_PUBLISHED));
    assert_eq!(graph.edge_count(), 1);
    let error = graph.finish().unwrap_err();
    assert!(matches!(error, Error::NotPublished { first: 0, count: 1 }), "{error}");
    assert_eq!(error.fault(), Some(Fault::BUILD_NOT_PUBLISHED));
}

#[test]
fn the_limits_of_an_image_are_faults() {
    let device = device();
    let mut graph = HostGraph::new(&device, &[]);
    graph.limits = Limits { tasks: 3, arg_words: 5, edges: 1 };
    let (a, b) = (graph.add_task(NODE).unwrap(), graph.add_task(NODE).unwrap());
    assert_eq!(graph.add_task(NODE), Err(Fault::BUILD_PAYLOADS_FULL));
    let bare = TaskSpec { args: &[], ..NODE };
    let c = graph.add_task(bare).unwrap();
    assert_eq!(graph.add_task(bare), Err(Fault::BUILD_TASKS_FULL));
    graph.add_edge(a, b).unwrap();
    assert_eq!(graph.add_edge(b, c), Err(Fault::BUILD_EDGES_FULL));
}

#[test]
fn a_builder_reads_its_words_and_gm() {
    let device = device();
    let table = device.upload(&[3_u32, 4]).unwrap();
    let graph = HostGraph::new(&device, &[table.address().0]);
    let address = GmAddr(graph.orch_args()[0]);
    assert_eq!(graph.read_u32(address.offset(4)), Ok(4));
    assert_eq!(graph.read_u32(address.offset(2)), Err(Fault::BUILD_GM_RANGE));
    assert_eq!(graph.read_u32(GmAddr(0)), Err(Fault::BUILD_GM_RANGE));
    let error = HostGraph::new(&device, &[0; 129]).finish().unwrap_err();
    assert!(matches!(error, Error::OrchArgs { given: 129 }), "{error}");
}

#[test]
fn a_builder_program_that_fails_is_told_with_what_it_was_refused() {
    let device = device();
    let error = HostGraph::build(&device, &[], |graph| {
        let task = graph.submit(NODE, &[])?;
        graph.add_edge(task, task)?;
        Ok(())
    });
    let text = error.unwrap_err().to_string();
    assert!(text.contains("BUILD_SELF_EDGE") && text.contains("task 0"), "{text}");
    let error = HostGraph::build(&device, &[], |_| Err(BuildError::Failed(-3))).unwrap_err();
    assert_eq!(error.fault(), Some(Fault::BUILD_FAILED));
    assert!(error.to_string().contains("-3"), "{error}");
    let image = HostGraph::build(&device, &[], |graph| Ok(graph.submit(NODE, &[]).map(drop)?));
    assert_eq!(image.unwrap().task_count(), 1);
}
