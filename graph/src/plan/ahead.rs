//! The calls that a loop will make: how the operands of its tasks move while the loop variable counts up.
//!
//! ```text
//! call (tasks.rs) --> steps: for each operand a step, and for how many turns --> Run::go_on, which submits those calls
//! body (rows.rs)  --> step: the same of one operand                          --> Row::turn, likewise
//! ```
//! Such a turn is never a fault: where an index would leave its dimension, a tile become partial or an expression have no value, the
//! steps end before, and the call is made in the ordinary way. So is the first call of each such row.

use super::accept::{ParamEntry, Plan};
use super::bindings::Bindings;
use super::cursor::Cursor;
use super::expression::{self, Names};
use super::layout::{index, node};
use super::line::{Line, line};
use super::operand::Steps;
use super::values::Values;
use super::walk::Walk;

/// How many failures in a row make the next tries rarer, as powers of two.
const MOST_MISSES: u32 = 6;

/// When a loop looks ahead: in every turn, and less often where that has not helped.
#[derive(Default)]
pub(super) struct Tries {
    misses: u32,
    pause: u32,
}

impl Tries {
    /// Counts a turn; whether it is time to look ahead in it.
    pub(super) const fn count(&mut self) -> bool {
        self.pause = self.pause.saturating_sub(1);
        self.pause == 0
    }

    /// Records that this many turns were made at once.
    pub(super) const fn made(&mut self, turns: u64) {
        self.misses = if turns > 0 { 0 } else { self.misses + 1 };
        let misses = if self.misses < MOST_MISSES { self.misses } else { MOST_MISSES };
        self.pause = 1 << misses;
    }
}

/// Tasks of a body whose calls are made ahead. A body with more is expanded node by node.
pub(super) const MOST_CALLS: usize = 8;

/// A call of a body: a cursor past its code, its index in the plan, and its kernel.
pub(super) type Call<'p> = (Cursor<'p>, usize, u32);

/// The calls of a body.
pub(super) type BodyCalls<'p> = heapless::Vec<Call<'p>, MOST_CALLS>;

/// The tasks that are a whole body; none: the body has something else, or too many.
pub(super) fn only_tasks<'p>(body: &Cursor<'p>, plan: &Plan<'_>) -> BodyCalls<'p> {
    let (mut cursor, mut calls, mut left) = (*body, BodyCalls::new(), 1);
    while left > 0 {
        let at = cursor.at();
        match cursor.code() {
            (node::BLOCK, nodes) => left += nodes,
            (node::TASK, kernel) if calls.push((cursor, at, kernel)).is_ok() => {
                if left > 1 {
                    skip_task(&mut cursor, plan, kernel);
                }
            }
            _ => return BodyCalls::new(),
        }
        left -= 1;
    }
    calls
}

/// Moves the cursor past the words of a call. The code was read before, and there is no schedule.
fn skip_task(cursor: &mut Cursor<'_>, plan: &Plan<'_>, kernel: u32) {
    let Some(kernel) = plan.kernel(kernel) else { return };
    cursor.wide();
    let mut params = plan.from(kernel.params_at);
    for _ in 0..kernel.params {
        if !ParamEntry::read(&mut params).is_tensor() {
            skip(cursor);
            continue;
        }
        let [_, indices, ..] = cursor.word().to_le_bytes();
        for _ in 0..indices {
            let is_range = cursor.word() == index::RANGE;
            skip(cursor);
            if is_range {
                skip(cursor);
            }
        }
    }
}

/// Moves the cursor past an expression, which was checked before.
fn skip(cursor: &mut Cursor<'_>) {
    const ALL: Names = Names { vars: u32::MAX, symbols: u32::MAX };
    let _ = expression::check(cursor, ALL, 0);
}

/// How the operands of a call move while a variable counts up, and for how many turns, `most` of them at most. The cursor is past
/// the code of the call. No turns: they do not move by steps.
pub(super) fn steps<G>(
    walk: &Walk<'_, G>,
    cursor: &mut Cursor<'_>,
    (kernel, var): (u32, u32),
    most: u64,
) -> (Steps, u64) {
    let (mut steps, mut turns) = (Steps::new(), most);
    let Some(kernel) = walk.plan.kernel(kernel) else { return (steps, 0) };
    cursor.wide();
    let mut params = walk.plan.from(kernel.params_at);
    for _ in 0..kernel.params {
        let Some(found) = step(walk, (cursor, &mut params), var) else { return (steps, 0) };
        turns = turns.min(found.turns);
        // There is room for as many as a kernel has.
        let _ = steps.push(found.step.cast_signed());
    }
    (steps, turns)
}

/// How the operand at the first cursor moves; the second cursor is at its parameter. Both cursors move past it. `None`: not by steps, not
/// even for one turn.
pub(super) fn step<G>(
    walk: &Walk<'_, G>,
    (cursor, params): (&mut Cursor<'_>, &mut Cursor<'_>),
    var: u32,
) -> Option<Line> {
    let param = ParamEntry::read(params);
    let found = match param.is_tensor() {
        true => tile(&walk.bindings, cursor, (&walk.values, var), param),
        false => line(cursor, &walk.values, var),
    };
    found.filter(|found| found.turns > 0)
}

/// The first element of the tile that the view at the cursor is, as long as as much counts of it as now.
fn tile(
    bindings: &Bindings,
    cursor: &mut Cursor<'_>,
    (values, var): (&Values, u32),
    param: ParamEntry,
) -> Option<Line> {
    let [number, count, row, col] = cursor.word().to_le_bytes();
    let whole = bindings.tensor(number.into())?;
    let mut found = Line { value: whole.offset(), step: 0, turns: u64::MAX };
    for dim in 0..count {
        let extent = i64::from(*whole.shape().get(usize::from(dim))?);
        let is_range = cursor.word() == index::RANGE;
        let start = line(cursor, values, var)?;
        let mut turns = start.turns;
        let mut last = extent.saturating_sub(1);
        if is_range {
            let length = line(cursor, values, var)?;
            let side = [row, col].iter().position(|side| *side == dim)?;
            let most = i64::from(*param.tile.get(side)?);
            let counted =
                if length.step == 0 { length.value.cast_signed().min(most) } else { most };
            turns = turns.min(length.within(counted.max(1), i64::MAX)?);
            let reach = i64::from(*param.reach.get(side)?);
            last = extent.saturating_sub(counted).saturating_sub(reach);
        }
        turns = turns.min(start.within(0, last)?);
        let stride = *whole.strides().get(usize::from(dim))?;
        found.step = found.step.wrapping_add(start.step.wrapping_mul(stride));
        found.turns = found.turns.min(turns);
    }
    Some(found)
}
