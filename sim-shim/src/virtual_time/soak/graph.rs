//! Random graphs of `dag_node` tasks: how they are drawn, and the builder program that builds one.

use std::sync::Arc;

use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_aicore_kernels::{dag_value, func};
use pto_graph::{
    BuildError, BuilderSet, ElementType, GraphBuilder, HostedBuilder, StreamBuilder, TaskSpec,
    TensorView,
};

use super::super::random::Random;
use super::derived;
use super::shaped::{self, NodeShape, Submission};

/// Elements from one node's value to the next: each value and each counter has a line of its own, as `dcci`
/// demands of anything that two cores write.
pub const STRIDE: u32 = 16;

/// One task of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The kind of core that it runs on.
    pub kind: CoreKind,
    /// Indices of the nodes that it waits for, all below its own.
    pub producers: Vec<u32>,
    /// What it is beyond that; in streaming runs only.
    pub shape: Option<NodeShape>,
}

/// When the builder publishes what it has added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishOrder {
    /// Each task as soon as its edges stand.
    AtOnce,
    /// In groups of this many, the last one first.
    Backwards(u32),
    /// All at the end.
    AtEnd,
}

/// Where the edges of a streaming run come from; of other runs they come from the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgesFrom {
    /// From the program.
    Program,
    /// From tensors: a node writes its cells, and reads those of its producers. Scopes come and go.
    Tensors,
    /// The same, and the program reads values on its way.
    TensorsAndValues,
}

/// A graph, and how it is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RandomGraph {
    /// The tasks.
    pub nodes: Vec<Node>,
    /// What the values start from.
    pub seed: u64,
    /// When tasks are published.
    pub order: PublishOrder,
    /// Where edges come from.
    pub edges: EdgesFrom,
}

impl RandomGraph {
    /// Draws a graph of `tasks` tasks.
    pub(in super::super) fn draw(random: &mut Random, tasks: u32, kinds: &[CoreKind]) -> Self {
        let most = random.pick(&[0, 1, 2, 3, 4, 8]);
        let reach = random.pick(&[1, 2, 4, 8, 40]);
        let node = |index: u32, random: &mut Random| {
            let wanted = if most == 0 { 0 } else { random.below(most + 1) };
            let mut producers: Vec<u32> = (0..wanted.min(index))
                .map(|_| index - 1 - random.below(reach).min(index - 1))
                .collect();
            producers.sort_unstable();
            // An edge may be there twice; now and then it is.
            if random.below(4) > 0 {
                producers.dedup();
            }
            Node { kind: random.pick(kinds), producers, shape: None }
        };
        let nodes = (0..tasks).map(|index| node(index, random)).collect();
        let order = match random.below(6) {
            0 => PublishOrder::AtEnd,
            1 => PublishOrder::Backwards(2 + random.below(7)),
            _ => PublishOrder::AtOnce,
        };
        Self { nodes, seed: random.word(), order, edges: EdgesFrom::Program }
    }

    /// How many edges.
    #[must_use]
    pub fn edge_count(&self) -> usize {
        self.nodes.iter().map(|node| node.producers.len()).sum()
    }

    /// What every cell must hold after a run, and how often it was written.
    #[must_use]
    pub fn values(&self) -> Vec<(u64, u32)> {
        let (first, reads) = (self.first_cells(), self.read_cells());
        let mut values: Vec<(u64, u32)> = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let predicate = node.shape.and_then(|shape| shape.when);
            let runs = predicate.is_none_or(|when| {
                let (found, _) = values[first[when.producer as usize] as usize];
                when.comparison.holds(ElementType::U64, found, when.value)
            });
            for cell in first[index]..first[index + 1] {
                let producers = reads[index].iter().map(|cell| values[*cell as usize].0);
                let value = dag_value(self.seed, u64::from(cell * STRIDE), producers);
                values.push(if runs { (value, 1) } else { (0, 0) });
            }
        }
        values
    }

    /// The graph without a node; what waited for it waits no more.
    #[must_use]
    pub fn without(&self, index: u32) -> Self {
        let mut graph = self.clone();
        graph.nodes.remove(index as usize);
        for node in &mut graph.nodes {
            node.producers.retain(|producer| *producer != index);
            for producer in &mut node.producers {
                *producer -= u32::from(*producer > index);
            }
            if let Some(shape) = &mut node.shape {
                shape.when = shape.when.filter(|when| when.producer != index);
                if let Some(when) = &mut shape.when {
                    when.producer -= u32::from(when.producer > index);
                }
            }
        }
        graph
    }
}

