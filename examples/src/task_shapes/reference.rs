//! The reference of `task_shapes`: the plan, one task after the other, part by part.

use std::vec;
use std::vec::Vec;

use pto_aicore_kernels::parts::{BLOCK_WORDS, MEETING, part_value};

use crate::host::job::index;
use crate::host::random::Rng;
use crate::task_shapes::stream::BOUND;

/// What a predicate says of the cell of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// The task runs.
    Always,
    /// It runs if the cell is below [`BOUND`].
    Below([u32; 2]),
    /// It runs if the cell is not.
    NotBelow([u32; 2]),
}

/// A task of the plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned {
    pub(crate) row: u32,
    /// Cores of a block as bits: cube, vector, vector.
    pub(crate) cores: u32,
    pub(crate) blocks: u32,
    pub(crate) is_sync: bool,
    pub(crate) priority: u32,
    pub(crate) when: When,
}

/// What bounds a draw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) rows: u64,
    pub(crate) blocks: u64,
    /// Of tasks that start all blocks at once.
    pub(crate) together: u64,
}

impl Planned {
    pub(crate) fn draw(random: &mut Rng, bounds: Bounds) -> Self {
        let mut below = |bound: u64| u32::try_from(random.below(bound)).unwrap_or(0);
        let row = below(bounds.rows);
        let cores = [0b001, 0b010, 0b011, 0b110, 0b111][below(5) as usize];
        let is_sync = below(3) == 0;
        let most = if is_sync { bounds.blocks.min(bounds.together) } else { bounds.blocks };
        let blocks = 1 + below(most);
        let cell = [below(bounds.rows), below(bounds.blocks * BLOCK_WORDS)];
        let when = match below(4) {
            0 => When::Below(cell),
            1 => When::NotBelow(cell),
            _ => When::Always,
        };
        Self { row, cores, blocks, is_sync, priority: below(4), when }
    }

    /// The words of the plan.
    pub(crate) fn words(&self) -> [u32; 8] {
        let (comparison, [row, cell]) = match self.when {
            When::Always => (0, [0, 0]),
            // One more than the numbers of "<" and ">=".
            When::Below(cell) => (3, cell),
            When::NotBelow(cell) => (6, cell),
        };
        let start = u32::from(self.is_sync);
        [self.row, self.cores, self.blocks, start, self.priority, comparison, row, cell]
    }
}

/// The two matrices, and how many tasks ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Result {
    pub(crate) matrices: [Vec<u64>; 2],
    pub(crate) ran: u64,
}

/// The plan, layer after layer; `meets`: parts that start together wait for each other.
pub(crate) fn result(
    plan: &[Planned],
    bounds: Bounds,
    layers: u64,
    seed: u64,
    meets: bool,
) -> Result {
    let width = bounds.blocks * BLOCK_WORDS;
    let words = index(bounds.rows * width);
    let mut result = Result { matrices: [vec![0; words], vec![0; words]], ran: 0 };
    for layer in 0..layers {
        let matrix = &mut result.matrices[usize::from(layer % 2 == 1)];
        for task in plan {
            let at = |[row, cell]: [u32; 2]| index(u64::from(row) * width + u64::from(cell));
            let runs = match task.when {
                When::Always => true,
                When::Below(cell) => matrix[at(cell)] < BOUND,
                When::NotBelow(cell) => matrix[at(cell)] >= BOUND,
            };
            if runs {
                let row = &mut matrix[at([task.row, 0])..][..index(width)];
                run(row, task, seed.wrapping_add(layer), meets);
                result.ran += 1;
            }
        }
    }
    result
}

/// Every part of a task on its row.
fn run(row: &mut [u64], task: &Planned, salt: u64, meets: bool) {
    for (block, words) in (0_u64..task.blocks.into()).zip(row.chunks_mut(index(BLOCK_WORDS))) {
        let (cells, meeting) = words.split_at_mut(index(MEETING));
        for (lane, cell) in (0_u64..).zip(cells).filter(|(lane, _)| task.cores >> lane & 1 == 1) {
            *cell = part_value(*cell, salt, BLOCK_WORDS * block + lane, task.blocks);
        }
        // All blocks meet at the first one.
        if meets && (!task.is_sync || block == 0) {
            meeting[0] += 1 << 32;
        }
    }
}
