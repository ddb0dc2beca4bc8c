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
use super::judge::{FailedRun, judge};
use super::scenario::Scenario;
use super::setup::{KeepCores, Setup};
use super::soak_device::SoakDevice;

/// What a search gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exploration {
    /// Interleavings that were run.
    pub runs: u64,
    /// Whether these are all interleavings, or represent all of them.
    pub is_complete: bool,
    /// How many orders of choices they represent; 0 unless they represent all.
    pub orders: u128,
    /// States in which there was a choice, and whose later orders were run once; 0 where states are not compared.
    pub states: usize,
    /// Choices of the longest one.
    pub longest: u64,
    /// How many different traces they had: steps that find nothing to do are in none.
    pub traces: usize,
    /// The first failure, and the choices that lead to it, for [`Chooser::replay`].
    pub failure: Option<(Vec<u32>, FailedRun)>,
}

/// Runs the graph in every interleaving, at most `limit` of them, until one fails. The cores are in service from
/// a run before, so that interleavings of the bring-up are not counted (each alone is; see
/// [`explore_bring_up`]).
#[must_use]
pub fn explore(graph: &Arc<RandomGraph>, setup: Setup, limit: u64) -> Exploration {
    let setup = Setup { keeps_cores: KeepCores::Stay, ..setup };
    search(graph, setup, limit, Chooser::search())
}

/// As [`explore`], and goes on from each state once: what schedulers, cores, kernels and checkers have in memory, in lines under
/// way, and who is due. That an order is not run to its end does not hide a failure: the same steps were made from the same
/// state. While a builder program runs its stack is part of the state, so that nothing is left out then.
#[must_use]
pub fn explore_states(graph: &Arc<RandomGraph>, setup: Setup, limit: u64) -> Exploration {
    let setup = Setup { keeps_cores: KeepCores::Stay, ..setup };
    search(graph, setup, limit, Chooser::search_states())
}

/// As [`explore`], with bring-up and stop of the cores in every run.
#[must_use]
pub fn explore_bring_up(graph: &Arc<RandomGraph>, setup: Setup, limit: u64) -> Exploration {
    let setup = Setup { keeps_cores: KeepCores::Leave, ..setup };
    search(graph, setup, limit, Chooser::search())
}

/// The options under which everything is an interleaving.
#[must_use]
pub fn explore_options() -> VirtualOptions {
    let costs = KernelCosts::Constant(0);
    VirtualOptions { profile: Profile::ideal(), costs, ..VirtualOptions::default() }
}

fn search(graph: &Arc<RandomGraph>, setup: Setup, limit: u64, chooser: Chooser) -> Exploration {
    let mut found = Exploration {
        runs: 0,
        is_complete: false,
        orders: 0,
        states: 0,
        longest: 0,
        traces: 0,
        failure: None,
    };
    let Some(mut soak_device) = SoakDevice::new(setup, graph) else { return found };
    let options = explore_options();
    let scenario = Scenario { seed: 0, graph: Arc::clone(graph), setup, options };
    soak_device.run(options, Chooser::seeded(0));
    let start = soak_device.snapshot();
    let mut traces = HashSet::new();
    let mut chooser = chooser.listing();
    while found.runs < limit {
        // The same memory before each: states of different runs are comparable.
        soak_device.rewind(&start);
        let run = soak_device.run(options, chooser);
        found.runs += 1;
        found.longest = found.longest.max(run.report.choices);
        traces.insert(run.report.trace_hash);
        found.traces = traces.len();
        if let Err(wrong) = judge(&scenario, &soak_device, &run) {
            let choices = run.chooser.listed().to_vec();
            found.failure = Some((choices, wrong.in_run(0)));
            return found;
        }
        chooser = run.chooser;
        let goes_on = chooser.advance();
        if let Some(search) = chooser.searched() {
            (found.orders, found.states) = (search.orders(), search.states());
        }
        if !goes_on {
            found.is_complete = true;
            return found;
        }
    }
    found
}
