//! Campaigns: many seeded runs of random graphs, with and without trouble, under checkers.
//!
//! ```text
//! seed -> scenario.rs (graph, device, options, trouble) -> soak_device.rs (runs it) -> judge.rs -> passed, or
//!         a FailedRun -> shrink.rs -> the smallest scenario that still fails -> recorded.rs (its trace)
//! ```
//! A seed is a bug report: the same seed and options give the same runs on every machine. Each scenario is run
//! twice if it has trouble: the second run, on the same device and without trouble, must succeed.

mod builder;
mod derived;
mod explore;
mod graph;
mod image;
mod judge;
#[cfg(test)]
mod mutants;
mod node_block_shape;
mod program;
mod recorded;
mod scenario;
mod setup;
mod shaped;
mod shrink;
mod soak_device;

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};

use pto_abi::sync::{AtomicU64, Ordering};

use super::campaign::in_turns;
use super::profile::Profile;
use crate::os_threads::default_campaign_threads;

pub use explore::{Exploration, explore, explore_bring_up, explore_options, explore_states};
pub use graph::{EdgesFrom, GraphNode, PublishOrder, RandomGraph, STRIDE};
pub use judge::{FailedRun, FailureCause, Passed, expected, try_scenario};
pub use node_block_shape::{NodeBlockShape, NodePredicate};
pub use recorded::{OWN_KERNELS, RecordedRun, record};
pub use scenario::{Scenario, TROUBLES, Troubles};
pub use setup::{KeepCores, Setup};
pub use shrink::shrink;

/// What a campaign does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoakOptions {
    /// Tasks of each graph; at least 1.
    pub tasks: u32,
    /// Whether things go wrong.
    pub troubles: Troubles,
    /// What operations cost; `None`: drawn, `a2a3` in three of four scenarios and `ideal` in the fourth.
    pub profile: Option<&'static Profile>,
    /// OS threads; each takes seeds as it gets to them. More than [`MAX_OS_THREADS`](crate::MAX_OS_THREADS) are not started.
    pub threads: NonZeroUsize,
    /// Failures after which the campaign stops.
    pub stop_after: usize,
}

impl Default for SoakOptions {
    /// 40 tasks, with trouble, one OS thread per CPU, stops at the first failure.
    fn default() -> Self {
        let threads = default_campaign_threads();
        Self { tasks: 40, troubles: Troubles::Some, profile: None, threads, stop_after: 1 }
    }
}

/// A scenario that failed.
#[derive(Clone, Debug)]
pub struct FailedSeed {
    /// Its seed: `Scenario::draw` with the campaign's options gives it again.
    pub seed: u64,
    /// What was wrong.
    pub failure: FailedRun,
    /// The smallest scenario found that still fails, and how it does.
    pub shrunk: (Scenario, FailedRun),
}

impl fmt::Display for FailedSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scenario, failure) = &self.shrunk;
        writeln!(f, "seed {}: {}", self.seed, self.failure)?;
        let tasks = scenario.graph.nodes.len();
        let plural = if tasks == 1 { "" } else { "s" };
        writeln!(f, "shrunk to {tasks} task{plural}: {failure}")?;
        for (index, node) in scenario.graph.nodes.iter().enumerate() {
            write!(f, "  task {index} ({}) after {:?}", node.kind, node.producers)?;
            match node.block_shape {
                Some(shape) => writeln!(f, ", {shape:?}")?,
                None => writeln!(f)?,
            }
        }
        let Scenario { setup, options, graph, .. } = scenario;
        writeln!(f, "  {setup}, publishes {:?}, edges from {:?}", graph.order, graph.edges)?;
        let (name, costs) = (&options.profile.name, options.costs);
        write!(f, "  profile {name}, kernels cost {costs:?}")?;
        match options.injection {
            Some(injection) => write!(f, ", fault {injection}"),
            None => write!(f, ", no fault injected"),
        }
    }
}

