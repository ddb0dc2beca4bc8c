//! Graphs of `dag_node` kernels as tables in GM, for the builder `random_dag`: each node folds the values of its
//! producers, so that one checksum proves that every task ran once, after all its producers.

use pto_abi::GmAddr;
use pto_aicore_kernels::dag_value;
use pto_aicore_kernels::probe::mix;
use pto_graph::SubmittedGraph;

use crate::device::Work;
use crate::memory::Gm;

const SEED: u64 = 0x5EED;

/// A graph: the producers of every node, each before it.
pub(crate) struct Pattern {
    pub(crate) name: &'static str,
    pub(crate) producers: Vec<Vec<u32>>,
}

/// Every pattern.
pub(crate) fn patterns() -> Vec<Pattern> {
    vec![chain(300), fork_join(6, 50), wavefront(24, 24), random(2000)]
}

/// Each node waits for the one before.
pub(crate) fn chain(nodes: u32) -> Pattern {
    let producers = (0..nodes).map(|node| node.checked_sub(1).into_iter().collect()).collect();
    Pattern { name: "chain", producers }
}

/// Rounds of a fork, `width` nodes, and a join that is the next fork.
fn fork_join(rounds: u32, width: u32) -> Pattern {
    let mut producers = vec![Vec::new()];
    for _ in 0..rounds {
        let fork = producers.len() as u32 - 1;
        producers.extend((0..width).map(|_| vec![fork]));
        producers.push((fork + 1..=fork + width).collect());
    }
    Pattern { name: "fork-join", producers }
}

/// Each node of a grid waits for the one above and the one to the left.
fn wavefront(rows: u32, columns: u32) -> Pattern {
    let above = |node: u32| node.checked_sub(columns);
    let left = |node: u32| (!node.is_multiple_of(columns)).then(|| node - 1);
    let nodes = 0..rows * columns;
    let producers = nodes.map(|node| above(node).into_iter().chain(left(node)).collect()).collect();
    Pattern { name: "wavefront", producers }
}

/// Up to seven producers among the 200 nodes before.
fn random(nodes: u32) -> Pattern {
    let mut state = SEED;
    let mut draw = |bound: u32| {
        state = mix(state);
        (state % u64::from(bound.max(1))) as u32
    };
    let mut producers: Vec<Vec<u32>> = Vec::new();
    for node in 0..nodes {
        let mut list: Vec<u32> =
            (0..draw(8)).map(|_| node.saturating_sub(1 + draw(node.min(200)))).collect();
        list.sort_unstable();
        list.dedup();
        producers.push(if node == 0 { Vec::new() } else { list });
    }
    Pattern { name: "random dag", producers }
}

/// A pattern's tables in GM.
pub(crate) struct Tables {
    values: GmAddr,
    counters: GmAddr,
    pub(crate) kinds: GmAddr,
    words: Vec<u64>,
    expected: Vec<u64>,
}

impl Tables {
    pub(crate) fn upload(gm: &Gm, pattern: &Pattern) -> Self {
        let nodes = pattern.producers.len();
        let mut first = vec![0_u32];
        first.extend(pattern.producers.iter().scan(0, |end, list| {
            *end += list.len() as u32;
            Some(*end)
        }));
        let flat: Vec<u32> = pattern.producers.concat();
        // Every third node on a cube core.
        let kinds: Vec<u32> = (0..nodes).map(|node| u32::from(node % 3 != 0)).collect();
        let mut expected: Vec<u64> = Vec::new();
        for (node, list) in pattern.producers.iter().enumerate() {
            let producers = list.iter().map(|producer| expected[*producer as usize]);
            let value = dag_value(SEED, node as u64, producers);
            expected.push(value);
        }
        let values = gm.upload(&vec![0_u64; nodes]);
        let counters = gm.upload(&vec![0_u32; nodes]);
        let kinds = gm.upload(&kinds);
        let (first, flat) = (gm.upload(&first), gm.upload(&flat));
        // The order of `random_dag::graph::Args`; the last one is the stride of the tables.
        let words = vec![nodes as u64, SEED, values.0, counters.0, first.0, flat.0, kinds.0, 1];
        Self { values, counters, kinds, words, expected }
    }

    /// AICPU builds the graph.
    pub(crate) fn builder(&self) -> Work {
        Work::Builder("random_dag", self.words.clone())
    }

    /// The host builds the graph, with the same program.
    pub(crate) fn image(&self, gm: &Gm) -> Work {
        let mut graph = SubmittedGraph::new(&self.words).reading(gm.window);
        pto_examples::random_dag::graph::build(&mut graph).expect("the tables are right");
        Work::Graph(graph.into_image())
    }

    /// Whether every node ran `times` times and holds what it must.
    pub(crate) fn check(&self, gm: &Gm, times: u32) -> Result<usize, String> {
        let counters: Vec<u32> = gm.download(self.counters, self.expected.len());
        let values: Vec<u64> = gm.download(self.values, self.expected.len());
        for (node, expected) in self.expected.iter().enumerate() {
            if counters[node] != times {
                return Err(format!("node {node} ran {} times, not {times}", counters[node]));
            }
            if values[node] != *expected {
                return Err(format!("node {node} holds {:#x}, not {expected:#x}", values[node]));
            }
        }
        Ok(self.expected.len())
    }
}
