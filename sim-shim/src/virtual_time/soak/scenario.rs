//! One seeded run: the graph, the device, the options and the trouble that a seed stands for.

use std::sync::Arc;

use pto_abi::{BuildMode, CoreKind, FanoutStrategy, RuntimeVariant};

use super::super::cost::KernelCosts;
use super::super::inject::{Injection, Trouble};
use super::super::options::{Compute, LineModel, VirtualOptions};
use super::super::profile::Profile;
use super::super::random::Random;
use super::super::trace::Keep;
use super::graph::{EdgesFrom, RandomGraph};
use super::setup::{KeepCores, Setup};

/// Everything that a run depends on.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The seed that it was drawn from.
    pub seed: u64,
    /// The graph.
    pub graph: Arc<RandomGraph>,
    /// The device.
    pub setup: Setup,
    /// The machine.
    pub options: VirtualOptions,
}

/// Longest kernel of a scenario, in nanoseconds.
const LONGEST_KERNEL_NS: u64 = 4_000;
/// A task may take this long: far above the longest kernel and every delay, far below a slow core's.
const TASK_BUDGET_NS: u64 = 100_000;
/// Nothing may move for this long.
const STALL_BUDGET_NS: u64 = 60_000;
/// A core may take this long to answer or to stop.
const BRING_UP_BUDGET_NS: u64 = 50_000;

impl Scenario {
    /// Draws a scenario of `tasks` tasks; `with_trouble`: in a chance of two out of three something goes wrong.
    #[must_use]
    pub fn draw(seed: u64, tasks: u32, trouble: Troubles) -> Self {
        Self::draw_of(seed, tasks, trouble, RuntimeVariant::ALL)
    }

    /// As [`draw`](Self::draw), of streaming runs only.
    #[must_use]
    pub fn shaped(seed: u64, tasks: u32, trouble: Troubles) -> Self {
        Self::draw_of(seed, tasks, trouble, &[RuntimeVariant::TENSORMAP_AND_RINGBUFFER])
    }

    fn draw_of(seed: u64, tasks: u32, trouble: Troubles, variants: &[RuntimeVariant]) -> Self {
        // Neighbouring seeds must not have neighbouring streams.
        let mut random = Random::new(pto_aicore_kernels::probe::mix(seed));
        let setup = draw_setup(&mut random, variants);
        let kinds: &[CoreKind] = match (setup.aic, setup.aiv) {
            (0, _) => &[CoreKind::AIV],
            (_, 0) => &[CoreKind::AIC],
            _ => CoreKind::ALL,
        };
        let mut graph = RandomGraph::draw(&mut random, tasks, kinds);
        if setup.variant == RuntimeVariant::TENSORMAP_AND_RINGBUFFER {
            // Of a stream of its own, so that the rest of the scenario is as without block shapes.
            let mut random = Random::new(pto_aicore_kernels::probe::mix(!seed));
            if random.below(3) > 0 {
                graph.shape_up(&mut random, &setup);
            }
        }
        let profile = match random.below(4) {
            0 => Profile::ideal(),
            _ => Profile::a2a3(),
        };
        let high = random.pick(&[0, 200, LONGEST_KERNEL_NS]);
        let costs = KernelCosts::Drawn { low: 0, high, seed: random.word() };
        let injection = match trouble {
            Troubles::None => None,
            Troubles::Some if random.below(3) == 0 => None,
            Troubles::Some => Some(draw_injection(&mut random, &setup, tasks)),
        };
        if setup.variant == RuntimeVariant::TENSORMAP_AND_RINGBUFFER {
            // As above. What goes wrong while the program waits for a value is another class of stall.
            let mut random = Random::new(pto_aicore_kernels::probe::mix(!seed ^ 1));
            let values = match injection {
                None => EdgesFrom::TensorsAndValues,
                Some(_) => EdgesFrom::Tensors,
            };
            graph.derive_edges(&mut random, &setup, values);
        }
        let graph = Arc::new(graph);
        let options = VirtualOptions {
            seed: random.word(),
            profile,
            costs,
            compute: Compute::Run,
            lines: LineModel::Results,
            injection,
            keep: Keep::Hash,
        };
        Self { seed, graph, setup, options }
    }
}

/// Whether scenarios have trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Troubles {
    /// Nothing goes wrong.
    None,
    /// In two out of three something does.
    Some,
}

fn draw_setup(random: &mut Random, variants: &[RuntimeVariant]) -> Setup {
    let clusters = 1 + random.below(5);
    let (aic, aiv) = match random.below(6) {
        0 => (0, 2 * clusters),
        1 => (clusters, 0),
        _ => (clusters, 2 * clusters),
    };
    let variant = random.pick(variants);
    // A scheduler needs a cluster; a builder has none.
    let builders = u32::from(variant.has_builder());
    Setup {
        variant,
        aicpu: builders + 1 + random.below(clusters.min(4)),
        aic,
        aiv,
        build_mode: random.pick(&[
            BuildMode::CONCURRENT,
            BuildMode::CONCURRENT,
            BuildMode::SEQUENTIAL,
        ]),
        fanout: random.pick(&[FanoutStrategy::LOCKED, FanoutStrategy::LOCK_FREE]),
        keeps_cores: random.pick(&[KeepCores::Leave, KeepCores::Stay]),
        task_budget_ns: TASK_BUDGET_NS,
        stall_budget_ns: STALL_BUDGET_NS,
        bring_up_budget_ns: BRING_UP_BUDGET_NS,
    }
}

fn draw_injection(random: &mut Random, setup: &Setup, tasks: u32) -> Injection {
    let trouble = random.pick(TROUBLES);
    if trouble.is_builders() && !setup.variant.has_builder() {
        // There is no builder program.
        return draw_injection(random, setup, tasks);
    }
    let at = if trouble.is_builders() { random.below(tasks) } else { random.below(4) };
    Injection { trouble, worker: random.below(setup.aic + setup.aiv), at }
}

/// Every trouble that a campaign injects.
pub const TROUBLES: &[Trouble] = &[
    Trouble::NoAnswer,
    Trouble::Hang,
    Trouble::Slow(1_000),
    Trouble::FinishTwice,
    Trouble::WrongId,
    Trouble::OldId,
    Trouble::DoorbellDelayed(20_000),
    Trouble::DoorbellDelayed(1_000_000),
    Trouble::DoorbellLost,
    Trouble::StatusDelayed(20_000),
    Trouble::StatusDelayed(1_000_000),
    Trouble::NoFlush,
    Trouble::NoInvalidate,
    Trouble::CorruptLine,
    Trouble::CorruptCount,
    Trouble::HostDies,
    Trouble::HostSilent,
    Trouble::BuilderStops,
    Trouble::BuilderFails,
];
