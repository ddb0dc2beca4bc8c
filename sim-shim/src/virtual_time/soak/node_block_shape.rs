//! What a node of a random graph is beyond one kernel on one core, and how that is drawn.

use pto_aicpu_fw::block_shapes::Lanes;
use pto_graph::{Comparison, Priority};

use super::super::random::Random;
use super::setup::Setup;

/// What a node depends on whether it runs: the first cell of one of its producers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodePredicate {
    /// Index of the producer.
    pub producer: u32,
    /// How its value is compared.
    pub comparison: Comparison,
    /// With what.
    pub value: u64,
}

/// What a node is beyond one kernel on one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeBlockShape {
    /// Its kernels.
    pub lanes: Lanes,
    /// How many blocks.
    pub blocks: u32,
    /// Whether they start at once.
    pub starts_at_once: bool,
    /// Which ready task goes first.
    pub priority: Priority,
    /// Whether it runs.
    pub when: Option<NodePredicate>,
}

impl NodeBlockShape {
    /// How many cells.
    #[must_use]
    pub fn cells(&self) -> u32 {
        self.blocks * self.lanes.count()
    }
}

/// Blocks with these lanes that a device can run at once.
pub(super) fn room(setup: &Setup, lanes: Lanes) -> u32 {
    match lanes.0 {
        1 => setup.aic,
        2 => setup.aiv,
        6 => setup.aiv / 2,
        _ => setup.aic.min(setup.aiv / 2),
    }
}

impl NodeBlockShape {
    /// Draws a block shape for a node with these producers.
    pub(super) fn draw(random: &mut Random, setup: &Setup, producers: &[u32]) -> Self {
        let able: Vec<Lanes> =
            [1, 2, 3, 6, 7].map(Lanes).into_iter().filter(|l| room(setup, *l) > 0).collect();
        let lanes = random.pick(&able);
        let starts_at_once = random.below(3) == 0;
        let most = if starts_at_once { room(setup, lanes) } else { 9 };
        let blocks = if random.below(2) == 0 { 1 } else { 1 + random.below(most) };
        let when = (random.below(3) == 0 && !producers.is_empty()).then(|| NodePredicate {
            producer: random.pick(producers),
            comparison: random.pick(Comparison::ALL),
            value: random.word(),
        });
        let priority = random.pick(Priority::ALL);
        Self { lanes, blocks, starts_at_once, priority, when }
    }
}