/// What came of a campaign. Independent of the number of OS threads, unless it was stopped by a failure.
#[derive(Clone, Debug, Default)]
pub struct SoakReport {
    /// Seeds that were tried.
    pub seeds: u64,
    /// Runs that were made: two for a scenario with trouble.
    pub runs: u64,
    /// Tasks that were completed in them.
    pub tasks: u64,
    /// Scenarios whose trouble happened.
    pub injected: u64,
    /// Scenarios that ended with a fault, as expected of them.
    pub faulted: u64,
    /// The exclusive or of all trace hashes: whatever the order of the seeds. It is reported and compared, and nothing goes by it.
    pub hash: u64,
    /// Seeds that failed, in ascending order.
    pub failures: Vec<FailedSeed>,
}

impl SoakReport {
    fn count(&mut self, passed: &Passed) {
        self.runs += passed.runs;
        self.tasks += passed.tasks;
        self.injected += u64::from(passed.was_injected);
        self.faulted += u64::from(passed.fault.is_some());
        self.hash ^= passed.hash;
    }

    fn add(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.runs += other.runs;
        self.tasks += other.tasks;
        self.injected += other.injected;
        self.faulted += other.faulted;
        self.hash ^= other.hash;
        self.failures.extend(other.failures);
    }
}

/// Seeds that a thread takes at once.
const SEEDS_A_TURN: u64 = 64;

/// Runs the scenarios of `seeds`, on several OS threads; `progress` is called now and then with how many are done, and says whether
/// to go on. A campaign that is stopped has tried the first [`SoakReport::seeds`] of them, each completely.
pub fn soak(
    seeds: Range<u64>,
    options: &SoakOptions,
    progress: impl Fn(u64) -> ControlFlow<()> + Sync,
) -> SoakReport {
    let failed = AtomicU64::new(0);
    let most = options.stop_after as u64;
    if most == 0 {
        return SoakReport::default();
    }
    let turn = |seeds: Range<u64>, report: &mut SoakReport| {
        for seed in seeds {
            let before = report.failures.len();
            try_seed(seed, options, report);
            let new = (report.failures.len() - before) as u64;
            if failed.fetch_add(new, Ordering::Relaxed) + new >= most {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    };
    let mut total = SoakReport::default();
    let found = in_turns((seeds, SEEDS_A_TURN), options.threads, turn, progress);
    found.into_iter().for_each(|report| total.add(report));
    total.failures.sort_by_key(|failure| failure.seed);
    total
}

/// A campaign of streaming runs only, in which most tasks have block shapes; stops at the first failure.
#[must_use]
pub fn soak_block_shapes(seeds: Range<u64>, troubles: Troubles) -> SoakReport {
    let mut report = SoakReport::default();
    let options = SoakOptions { tasks: 24, troubles, ..SoakOptions::default() };
    for seed in seeds {
        let scenario = Scenario::shaped(seed, options.tasks, troubles);
        report.seeds += 1;
        match judged(seed, &scenario) {
            Ok(passed) => report.count(&passed),
            Err(failed) => {
                report.failures.push(*failed);
                return report;
            }
        }
    }
    report
}

impl SoakOptions {
    /// The scenario of a seed.
    #[must_use]
    pub fn scenario(&self, seed: u64) -> Scenario {
        let mut scenario = Scenario::draw(seed, self.tasks, self.troubles);
        if let Some(profile) = self.profile {
            scenario.options.profile = profile;
        }
        scenario
    }
}

/// Runs the scenario of one seed again.
///
/// # Errors
/// What was wrong with it, and with the smallest scenario found that still fails.
pub fn replay(seed: u64, options: &SoakOptions) -> Result<Passed, Box<FailedSeed>> {
    judged(seed, &options.scenario(seed))
}

fn judged(seed: u64, scenario: &Scenario) -> Result<Passed, Box<FailedSeed>> {
    judge::try_scenario(scenario).map_err(|failure| {
        let shrunk = shrink(scenario, failure.clone());
        Box::new(FailedSeed { seed, failure, shrunk })
    })
}

fn try_seed(seed: u64, options: &SoakOptions, report: &mut SoakReport) {
    report.seeds += 1;
    match replay(seed, options) {
        Ok(passed) => report.count(&passed),
        Err(failed) => report.failures.push(*failed),
    }
}
