//! The image of a random graph, for the runtime variant in which the host builds.

use pto_abi::image::{Checksum, GraphHeader, ImageTask, offsets};
use pto_abi::kinds::GraphFlags;

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
pub(super) fn image(program: &Program) -> Vec<u8> {
    let graph = &program.graph;
    let task_count = u32::try_from(graph.nodes.len()).unwrap_or(u32::MAX);
    let (edge_count, arg_words) =
        (graph.edge_count() as u64, u64::from(task_count) * u64::from(NODE_ARGS));
    let mut bytes = Vec::new();
    let mut first_edge = 0;
    for (index, node) in (0..).zip(&graph.nodes) {
        let edge_count = u32::try_from(node.producers.len()).unwrap_or(u32::MAX);
        let record = ImageTask {
            kernel: 0,
            first_arg: index * NODE_ARGS,
            first_edge,
            edge_count,
            func_id: Program::func_id(node).0,
            arg_count: u8::try_from(NODE_ARGS).unwrap_or(u8::MAX),
            kind: node.kind.get(),
        };
        bytes.extend_from_slice(bytemuck::bytes_of(&record));
        first_edge += edge_count;
    }
    let producers = graph.nodes.iter().flat_map(|node| &node.producers);
    producers.for_each(|producer| bytes.extend_from_slice(&producer.to_le_bytes()));
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let mut first_producer = 0;
    for (index, node) in graph.nodes.iter().enumerate() {
        let words = program.args(index, first_producer);
        bytes.extend_from_slice(bytemuck::bytes_of(&words));
        first_producer += node.producers.len() as u64;
    }
    let is_topological = graph.order == PublishOrder::AtOnce;
    let flags = if is_topological { GraphFlags::TOPOLOGICAL } else { GraphFlags::empty() };
    let mut header = GraphHeader::new(flags, task_count, edge_count, arg_words);
    header.checksum = Checksum::of(&bytes);
    [bytemuck::bytes_of(&header), &bytes].concat()
}
