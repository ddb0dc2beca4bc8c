//! One seeded run: the graph, the device, the options and the trouble of a seed.

use std::sync::Arc;

use pto_abi::{BuildMode, CoreKind, FanoutStrategy, RuntimeVariant};

use super::super::cost::{COST_ARGS, KernelCosts};
use super::super::inject::{Injection, Trouble};
use super::super::options::{Compute, LineModel, VirtualOptions};
use super::super::profile::Profile;
use super::super::random::RandomStream;
use super::super::trace::Keep;
use super::graph::{EdgesFrom, PublishOrder, RandomGraph};
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

/// The longest kernels of a scenario, in nanoseconds.
const KERNELS_NS: [u64; 10] =
    [0, 0, 200, 200, 4_000, 4_000, 4_000, 4_000, LONG_KERNEL_NS, LONG_KERNEL_NS];
/// Nearly as long as a watchdog takes from one look to the next. With parts of tasks on few cores it then meets one part after another on a core, and nothing between.
/// One scenario in five is so, because a run takes several times as long.
const LONG_KERNEL_NS: u64 = 40_000;
/// Beyond its kernel a task has this much time in a scenario with room. It is far above every delay, and far below a slow core's.
const ROOM_NS: u64 = 100_000;
/// The same in a scenario without: what a healthy core and its scheduler need, and the delays that are injected and harmless.
const SLACK_NS: u64 = 20_000;
/// See [`SLACK_NS`].
const HARMLESS_DELAY_NS: u64 = 20_000;
/// Nothing may move for this long, and longer where a program adds tasks and publishes none.
const STALL_BUDGET_NS: u64 = 60_000;
/// What a program may take to add one task. Schedulers have their turns when it publishes, so that all tasks that it has added before seem to come at once.
const BUILD_NS: u64 = 1_000;
/// A core may take this long to answer or, after its kernel, to stop.
const BRING_UP_BUDGET_NS: u64 = 50_000;

/// Runs whose tasks may have parts.
const STREAMS: &[RuntimeVariant] = &[RuntimeVariant::TENSORMAP_AND_RINGBUFFER];

impl Scenario {
    /// Draws a scenario of `tasks` tasks; `with_trouble`: in a chance of two out of three something goes wrong.
    #[must_use]
    pub fn draw(seed: u64, tasks: u32, trouble: Troubles) -> Self {
        Self::draw_of(seed, tasks, trouble, RuntimeVariant::ALL)
    }

    /// As [`draw`](Self::draw), of streaming runs only.
    #[must_use]
    pub fn shaped(seed: u64, tasks: u32, trouble: Troubles) -> Self {
        Self::draw_of(seed, tasks, trouble, STREAMS)
    }

    /// What the kernel of a node takes, in nanoseconds; each of its parts, if it has several.
    #[must_use]
    pub fn kernel_ns(&self, node: u32) -> u64 {
        let slots = self.setup.window.unwrap_or(u32::MAX);
        self.options.costs.of(self.graph.func_id(node).0, node % slots, &[0; COST_ARGS])
    }

