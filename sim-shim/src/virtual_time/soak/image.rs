//! The image of a random graph, for the runtime variant in which the host builds.

use pto_abi::image::offsets;
use pto_abi::kinds::GraphFlags;
use pto_abi::{Fault, TaskId};
use pto_graph::{GraphBuilder, SubmittedGraph, TaskSpec};

use super::graph::{PublishOrder, RandomGraph};
use super::program::Program;

/// Argument words of a node.
pub(super) const NODE_ARGS: u32 = 6;

/// Bytes of the image of a graph.
pub(super) fn image_bytes(graph: &RandomGraph) -> u64 {
    let tasks = u32::try_from(graph.nodes.len()).unwrap_or(u32::MAX);
    let words = u64::from(tasks) * u64::from(NODE_ARGS);
    offsets(tasks, graph.edge_count() as u64, words)[3]
}

/// The image. A graph that publishes at once claims its order, any other one does not, so that the loader goes
/// both ways.
pub(super) fn image(program: &Program) -> Result<Vec<u8>, Fault> {
    let graph = &program.graph;
    let mut submitted = SubmittedGraph::new(&[]);
    let mut ids: Vec<TaskId> = Vec::with_capacity(graph.nodes.len());
    let mut first_producer = 0;
    for (index, node) in graph.nodes.iter().enumerate() {
        let args = program.args(index, first_producer);
        let producers: Vec<_> = node.producers.iter().map(|task| ids[*task as usize]).collect();
        let task = TaskSpec::new(Program::func_id(node), node.kind, &args);
        ids.push(submitted.submit(task, &producers)?);
        first_producer += node.producers.len() as u64;
    }
    let is_at_once = graph.order == PublishOrder::AtOnce;
    let flags = if is_at_once { GraphFlags::TOPOLOGICAL } else { GraphFlags::empty() };
    Ok(submitted.finish().1.to_bytes(flags))
}
