//! An operand of calls that share a dispatch: its value in the last call, and how far it has moved ([`super::grain`]).

use pto_abi::chain::MAX_CHAIN_STEP;
use pto_abi::limits::MAX_ARGS;

use super::operand::{Given, Next};
use super::task;
use crate::link::Variation;

/// The largest difference of a word from call to call.
const LONGEST_STEP: u64 = MAX_CHAIN_STEP.unsigned_abs();

/// Words that vary in a chain: each takes a word for itself and one for its step, in addition to the head of its link.
pub(super) const VARIATIONS: usize = (MAX_ARGS - task::PARAMS) / 2;

/// An operand of a run.
pub(super) struct Kept {
    /// The operand in the first call.
    pub(super) given: Given,
    /// Bytes of an element of a tile.
    element_bytes: i64,
    /// What varies from call to call: the first element of a tile, or a word.
    pub(super) last: u64,
    pub(super) step: i64,
}

impl Kept {
    pub(super) fn of(given: &Given) -> Self {
        let element_bytes = given.element_bytes().cast_signed();
        Self { given: *given, element_bytes, last: given.position(), step: 0 }
    }

    /// The step to what an operand has, if it goes on with this one: a tile of the same tensor, of which as much counts, at a distance that a
    /// chain can say.
    #[inline]
    pub(super) fn step_to(&self, operand: &impl Next) -> Option<i64> {
        let step = operand.position().wrapping_sub(self.last).cast_signed();
        (operand.is_like(&self.given) && self.can_step(step)).then_some(step)
    }

    #[inline]
    pub(super) fn can_step(&self, step: i64) -> bool {
        let bytes = step.checked_mul(self.element_bytes);
        bytes.is_some_and(|bytes| bytes.unsigned_abs() <= LONGEST_STEP)
    }

    #[inline]
    pub(super) const fn take(&mut self, position: u64) {
        self.step = position.wrapping_sub(self.last).cast_signed();
        self.last = position;
    }

    /// Whether it and an operand are the same tile, which one of both kernels writes.
    pub(super) fn meets(&self, operand: &Given) -> bool {
        let is_written = self.given.is_written() || operand.is_written();
        is_written && operand.is_like(&self.given) && operand.position() == self.last
    }
}

/// What grows from call to call.
pub(super) fn vary(varies: &mut heapless::Vec<Variation<'_>, VARIATIONS>, operands: &[Kept]) {
    let mut at = task::PARAMS;
    for kept in operands {
        // A tile is its address, and its first element. A step in bytes fits, as `step_to` has seen.
        let steps = match kept.given {
            Given::Tile(..) => [kept.step.wrapping_mul(kept.element_bytes), kept.step],
            Given::Word(_) => [kept.step, 0],
        };
        for (position, step) in (at..).zip(steps).filter(|(_, step)| *step != 0) {
            // There is room for as many as a chain has words.
            let _ = varies.push(Variation::by(position, step));
        }
        at += kept.given.args();
    }
}
