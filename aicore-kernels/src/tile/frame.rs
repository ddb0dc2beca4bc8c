//! Allocates the values of a kernel in its frame: each has words of its own for as long as an instruction still reads it.
//!
//! First fit over the live values in the order of the instructions. The result of an instruction never shares words with its
//! operands, so that an instruction reads and writes different slices.

use heapless::Vec;

use super::op::Op;
use super::operands;
use super::step::{FrameSlot, FrameValue, Step, limits};

/// Words of a frame: a cache line, so that tiles do not share lines.
const ALIGN_WORDS: usize = 8;

/// Gives every value its slot; returns the words of the frame.
pub(super) fn allocate(steps: &[Step], values: &mut [FrameValue]) -> usize {
    let last_uses = last_uses(steps, values.len());
    let mut live: Vec<(usize, FrameSlot), { limits::OPS }> = Vec::new();
    let mut frame_words = 0;
    for (number, step) in steps.iter().enumerate() {
        live.retain(|(value, _)| last_uses.get(*value).is_some_and(|last| *last >= number));
        let Some(result) = step.result.map(usize::from) else { continue };
        let Some(value) = values.get_mut(result) else { continue };
        let words = words_of(value);
        value.slot = FrameSlot { start: first_fit(&live, words), words };
        frame_words = frame_words.max(value.slot.end());
        // The values are at most as many as the list can take.
        let _ = live.push((result, value.slot));
    }
    frame_words
}

/// The last instruction that reads each value; the defining one, where none does.
fn last_uses(steps: &[Step], values: usize) -> Vec<usize, { limits::OPS }> {
    let mut last_uses = Vec::new();
    let _ = last_uses.resize(values.min(limits::OPS), 0);
    for (number, step) in steps.iter().enumerate() {
        let used = step.op.operands().into_iter().flatten().map(|id| id.0).chain(step.result);
        for value in used {
            if let Some(last) = last_uses.get_mut(usize::from(value)) {
                *last = number;
            }
        }
    }
    last_uses
}

fn words_of(value: &FrameValue) -> usize {
    let bytes = value.tile.elements() * value.tile.dtype.bytes();
    bytes.div_ceil(8 * ALIGN_WORDS) * ALIGN_WORDS
}

/// The first start at which `words` touch no live slot.
fn first_fit(live: &[(usize, FrameSlot)], words: usize) -> usize {
    let mut start = 0;
    let overlapping = |start: usize| {
        let touched =
            live.iter().filter(|(_, slot)| slot.start < start + words && start < slot.end());
        touched.map(|(_, slot)| slot.end()).max()
    };
    while let Some(end) = overlapping(start) {
        start = end;
    }
    start
}

/// Words in addition to the frame: what the largest product needs.
pub(super) fn work_words(steps: &[Step], values: &[FrameValue]) -> usize {
    let words = steps.iter().map(|step| match step.op {
        Op::Matmul { a, .. } => {
            values.get(usize::from(a.0)).map_or(0, |a| operands::work_words(a.tile))
        }
        _ => 0,
    });
    words.max().unwrap_or(0)
}
