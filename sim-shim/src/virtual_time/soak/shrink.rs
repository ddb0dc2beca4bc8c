//! Makes a failing scenario small: takes away tasks, edges, instances and cores as long as it still fails.

use std::sync::Arc;

use super::graph::{EdgesFrom, PublishOrder, RandomGraph};
use super::judge::{Failure, try_scenario};
use super::scenario::Scenario;

/// Runs that shrinking makes at most.
const TRIALS: u32 = 5_000;

/// Makes a failing scenario small: the smallest one found that still fails, and how it does.
pub fn shrink(scenario: &Scenario, failure: Failure) -> (Scenario, Failure) {
    let mut best = (scenario.clone(), failure);
    let mut trials = 0;
    loop {
        let smaller = candidates(&best.0).find_map(|candidate| {
            trials += 1;
            if trials > TRIALS {
                return None;
            }
            try_scenario(&candidate).err().map(|failure| (candidate, failure))
        });
        match smaller {
            Some(smaller) => best = smaller,
            None => return best,
        }
    }
}

/// Scenarios with a little less, the boldest first.
fn candidates(of: &Scenario) -> impl Iterator<Item = Scenario> + '_ {
    let count = u32::try_from(of.graph.nodes.len()).unwrap_or(u32::MAX);
    let with = |graph: RandomGraph| Scenario { graph: Arc::new(graph), ..of.clone() };
    let halves = (count > 1).then(|| with(first_half(&of.graph)));
    let nodes = (0..count).rev().filter(move |_| count > 1);
    let nodes = nodes.map(move |index| with(of.graph.without(index)));
    let edges = (0..of.graph.nodes.len()).flat_map(move |node| {
        (0..of.graph.nodes[node].producers.len()).map(move |edge| {
            let mut graph = RandomGraph::clone(&of.graph);
            let producer = graph.nodes[node].producers.remove(edge);
            if let Some(shape) = &mut graph.nodes[node].block_shape {
                shape.when = shape.when.filter(|when| when.producer != producer);
            }
            with(graph)
        })
    });
    let shapes =
        (0..of.graph.nodes.len()).filter(|node| of.graph.nodes[*node].block_shape.is_some());
    let plainer = shapes.map(move |node| {
        let mut graph = RandomGraph::clone(&of.graph);
        graph.nodes[node].block_shape = None;
        with(graph)
    });
    let calmer = (of.graph.order != PublishOrder::AtOnce).then(|| {
        with(RandomGraph { order: PublishOrder::AtOnce, ..RandomGraph::clone(&of.graph) })
    });
    let plain_edges = (of.graph.edges != EdgesFrom::Program)
        .then(|| with(RandomGraph { edges: EdgesFrom::Program, ..RandomGraph::clone(&of.graph) }));
    let alone = of.options.injection.map(|_| {
        let mut scenario = of.clone();
        scenario.options.injection = None;
        scenario
    });
    let fewest = 1 + u32::from(of.setup.variant.has_builder());
    let fewer = (of.setup.aicpu > fewest).then(|| {
        let mut scenario = of.clone();
        scenario.setup.aicpu -= 1;
        scenario
    });
    halves
        .into_iter()
        .chain(alone)
        .chain(fewer)
        .chain(calmer)
        .chain(plain_edges)
        .chain(nodes)
        .chain(plainer)
        .chain(edges)
}

fn first_half(graph: &RandomGraph) -> RandomGraph {
    let mut half = graph.clone();
    half.nodes.truncate(graph.nodes.len().div_ceil(2));
    half
}
