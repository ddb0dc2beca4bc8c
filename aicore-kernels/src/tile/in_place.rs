//! Which values an interpreter may read in their tensor, instead of loading them into the frame.
//!
//! Products of few rows use each element of their right operand once: to copy it costs as much as to multiply it. A load has the value that the tensor has
//! when the kernel reaches it. So only those loads are marked whose products come before every store.

use super::dtype::DType;
use super::op::{Op, ValueId};
use super::operands::LARGEST;
use super::step::{FrameValue, LoadSource, Step};

/// Marks the values.
pub(super) fn mark(steps: &[Step], values: &mut [FrameValue]) {
    let is_store = |step: &Step| matches!(step.op, Op::Store { .. });
    let before_stores = steps.iter().position(is_store).unwrap_or(steps.len());
    for (number, step) in steps.iter().enumerate() {
        let (Op::Load { param, offset, mask: None }, Some(result)) = (step.op, step.result) else {
            continue;
        };
        let uses = (0..).zip(steps).skip(number).filter(|(_, step)| reads(&step.op, result));
        let is_right = |(at, step): (usize, &Step)| {
            at < before_stores && is_right_operand(&step.op, result, values)
        };
        let source = uses.map(is_right).reduce(|all, one| all && one) == Some(true);
        if let Some(value) = values.get_mut(usize::from(result)) {
            let is_single = value.tile.dtype == DType::F32;
            value.source = (source && is_single).then_some(LoadSource { param, offset });
        }
    }
}

fn reads(op: &Op, value: u16) -> bool {
    op.operands().into_iter().flatten().any(|id| id.0 == value)
}

/// Whether it is the right operand of a product of few rows, and nothing else of it.
fn is_right_operand(op: &Op, value: u16, values: &[FrameValue]) -> bool {
    let Op::Matmul { a: ValueId(a), b: ValueId(b), acc, .. } = *op else { return false };
    let rows = values.get(usize::from(a)).map_or(usize::MAX, |a| a.tile.rows.into());
    b == value && a != value && acc != Some(ValueId(value)) && rows <= LARGEST[0]
}