/// Where a graph's tables are in GM.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tables {
    pub(super) values: GmAddr,
    pub(super) counters: GmAddr,
    pub(super) producers: GmAddr,
}

/// The builder program of one graph.
pub(super) struct Program {
    pub(super) graph: Arc<RandomGraph>,
    pub(super) tables: Tables,
    /// The first cell of each node, and behind them how many there are.
    pub(super) first_cells: Vec<u32>,
    /// Cells that each node reads.
    pub(super) reads: Vec<u32>,
}

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

/// How a node is added: itself, where its producers stand in the table, and the tasks so far.
type Add<G> = fn(&Program, &mut G, usize, u64, &[TaskId]) -> Result<TaskId, Fault>;

impl Program {
    /// The program of a graph: whoever reads more than one cell of a producer has read all of them.
    pub(super) fn of(graph: &Arc<RandomGraph>, tables: Tables) -> Self {
        let count = |cells: &Vec<u32>| u32::try_from(cells.len()).unwrap_or(u32::MAX);
        let reads = graph.read_cells().iter().map(count).collect();
        Self { graph: Arc::clone(graph), tables, first_cells: graph.first_cells(), reads }
    }

    fn run<G: GraphBuilder>(&self, graph: &mut G, add: Add<G>) -> Result<(), BuildError> {
        let mut ids: Vec<TaskId> = Vec::with_capacity(self.graph.nodes.len());
        let mut unpublished = 0;
        let mut first_producer = 0;
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let id = add(self, graph, index, first_producer, &ids)?;
            first_producer += u64::from(self.reads[index]);
            // A task with a shape has its edges already.
            for producer in node.producers.iter().filter(|_| node.shape.is_none()) {
                graph.add_edge(ids[*producer as usize], id)?;
            }
            ids.push(id);
            unpublished += 1;
            let group = match self.graph.order {
                PublishOrder::AtOnce => 1,
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
        let Some(shape) = &node.shape else {
            return self.add(stream, index, first_producer, ids);
        };
        let after: Vec<TaskId> =
            node.producers.iter().map(|producer| ids[*producer as usize]).collect();
        let on = shape.when.map_or(0, |when| self.first_cells[when.producer as usize]);
        let at = self.tables.values.offset(8 * u64::from(on) * u64::from(STRIDE));
        let submission = Submission {
            first_cell: self.first_cells[index],
            element: TensorView::dense(at, ElementType::U64, &[1]),
            args: self.args(index, first_producer),
            tensors: &[],
            after: &after,
        };
        shaped::add(stream, shape, &submission)
    }

    /// The kernel of a node.
    pub(super) const fn func_id(node: &Node) -> FuncId {
        match node.kind {
            CoreKind::AIC => func::DAG_NODE_AIC,
            _ => func::DAG_NODE_AIV,
        }
    }

    /// The arguments of node `index`, whose producers stand in the table from `first_producer` on.
    pub(super) fn args(&self, index: usize, first_producer: u64) -> [u64; 6] {
        let Tables { values, counters, producers } = self.tables;
        [
            u64::from(self.first_cells[index] * STRIDE),
            self.graph.seed,
            values.0,
            counters.0,
            producers.offset(4 * first_producer).0,
            self.reads[index].into(),
        ]
    }
}

/// Publishes the last `count` tasks, the last one first.
pub(super) fn publish_last<G: GraphBuilder>(
    graph: &mut G,
    ids: &[TaskId],
    count: u32,
) -> Result<(), Fault> {
    let last = ids.iter().rev().take(count as usize);
    last.copied().try_for_each(|id| graph.publish(id))
}

#[cfg(test)]
mod tests {
    use super::super::super::random::Random;
    use super::RandomGraph;
    use pto_abi::CoreKind;

    #[test]
    fn graphs_are_acyclic_and_repeat() {
        for seed in 0..200 {
            let draw = || RandomGraph::draw(&mut Random::new(seed), 40, CoreKind::ALL);
            let graph = draw();
            assert_eq!(graph, draw());
            for (index, node) in (0_u32..).zip(&graph.nodes) {
                assert!(node.producers.iter().all(|producer| *producer < index));
            }
        }
    }

    #[test]
    fn a_node_can_be_taken_out() {
        let graph = RandomGraph::draw(&mut Random::new(5), 40, CoreKind::ALL);
        let less = graph.without(7);
        assert_eq!(less.nodes.len(), 39);
        assert_eq!(less.nodes[6], graph.nodes[6]);
        assert!(less.edge_count() <= graph.edge_count());
        assert_eq!(less.values().len(), 39);
    }
}
