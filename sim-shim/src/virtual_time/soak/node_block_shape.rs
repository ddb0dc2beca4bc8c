//! What a node of a random graph is beyond one kernel on one core, and how that is drawn.

use pto_aicpu_fw::block_shapes::Lanes;
use pto_graph::{Comparison, Priority};

use super::super::random::RandomStream;
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
    /// The shape's kernels.
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
    pub(super) fn draw(random: &mut RandomStream, setup: &Setup, producers: &[u32]) -> Self {
        Self::draw_of(random, setup, &[1, 2, 3, 6, 7]).for_node(random, producers)
    }

    /// As [`draw`](Self::draw), of a block that has several kernels where the device can run one.
    pub(super) fn draw_with_parts(random: &mut RandomStream, setup: &Setup) -> Self {
        let several: &[u8] = if room(setup, Lanes(3)) > 0 { &[3, 6, 7] } else { &[1, 2, 6] };
        Self::draw_of(random, setup, several)
    }

    fn draw_of(random: &mut RandomStream, setup: &Setup, lanes: &[u8]) -> Self {
        let able = lanes.iter().map(|lanes| Lanes(*lanes)).filter(|l| room(setup, *l) > 0);
        let lanes = random.pick(&able.collect::<Vec<_>>());
        let starts_at_once = random.below(3) == 0;
        // Now and then more than any device has cores for.
        let many = random.pick(&[9, 9, 9, 40]);
        let most = if starts_at_once { room(setup, lanes) } else { many };
        let blocks = if random.below(2) == 0 { 1 } else { 1 + random.below(most) };
        Self { lanes, blocks, starts_at_once, priority: Priority::NORMAL, when: None }
    }

    /// The same for a node with these producers: with a priority, and a predicate now and then.
    pub(super) fn for_node(self, random: &mut RandomStream, producers: &[u32]) -> Self {
        let when = (random.below(3) == 0 && !producers.is_empty()).then(|| NodePredicate {
            producer: random.pick(producers),
            comparison: random.pick(Comparison::ALL),
            value: random.word(),
        });
        Self { priority: random.pick(Priority::ALL), when, ..self }
    }
}
