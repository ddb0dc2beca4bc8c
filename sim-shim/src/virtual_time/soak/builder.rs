//! The builder program of a random graph, for every way in which edges come about.

use pto_abi::{Fault, TaskId};
use pto_graph::{
    BuildError, BuilderSet, ElementType, GraphBuilder, HostedBuilder, StreamBuilder, TaskRange,
    TaskSpec, TensorView, Variation, Wait,
};

use super::derived;
use super::graph::{EdgesFrom, GraphNode, PublishOrder, STRIDE};
use super::program::{Program, publish_last};
use super::shaped::{self, NodeCall};

/// The name under which it is launched.
pub(super) const BUILDER: &str = "soak";

impl BuilderSet for Program {
    fn names(&self) -> &[&str] {
        &[BUILDER]
    }

    fn build<G: HostedBuilder>(
        &self,
        symbol: u64,
        graph: &mut G,
    ) -> Option<Result<(), BuildError>> {
        (symbol == pto_abi::symbol::symbol(BUILDER)).then(|| self.run(graph, Self::add))
    }

    fn build_stream<G: StreamBuilder + HostedBuilder>(
        &self,
        symbol: u64,
        stream: &mut G,
    ) -> Option<Result<(), BuildError>> {
        (symbol == pto_abi::symbol::symbol(BUILDER)).then(|| match self.graph.edges {
            EdgesFrom::Program => self.run(stream, Self::add_shaped),
            EdgesFrom::Tensors | EdgesFrom::TensorsAndValues => derived::run(self, stream),
        })
    }
}

/// How a node is added: itself, where its producers are in the table, and the tasks so far.
type Add<G> = fn(&Program, &mut G, usize, u64, &[TaskId]) -> Result<TaskId, Fault>;

impl Program {
    fn run<G: GraphBuilder>(&self, graph: &mut G, add: Add<G>) -> Result<(), BuildError> {
        let mut ids: Vec<TaskId> = Vec::with_capacity(self.graph.nodes.len());
        let mut unpublished = 0;
        let mut first_producer = 0;
        for (index, node) in self.graph.nodes.iter().enumerate() {
            if index < ids.len() {
                // It was in the range of one before.
                continue;
            }
            let range = self.graph.range_at(index);
            if !range.is_empty() {
                first_producer += self.submit_range(graph, range, first_producer, &mut ids)?;
                continue;
            }
            let id = add(self, graph, index, first_producer, &ids)?;
            first_producer += u64::from(self.reads[index]);
            // A task with a block shape has its edges already.
            for producer in node.producers.iter().filter(|_| node.block_shape.is_none()) {
                graph.add_edge(ids[*producer as usize], id)?;
            }
            ids.push(id);
            unpublished += 1;
            let group = match self.graph.order {
                PublishOrder::AtOnce | PublishOrder::Ranges(_) => 1,
                PublishOrder::Backwards(group) => group,
                PublishOrder::AtEnd => u32::MAX,
            };
            if unpublished >= group {
                publish_last(graph, &ids, unpublished)?;
                unpublished = 0;
            }
        }
        publish_last(graph, &ids, unpublished)?;
        Ok(())
    }

    /// Submits the next nodes as one range; returns how many cells of producers they read.
    fn submit_range<G: GraphBuilder>(
        &self,
        graph: &mut G,
        nodes: &[GraphNode],
        first_producer: u64,
        ids: &mut Vec<TaskId>,
    ) -> Result<u64, Fault> {
        let first = ids.len();
        let (mut producers, mut ends, mut read) = (Vec::new(), Vec::new(), 0);
        let mut columns = [const { Vec::new() }; 6];
        for (index, node) in (first..).zip(nodes) {
            producers.extend(node.producers.iter().map(|producer| ids[*producer as usize]));
            ends.push(u32::try_from(producers.len()).map_err(|_| Fault::BUILD_EDGES_FULL)?);
            let args = self.args(index, first_producer + read);
            columns.iter_mut().zip(args).for_each(|(column, arg)| column.push(arg));
            read += u64::from(self.reads[index]);
        }
        let args = self.args(first, first_producer);
        let node = &nodes[0];
        let varies = columns.iter().enumerate().map(|(arg, column)| Variation::of(arg, column));
        let varies: Vec<_> = varies.collect();
        let waits = [Wait::listed(&producers, &ends)];
        let range = TaskRange::new(TaskSpec::new(Self::func_id(node), node.kind, &args));
        let range = range.times(u32::try_from(nodes.len()).unwrap_or(u32::MAX)).varying(&varies);
        let mut given = vec![TaskId { slot: 0, generation: 0 }; nodes.len()];
        graph.submit_range(&range.after(&waits), &mut given)?;
        ids.extend(given);
        Ok(read)
    }

    fn add<G: GraphBuilder>(
        &self,
        graph: &mut G,
        index: usize,
        first_producer: u64,
        _: &[TaskId],
    ) -> Result<TaskId, Fault> {
        let node = &self.graph.nodes[index];
        let args = self.args(index, first_producer);
        graph.add_task(TaskSpec::new(Self::func_id(node), node.kind, &args))
    }

    fn add_shaped<G: StreamBuilder>(
        &self,
        stream: &mut G,
        index: usize,
        first_producer: u64,
        ids: &[TaskId],
    ) -> Result<TaskId, Fault> {
        let node = &self.graph.nodes[index];
        let Some(shape) = &node.block_shape else {
            return self.add(stream, index, first_producer, ids);
        };
        let after: Vec<TaskId> =
            node.producers.iter().map(|producer| ids[*producer as usize]).collect();
        let on = shape.when.map_or(0, |when| self.first_cells[when.producer as usize]);
        let at = self.tables.values.offset(8 * u64::from(on) * u64::from(STRIDE));
        let submission = NodeCall {
            first_cell: self.first_cells[index],
            element: TensorView::dense(at, ElementType::U64, &[1]),
            args: self.args(index, first_producer),
            tensors: &[],
            after: &after,
        };
        shaped::add(stream, shape, &submission)
    }
}
