//! Graphs of `dag_node` kernels: each node counts its runs and folds the values of its producers, so that a
//! node that ran twice, or before a producer, shows.

use std::sync::{Arc, Mutex, PoisonError};

use pto_abi::sync::{AtomicU32, AtomicU64, Ordering};
use pto_abi::{CoreKind, Fault, TaskId};
use pto_aicore_kernels::{dag_value, func};
use pto_graph::{BuildError, GraphBuilder, GraphParts, SubmittedGraph, TaskSpec};

const SEED: u64 = 0xDA6;

/// One graph and the memory that its kernels write.
pub(crate) struct Dag {
    kinds: Vec<CoreKind>,
    producers: Vec<Vec<u32>>,
    values: Vec<AtomicU64>,
    counters: Vec<AtomicU32>,
}

/// A number below `bound`: the next one of a splitmix64 generator with this state.
fn draw_below(state: &mut u64, bound: usize) -> usize {
    *state = state.wrapping_add(1);
    usize::try_from(pto_aicore_kernels::probe::mix(*state) % bound.max(1) as u64).unwrap()
}

impl Dag {
    /// The graph with these producers for each node, on these kinds of core in turn.
    pub(crate) fn new(producers: Vec<Vec<u32>>, kinds: &[CoreKind]) -> Arc<Self> {
        let nodes = producers.len();
        Arc::new(Self {
            kinds: (0..nodes).map(|node| kinds[node % kinds.len()]).collect(),
            producers,
            values: (0..nodes).map(|_| AtomicU64::new(0)).collect(),
            counters: (0..nodes).map(|_| AtomicU32::new(0)).collect(),
        })
    }

    pub(crate) fn random(seed: u64, nodes: usize) -> Arc<Self> {
        let state = &mut (seed << 32);
        let producers = (0..nodes).map(|node| {
            let mut chosen: Vec<u32> = (0..draw_below(state, 5).min(node))
                .map(|_| {
                    // Mostly near ones, now and then any.
                    let back = if draw_below(state, 8) == 0 { node } else { node.min(12) };
                    u32::try_from(node - 1 - draw_below(state, back)).unwrap()
                })
                .collect();
            chosen.sort_unstable();
            chosen.dedup();
            chosen
        });
        let producers = producers.collect();
        let kinds: Vec<CoreKind> = (0..97).map(|_| CoreKind::ALL[draw_below(state, 2)]).collect();
        Self::new(producers, &kinds)
    }

    pub(crate) fn nodes(&self) -> usize {
        self.kinds.len()
    }

    /// AIC nodes, AIV nodes.
    pub(crate) fn nodes_of_kind(&self) -> [u64; 2] {
        let aic = self.kinds.iter().filter(|kind| **kind == CoreKind::AIC).count();
        [aic as u64, (self.nodes() - aic) as u64]
    }

    /// The producers of each node.
    pub(crate) fn producers(&self) -> &[Vec<u32>] {
        &self.producers
    }

    pub(crate) fn edges(&self) -> usize {
        self.producers.iter().map(Vec::len).sum()
    }

    /// Nothing has run.
    pub(crate) fn reset(&self) {
        self.values.iter().for_each(|value| value.store(0, Ordering::Relaxed));
        self.counters.iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
    }

    /// Every node has run once, with the values of its producers.
    #[track_caller]
    pub(crate) fn check(&self) {
        let mut expected: Vec<u64> = Vec::with_capacity(self.nodes());
        for (node, producers) in self.producers.iter().enumerate() {
            let runs = self.counters[node].load(Ordering::Relaxed);
            assert_eq!(runs, 1, "node {node} of {} must run once", self.nodes());
            let inputs = producers.iter().map(|producer| expected[*producer as usize]);
            expected.push(dag_value(SEED, node as u64, inputs));
            let value = self.values[node].load(Ordering::Relaxed);
            assert_eq!(value, expected[node], "node {node}: it did not see its producers");
        }
    }

    fn args(&self, node: usize) -> [u64; 6] {
        let producers = &self.producers[node];
        let address = |pointer: usize| pointer as u64;
        [
            node as u64,
            SEED,
            address(self.values.as_ptr().expose_provenance()),
            address(self.counters.as_ptr().expose_provenance()),
            address(producers.as_ptr().expose_provenance()),
            producers.len() as u64,
        ]
    }

    fn func(&self, node: usize) -> pto_abi::FuncId {
        if self.kinds[node] == CoreKind::AIC { func::DAG_NODE_AIC } else { func::DAG_NODE_AIV }
    }

    /// Makes the graph known to the builder program; returns its orchestration word.
    pub(crate) fn register(self: &Arc<Self>) -> u64 {
        let mut known = DAGS.lock().unwrap_or_else(PoisonError::into_inner);
        let index = known.iter().position(|dag| Arc::ptr_eq(dag, self));
        let index = index.unwrap_or_else(|| {
            known.push(Arc::clone(self));
            known.len() - 1
        });
        index as u64
    }

    /// Submits every node.
    fn submit_to<G: GraphBuilder>(&self, graph: &mut G) -> Result<(), Fault> {
        let mut ids: Vec<TaskId> = Vec::with_capacity(self.nodes());
        for node in 0..self.nodes() {
            let args = self.args(node);
            let spec = TaskSpec::new(self.func(node), self.kinds[node], &args);
            let producers = self.producers[node].iter().map(|producer| ids[*producer as usize]);
            let producers: Vec<TaskId> = producers.collect();
            ids.push(graph.submit(spec, &producers)?);
        }
        Ok(())
    }

    /// The graph as a host sends it, in parts.
    pub(crate) fn parts(&self) -> GraphParts {
        let mut graph = SubmittedGraph::new(&[]);
        self.submit_to(&mut graph).unwrap();
        graph.finish().1
    }
}

static DAGS: Mutex<Vec<Arc<Dag>>> = Mutex::new(Vec::new());

/// Builds the graph whose number is the orchestration word.
pub(crate) fn build<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let word = graph.orch_args().first().copied().ok_or(Fault::BUILD_ORCH_ARGS)?;
    let index = usize::try_from(word).unwrap_or(usize::MAX);
    let known = DAGS.lock().unwrap_or_else(PoisonError::into_inner).get(index).cloned();
    let dag = known.ok_or(Fault::BUILD_ORCH_ARGS)?;
    Ok(dag.submit_to(graph)?)
}

/// `n` nodes, each after the one before it.
pub(crate) fn chain(n: u32) -> Vec<Vec<u32>> {
    (0..n).map(|node| node.checked_sub(1).into_iter().collect()).collect()
}

/// `stages` times: one node, `width` nodes after it, joined by the next one.
pub(crate) fn fork_join(stages: u32, width: u32) -> Vec<Vec<u32>> {
    let mut producers = vec![vec![]];
    for _ in 0..stages {
        let fork = u32::try_from(producers.len()).unwrap() - 1;
        producers.extend((0..width).map(|_| vec![fork]));
        producers.push((fork + 1..=fork + width).collect());
    }
    producers
}

/// A square where each node waits for its neighbours above and to the left.
pub(crate) fn wavefront(side: u32) -> Vec<Vec<u32>> {
    let node = |row: u32, column: u32| row * side + column;
    let cells = (0..side).flat_map(|row| (0..side).map(move |column| (row, column)));
    let producers = cells.map(|(row, column)| {
        let above = row.checked_sub(1).map(|above| node(above, column));
        let left = column.checked_sub(1).map(|left| node(row, left));
        above.into_iter().chain(left).collect()
    });
    producers.collect()
}
