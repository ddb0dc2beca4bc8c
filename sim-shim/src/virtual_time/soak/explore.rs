//! Every interleaving of a small graph: a depth-first search over all choices of the machine.
//!
//! On profile `ideal` with kernels that take no time everybody is due at the same moment, so that the choices of a
//! run are exactly its interleavings of steps: of instances, of cores, and of the builder between two publishes.
//! A step of an instance is not divided; what lies inside it is the matter of the loom and shuttle tests.

use std::collections::HashSet;
use std::sync::Arc;

use super::super::chooser::Chooser;
use super::super::cost::KernelCosts;
use super::super::options::VirtualOptions;
use super::super::profile::Profile;
use super::graph::RandomGraph;
use super::judge::{Failure, judge};
use super::rig::{KeepCores, Rig, Shape};
use super::scenario::Scenario;

/// What a search gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exploration {
    /// Interleavings that were run.
    pub runs: u64,
    /// Whether these are all.
    pub is_complete: bool,
    /// Choices of the longest one.
    pub longest: u64,
    /// How many different traces they had: steps that find nothing to do are in none.
    pub traces: usize,
    /// The first failure, and the choices that lead to it, for [`Chooser::replay`].
    pub failure: Option<(Vec<u32>, Failure)>,
}

/// Runs the graph in every interleaving, at most `limit` of them, until one fails. The cores are in service from
/// a run before, so that interleavings of the bring-up are not counted (each alone is; see
/// [`explore_bring_up`]).
#[must_use]
pub fn explore(graph: &Arc<RandomGraph>, shape: Shape, limit: u64) -> Exploration {
    search(graph, Shape { keeps_cores: KeepCores::Stay, ..shape }, limit)
}

/// As [`explore`], with bring-up and stop of the cores in every run.
#[must_use]
pub fn explore_bring_up(graph: &Arc<RandomGraph>, shape: Shape, limit: u64) -> Exploration {
    search(graph, Shape { keeps_cores: KeepCores::Leave, ..shape }, limit)
}

/// The options under which everything is an interleaving.
#[must_use]
pub fn explore_options() -> VirtualOptions {
    let costs = KernelCosts::Constant(0);
    VirtualOptions { profile: Profile::ideal(), costs, ..VirtualOptions::default() }
}

fn search(graph: &Arc<RandomGraph>, shape: Shape, limit: u64) -> Exploration {
    let mut found =
        Exploration { runs: 0, is_complete: false, longest: 0, traces: 0, failure: None };
    let Some(mut rig) = Rig::new(shape, graph) else { return found };
    let options = explore_options();
    let scenario = Scenario { seed: 0, graph: Arc::clone(graph), shape, options };
    rig.run(options, Chooser::seeded(0));
    let mut traces = HashSet::new();
    let mut chooser = Chooser::search().recording();
    while found.runs < limit {
        let run = rig.run(options, chooser);
        found.runs += 1;
        found.longest = found.longest.max(run.report.choices);
        traces.insert(run.report.trace_hash);
        found.traces = traces.len();
        if let Err(what) = judge(&scenario, &rig, &run) {
            let choices = run.chooser.recorded().to_vec();
            found.failure = Some((choices, Failure { run: 0, what }));
            return found;
        }
        chooser = run.chooser;
        if !chooser.advance() {
            found.is_complete = true;
            return found;
        }
    }
    found
}
