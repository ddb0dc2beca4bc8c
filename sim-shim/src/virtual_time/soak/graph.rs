//! Random graphs of `dag_node` tasks: how they are drawn.

use pto_abi::CoreKind;
use pto_aicore_kernels::dag_value;
use pto_graph::ElementType;

use super::super::random::RandomStream;
use super::node_block_shape::NodeBlockShape;

/// Elements from one node's value to the next: each value and each counter has a line of its own, as `dcci`
/// demands of anything that two cores write.
pub const STRIDE: u32 = 16;

/// One task of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphNode {
    /// The kind of core that it runs on.
    pub kind: CoreKind,
    /// Indices of the nodes that it waits for, all below its own.
    pub producers: Vec<u32>,
    /// What it is beyond that; in streaming runs only.
    pub block_shape: Option<NodeBlockShape>,
}

/// When the builder publishes what it has added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishOrder {
    /// Publish each task as soon as its edges are complete.
    AtOnce,
    /// In groups of this many, the last one first.
    Backwards(u32),
    /// All at the end.
    AtEnd,
    /// At once, up to so many tasks of one kind that do not wait for each other as a range.
    Ranges(u32),
}

/// Where the edges of a streaming run come from; of other runs they come from the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgesFrom {
    /// From the program.
    Program,
    /// From tensors: a node writes its cells, and reads those of its producers. Scopes come and go.
    Tensors,
    /// From tensors, and the program reads values on its way.
    TensorsAndValues,
}

/// A graph, and how it is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RandomGraph {
    /// The tasks.
    pub nodes: Vec<GraphNode>,
    /// What the values start from.
    pub seed: u64,
    /// When tasks are published.
    pub order: PublishOrder,
    /// Where edges come from.
    pub edges: EdgesFrom,
}

impl RandomGraph {
    /// Draws a graph of `tasks` tasks.
    pub(in super::super) fn draw(
        random: &mut RandomStream,
        tasks: u32,
        kinds: &[CoreKind],
    ) -> Self {
        let most = random.pick(&[0, 1, 2, 3, 4, 8]);
        let reach = random.pick(&[1, 2, 4, 8, 40]);
        let node = |index: u32, random: &mut RandomStream| {
            let wanted = if most == 0 { 0 } else { random.below(most + 1) };
            let mut producers: Vec<u32> = (0..wanted.min(index))
                .map(|_| index - 1 - random.below(reach).min(index - 1))
                .collect();
            producers.sort_unstable();
            // An edge may be there twice; now and then it is.
            if random.below(4) > 0 {
                producers.dedup();
            }
            GraphNode { kind: random.pick(kinds), producers, block_shape: None }
        };
        let nodes = (0..tasks).map(|index| node(index, random)).collect();
        let order = match random.below(6) {
            0 => PublishOrder::AtEnd,
            1 => PublishOrder::Backwards(2 + random.below(7)),
            2 => PublishOrder::Ranges(1 + random.below(16)),
            _ => PublishOrder::AtOnce,
        };
        Self { nodes, seed: random.word(), order, edges: EdgesFrom::Program }
    }

    /// The nodes from `first` on that are submitted as one range.
    pub(super) fn range_at(&self, first: usize) -> &[GraphNode] {
        let nodes = self.nodes.get(first..).unwrap_or(&[]);
        let most = match self.order {
            PublishOrder::Ranges(most) => most as usize,
            _ => 0,
        };
        let Some(one) = nodes.first() else { return nodes };
        let fits = |node: &&GraphNode| {
            let is_before = |producer: &u32| (*producer as usize) < first;
            node.block_shape.is_none()
                && node.kind == one.kind
                && node.producers.iter().all(is_before)
        };
        let count = nodes.iter().take(most).take_while(fits).count();
        &nodes[..count]
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
            let predicate = node.block_shape.and_then(|shape| shape.when);
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
            if let Some(shape) = &mut node.block_shape {
                shape.when = shape.when.filter(|when| when.producer != index);
                if let Some(when) = &mut shape.when {
                    when.producer -= u32::from(when.producer > index);
                }
            }
        }
        graph
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::random::RandomStream;
    use super::RandomGraph;
    use pto_abi::CoreKind;

    #[test]
    fn graphs_are_acyclic_and_repeat() {
        for seed in 0..200 {
            let draw = || RandomGraph::draw(&mut RandomStream::new(seed), 40, CoreKind::ALL);
            let graph = draw();
            assert_eq!(graph, draw());
            for (index, node) in (0_u32..).zip(&graph.nodes) {
                assert!(node.producers.iter().all(|producer| *producer < index));
            }
        }
    }

    #[test]
    fn a_node_can_be_taken_out() {
        let graph = RandomGraph::draw(&mut RandomStream::new(5), 40, CoreKind::ALL);
        let less = graph.without(7);
        assert_eq!(less.nodes.len(), 39);
        assert_eq!(less.nodes[6], graph.nodes[6]);
        assert!(less.edge_count() <= graph.edge_count());
        assert_eq!(less.values().len(), 39);
    }
}
