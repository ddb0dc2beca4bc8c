//! What an instruction costs on the `v9` clock: elements that it touches, not time of any machine.

use super::kernel::Kernel;
use super::op::{Moves, Op, Reduce, ValueId};

/// Rows and columns that count, of the result and the operands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    /// Extents of the result; for a store, those of the view.
    pub(super) result: [u16; 2],
    /// Extents of the first operand.
    pub(super) first: [u16; 2],
    /// Whether the result is a scalar.
    pub(super) is_scalar: bool,
}

fn elements([rows, cols]: [u16; 2]) -> u64 {
    u64::from(rows) * u64::from(cols)
}

impl Kernel {
    /// The cycles that a run on whole tiles reports on the `v9` clock, without those that the kernel [adds itself](Op::AddCycles).
    #[must_use]
    pub fn whole_cycles(&self) -> u64 {
        let extents = |id: ValueId| {
            let value = self.values().get(usize::from(id.0));
            value.map_or([0, 0], |value| [value.tile.rows, value.tile.cols])
        };
        let costs = self.steps().iter().map(|step| {
            let first = step.op.operands()[0].map_or([0, 0], extents);
            let Some(id) = step.result.map(ValueId) else {
                return cost(&step.op, Counted { result: first, first, is_scalar: false });
            };
            let value = self.values().get(usize::from(id.0));
            let is_scalar = value.is_some_and(|value| value.tile.is_scalar);
            cost(&step.op, Counted { result: extents(id), first, is_scalar })
        });
        costs.fold(0, u64::saturating_add)
    }
}

/// The cost of an instruction; what [`Op::AddCycles`] adds is not in it.
pub(super) fn cost(op: &Op, counted: Counted) -> u64 {
    let result = elements(counted.result);
    match *op {
        Op::Scalar { .. }
        | Op::Constant { .. }
        | Op::Zeros { .. }
        | Op::Iota { .. }
        | Op::TopK { .. }
        | Op::AddCycles { .. } => 0,
        Op::Sort32 { .. } => 5 * elements(counted.first),
        // A sum, and a division.
        Op::Reduce { function: Reduce::RowMean, .. } => 2 * result,
        Op::Matmul { moves, .. } => matmul(counted.first, counted.result, moves),
        _ if counted.is_scalar => 0,
        _ => result,
    }
}

fn matmul([rows, depth]: [u16; 2], result: [u16; 2], moves: Moves) -> u64 {
    let [_, cols] = result;
    let moved = |is_moved: bool, extents: [u16; 2]| if is_moved { elements(extents) } else { 0 };
    elements(result) * u64::from(depth)
        + moved(moves.left, [rows, depth])
        + moved(moves.right, [depth, cols])
        + moved(moves.result, result)
}
