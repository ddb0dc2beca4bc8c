//! Makes a failing scenario small: takes away tasks, edges, parts, instances and cores as long as it still fails for the same cause.
//!
//! What a task costs follows from its slot, and what the machine does from its seed. So a smaller graph is another run, in which the failure may not happen although
//! the graph can fail. A candidate therefore has several tries, with other seeds of machine and costs.

use std::sync::Arc;

use pto_aicore_kernels::probe::mix;

use super::super::cost::KernelCosts;
use super::graph::{EdgesFrom, PublishOrder, RandomGraph};
use super::judge::{FailedRun, try_scenario};
use super::node_block_shape::NodeBlockShape;
use super::scenario::Scenario;

/// Tasks of all runs that shrinking makes, at most.
const WORK: u64 = 300_000;
/// Seeds with which a candidate is tried.
const TRIES: u64 = 32;

/// Makes a failing scenario small: the smallest one found that still fails for the same cause, and how it does.
pub fn shrink(scenario: &Scenario, failure: FailedRun) -> (Scenario, FailedRun) {
    let mut best = (scenario.clone(), failure);
    let mut work = 0;
    loop {
        let smaller =
            candidates(&best.0).find_map(|candidate| fails_like(&candidate, &best.1, &mut work));
        match smaller {
            Some(smaller) => best = smaller,
            None => return best,
        }
    }
}

/// The candidate with the first seeds with which it fails for the same cause; `None`: with none of those that are tried.
fn fails_like(
    candidate: &Scenario,
    failure: &FailedRun,
    work: &mut u64,
) -> Option<(Scenario, FailedRun)> {
    (0..TRIES).find_map(|number| {
        *work += candidate.graph.nodes.len() as u64;
        if *work > WORK {
            return None;
        }
        let mut scenario = candidate.clone();
        if number > 0 {
            scenario.options.seed = mix(scenario.options.seed ^ number);
            if let KernelCosts::Drawn { seed, .. } = &mut scenario.options.costs {
                *seed = mix(*seed ^ number);
            }
        }
        let found = try_scenario(&scenario).err()?;
        (found.cause == failure.cause && found.run == failure.run).then_some((scenario, found))
    })
}

/// Scenarios with a little less, the boldest first.
fn candidates(of: &Scenario) -> impl Iterator<Item = Scenario> + '_ {
    fewer_nodes(&of.graph)
        .map(|graph| with(of, graph))
        .chain(calmer(of))
        .chain(plainer(&of.graph).map(|graph| with(of, graph)))
        .chain(fewer_edges(&of.graph).map(|graph| with(of, graph)))
}

fn with(of: &Scenario, graph: RandomGraph) -> Scenario {
    Scenario { graph: Arc::new(graph), ..of.clone() }
}

/// Without half of its nodes, a quarter of them, and so on, and without each single one.
fn fewer_nodes(graph: &RandomGraph) -> impl Iterator<Item = RandomGraph> + '_ {
    let count = u32::try_from(graph.nodes.len()).unwrap_or(u32::MAX);
    let lengths = (1..32).map(move |shift| count >> shift).take_while(|length| *length > 0);
    lengths.flat_map(move |length| {
        let firsts = (0..count.div_ceil(length)).rev().map(move |part| part * length);
        firsts.map(move |first| without_all(graph, first, length.min(count - first)))
    })
}

fn without_all(graph: &RandomGraph, first: u32, count: u32) -> RandomGraph {
    (first..first + count).rev().fold(graph.clone(), |graph, index| graph.without(index))
}

/// With less around the graph: no trouble, a simpler order, the whole window, fewer instances, fewer cores.
fn calmer(of: &Scenario) -> impl Iterator<Item = Scenario> + '_ {
    let changes: [fn(&mut Scenario); 6] = [
        |scenario| scenario.options.injection = None,
        |scenario| scenario.setup.aicpu -= 1,
        |scenario| scenario.setup.window = None,
        |scenario| {
            let setup = &mut scenario.setup;
            let has_both = setup.aic.min(setup.aiv) > 0;
            setup.aic = setup.aic.saturating_sub(1).max(u32::from(has_both));
            setup.aiv = setup.aiv.saturating_sub(2).max(2 * u32::from(has_both));
        },
        |scenario| Arc::make_mut(&mut scenario.graph).order = PublishOrder::AtOnce,
        |scenario| Arc::make_mut(&mut scenario.graph).edges = EdgesFrom::Program,
    ];
    let fewest = 1 + u32::from(of.setup.variant.has_builder());
    let changed = changes.into_iter().map(|change| {
        let mut scenario = of.clone();
        change(&mut scenario);
        scenario
    });
    changed.filter(move |scenario| {
        let (setup, before) = (&scenario.setup, &of.setup);
        let is_device = setup.aicpu >= fewest && setup.aic + setup.aiv > 0;
        let is_other = setup != before
            || scenario.options.injection != of.options.injection
            || scenario.graph != of.graph;
        is_device && is_other
    })
}

/// With a node of one kernel on one core instead of one that has a block shape; else with one block, or without a predicate.
fn plainer(graph: &RandomGraph) -> impl Iterator<Item = RandomGraph> + '_ {
    let changes: [fn(NodeBlockShape) -> Option<NodeBlockShape>; 3] = [
        |_| None,
        |shape| Some(NodeBlockShape { blocks: 1, ..shape }),
        |shape| Some(NodeBlockShape { when: None, ..shape }),
    ];
    let shaped =
        graph.nodes.iter().enumerate().filter_map(|(at, node)| Some((at, node.block_shape?)));
    shaped.flat_map(move |(at, shape)| {
        let changed = changes.into_iter().map(move |change| change(shape));
        changed.filter(move |changed| *changed != Some(shape)).map(move |changed| {
            let mut graph = graph.clone();
            graph.nodes[at].block_shape = changed;
            graph
        })
    })
}

/// Without one edge.
fn fewer_edges(graph: &RandomGraph) -> impl Iterator<Item = RandomGraph> + '_ {
    (0..graph.nodes.len()).flat_map(move |node| {
        (0..graph.nodes[node].producers.len()).map(move |edge| {
            let mut graph = graph.clone();
            let producer = graph.nodes[node].producers.remove(edge);
            if let Some(shape) = &mut graph.nodes[node].block_shape {
                shape.when = shape.when.filter(|when| when.producer != producer);
            }
            graph
        })
    })
}
