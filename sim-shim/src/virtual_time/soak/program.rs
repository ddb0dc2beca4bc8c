//! A random graph in GM: where its tables are, and what each of its tasks is given.

use std::sync::Arc;

use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_aicore_kernels::func;
use pto_graph::GraphBuilder;

use super::graph::{GraphNode, RandomGraph, STRIDE};

/// Where a graph's tables are in GM.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GraphTables {
    pub(super) values: GmAddr,
    pub(super) counters: GmAddr,
    pub(super) producers: GmAddr,
}

/// The builder program of one graph.
pub(super) struct Program {
    pub(super) graph: Arc<RandomGraph>,
    pub(super) tables: GraphTables,
    /// The first cell of each node, and after them how many there are.
    pub(super) first_cells: Vec<u32>,
    /// Cells that each node reads.
    pub(super) reads: Vec<u32>,
}

impl Program {
    /// The program of a graph: a task that reads more than one cell of a producer reads all of them.
    pub(super) fn of(graph: &Arc<RandomGraph>, tables: GraphTables) -> Self {
        let count = |cells: &Vec<u32>| u32::try_from(cells.len()).unwrap_or(u32::MAX);
        let reads = graph.read_cells().iter().map(count).collect();
        Self { graph: Arc::clone(graph), tables, first_cells: graph.first_cells(), reads }
    }

    /// The kernel of a node.
    pub(super) const fn func_id(node: &GraphNode) -> FuncId {
        match node.kind {
            CoreKind::AIC => func::DAG_NODE_AIC,
            _ => func::DAG_NODE_AIV,
        }
    }

    /// The arguments of node `index`, whose producers are in the table from `first_producer` on.
    pub(super) fn args(&self, index: usize, first_producer: u64) -> [u64; 6] {
        let GraphTables { values, counters, producers } = self.tables;
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
