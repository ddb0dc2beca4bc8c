//! The files of a seed that fails: timelines and graph files of its scenario, and of the smallest one that still fails.

use std::fs;
use std::path::{Path, PathBuf};

use pto_abi::CoreKind;
use pto_check::Program;
use pto_check::program::{
    Action, Argument, Condition, Location, OwnedBlockShape, Publish, Step, Task, Tensor, View,
};
use pto_graph::{Comparison, ElementType, StartMode};
use pto_host::virtual_time::soak::{FailedSeed, GraphNode, PublishOrder, Scenario, Troubles};
use pto_host::{func, soak_timeline};

use crate::errors::Failure;
use crate::output_file;

/// What an iteration of the kernels that only take time takes in virtual time, in nanoseconds.
const ITERATION_NS: u64 = 4;

/// The folder of the files, unless the user names one.
pub(crate) fn folder_of(seed: u64) -> PathBuf {
    PathBuf::from(format!("pto-soak-{seed}"))
}

/// Writes the files of a seed; their paths.
pub(crate) fn write(
    folder: &Path,
    troubles: Troubles,
    scenario: &Scenario,
    failed: &FailedSeed,
) -> Result<Vec<PathBuf>, Failure> {
    let cannot = |error| Failure::internal(format!("cannot make '{}': {error}", folder.display()));
    fs::create_dir_all(folder).map_err(cannot)?;
    let phase = if troubles == Troubles::Some { "faults" } else { "no-faults" };
    let (small, small_failure) = &failed.shrunk;
    let mut written = Vec::new();
    for (name, scenario, run) in
        [("whole", scenario, failed.failure.run), ("small", small, small_failure.run)]
    {
        let path = |ending: &str| folder.join(format!("{phase}-{name}.{ending}"));
        if let Some(timeline) = soak_timeline(scenario, run) {
            let path = path("json");
            output_file::write(&path, |to| pto_host::timeline::file::write(&timeline, to))?;
            written.push(path);
        }
        let path = path("jsonl");
        output_file::write(&path, |to| pto_check::file::write(&program(scenario), to))?;
        written.push(path);
    }
    Ok(written)
}

/// The graph of a scenario. Its kernels only take their time, and its edges are those that the scenario's program makes, however it does so.
fn program(scenario: &Scenario) -> Program {
    let Scenario { seed, graph, setup, .. } = scenario;
    let mut program = Program::new(format!("seed {seed}"), setup.variant);
    let (values, first) = (graph.values(), graph.first_cells());
    if graph.nodes.iter().any(|node| node.block_shape.is_some_and(|shape| shape.when.is_some())) {
        program.tensors.push(zero());
    }
    let group = match graph.order {
        PublishOrder::Backwards(group) if setup.variant.has_builder() => group,
        PublishOrder::AtEnd if setup.variant.has_builder() => u32::MAX,
        _ => 1,
    };
    let mut step = |action| program.steps.push(Step { action, line: 0 });
    let mut unpublished = Vec::new();
    for (number, node) in (0_u32..).zip(&graph.nodes) {
        let (_, times) = values[first[number as usize] as usize];
        let publish = if group > 1 { Publish::Later } else { Publish::Now };
        let kernel_ns = scenario.kernel_ns(number);
        program.tasks.push(Task { publish, ..task(node, (number, kernel_ns), times > 0) });
        step(Action::Add(number as usize));
        unpublished.push(number);
        let is_last = number as usize + 1 == graph.nodes.len();
        if publish == Publish::Later && (is_last || unpublished.len() >= group as usize) {
            unpublished.drain(..).rev().for_each(|task| step(Action::Publish(task)));
        }
    }
    program
}

/// The element that predicates are on.
fn zero() -> Tensor {
    let (element, shape) = (ElementType::U64, Some(vec![1]));
    let name = Some("zero".to_owned());
    Tensor { id: 0, name, bytes: 8, element, shape, location: Location::Host(None) }
}

/// One task. `runs`: its predicate, if it has one, is true.
fn task(node: &GraphNode, (id, kernel_ns): (u32, u64), runs: bool) -> Task {
    let shape = node.block_shape;
    let kind = match shape {
        Some(shape) if shape.lanes.has(0) => CoreKind::AIC,
        Some(_) => CoreKind::AIV,
        None => node.kind,
    };
    let kernel = if kind == CoreKind::AIC { func::SPIN_AIC } else { func::SPIN_AIV };
    let mut after = node.producers.clone();
    after.dedup();
    let block_shape = shape.map_or_else(OwnedBlockShape::default, |shape| OwnedBlockShape {
        mix: vec![func::SPIN_AIV.0; shape.lanes.count() as usize - 1],
        blocks: shape.blocks,
        start: if shape.starts_at_once { StartMode::SYNC } else { StartMode::SPREAD },
        priority: shape.priority,
        when: shape.when.and_then(|_| condition(runs)),
    });
    Task {
        id,
        name: None,
        func: kernel.0,
        kind,
        args: vec![Argument::Scalar(kernel_ns / ITERATION_NS)],
        after,
        publish: Publish::Now,
        block_shape,
        links: Vec::new(),
    }
}

fn condition(holds: bool) -> Option<Condition> {
    let comparison = if holds { Comparison::EQUAL } else { Comparison::NOT_EQUAL };
    let element = View::new(0, ElementType::U64, 0, (&[1], &[1]))?;
    Some(Condition { element, comparison, value: 0 })
}