    fn draw_of(seed: u64, tasks: u32, trouble: Troubles, variants: &[RuntimeVariant]) -> Self {
        // Neighbouring seeds must not have neighbouring streams.
        let mut random = RandomStream::new(pto_aicore_kernels::probe::mix(seed));
        let longest_ns = random.pick(&KERNELS_NS);
        let budgets = Budgets::draw(&mut random, (tasks, longest_ns), trouble);
        let is_long = longest_ns == LONG_KERNEL_NS;
        let (variants, most_clusters) = match is_long && random.below(4) > 0 {
            true => (STREAMS, 2),
            false => (variants, 5),
        };
        let mut setup = draw_setup(&mut random, variants, most_clusters, budgets);
        let kinds: &[CoreKind] = match (setup.aic, setup.aiv) {
            (0, _) => &[CoreKind::AIV],
            (_, 0) => &[CoreKind::AIC],
            _ => CoreKind::ALL,
        };
        let mut graph = RandomGraph::draw(&mut random, tasks, kinds);
        if setup.variant == RuntimeVariant::TENSORMAP_AND_RINGBUFFER {
            // Of a stream of its own, so that the rest of the scenario is as without block shapes.
            let mut random = RandomStream::new(pto_aicore_kernels::probe::mix(!seed));
            match random.below(3) {
                _ if is_long => graph.shape_alike(&mut random, &setup),
                0 => {}
                _ => graph.shape_up(&mut random, &setup),
            }
        }
        let profile = match random.below(4) {
            0 => Profile::ideal(),
            _ => Profile::a2a3(),
        };
        // Now and then all kernels are long.
        let low = if is_long { longest_ns / 2 } else { random.pick(&[0, 0, longest_ns / 2]) };
        let costs = KernelCosts::Drawn { low, high: longest_ns, seed: random.word() };
        let injection = match trouble {
            Troubles::None => None,
            Troubles::Some if random.below(3) == 0 => None,
            Troubles::Some => Some(draw_injection(&mut random, &setup, tasks)),
        };
        if setup.variant == RuntimeVariant::TENSORMAP_AND_RINGBUFFER {
            // As above. What goes wrong while the program waits for a value is another class of stall.
            let mut random = RandomStream::new(pto_aicore_kernels::probe::mix(!seed ^ 1));
            let values = match injection {
                None => EdgesFrom::TensorsAndValues,
                Some(_) => EdgesFrom::Tensors,
            };
            graph.derive_edges(&mut random, &setup, values);
            if injection.is_none() {
                setup.window = draw_window(&mut random, &setup, graph.order);
            }
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
    /// No trouble is injected.
    None,
    /// In two out of three something does.
    Some,
}

/// The budgets of a scenario, in nanoseconds.
#[derive(Clone, Copy)]
struct Budgets {
    task_ns: u64,
    stall_ns: u64,
    bring_up_ns: u64,
}

impl Budgets {
    /// Those of a run of this many tasks whose kernels are so long at most.
    fn draw(random: &mut RandomStream, (tasks, longest_ns): (u32, u64), trouble: Troubles) -> Self {
        let harmless_ns = match trouble {
            Troubles::None => 0,
            Troubles::Some => HARMLESS_DELAY_NS,
        };
        let tight_ns = SLACK_NS + harmless_ns;
        let beyond_ns = random.pick(&[ROOM_NS, tight_ns, tight_ns]);
        Self {
            task_ns: longest_ns + beyond_ns,
            stall_ns: STALL_BUDGET_NS + BUILD_NS * u64::from(tasks),
            bring_up_ns: BRING_UP_BUDGET_NS + longest_ns,
        }
    }
}

/// How many tasks a window holds that is smaller than the graph, in one of two; `None`: it holds all. The program has to wait for room then, so that schedulers run
/// at the same time, and it must hold what is published together.
fn draw_window(random: &mut RandomStream, setup: &Setup, order: PublishOrder) -> Option<u32> {
    let smallest = match order {
        PublishOrder::AtOnce => 16,
        PublishOrder::Ranges(_) => 32,
        PublishOrder::Backwards(_) | PublishOrder::AtEnd => return None,
    };
    let is_small = random.below(2) == 0 && setup.build_mode == BuildMode::CONCURRENT;
    is_small.then_some(smallest)
}

fn draw_setup(
    random: &mut RandomStream,
    variants: &[RuntimeVariant],
    most_clusters: u32,
    budgets: Budgets,
) -> Setup {
    let clusters = 1 + random.below(most_clusters);
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
        window: None,
        keeps_cores: random.pick(&[KeepCores::Leave, KeepCores::Stay]),
        task_budget_ns: budgets.task_ns,
        stall_budget_ns: budgets.stall_ns,
        bring_up_budget_ns: budgets.bring_up_ns,
    }
}

fn draw_injection(random: &mut RandomStream, setup: &Setup, tasks: u32) -> Injection {
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
