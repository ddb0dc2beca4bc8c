//! The calls of a body, many turns of its loop at once: each operand moves by its step, as [`super::ahead`] says. An operand whose steps have ended is
//! evaluated again, and the others go on.
//!
//! Both ways of making calls give them to the same [run](super::grain), which puts short ones together.

use super::ahead::{self, BodyCalls, MOST_CALLS};
use super::cursor::Cursor;
use super::grain::Call;
use super::line::Line;
use super::measure::Measure;
use super::operand::{Args, Given, Next, fill};
use super::stop::Stop;
use super::tasks::{has_room, head, hold, is_alone, operand, release};
use super::walk::Walk;
use crate::stream::StreamBuilder;
use crate::tensor_task::TensorTask;

/// Operands of all calls of a body.
const OPERANDS: usize = 48;

/// An operand, and how far it moves in a turn.
struct Moving {
    given: Given,
    step: u64,
    /// The last turn of the row that it moves to.
    last: u64,
    /// Where the plan has its expressions, and its parameter.
    positions: [usize; 2],
}

impl Moving {
    /// The operand whose expressions and parameter are at the cursors, in this turn. The cursors move past it. `None`: the operand does not
    /// move by steps.
    fn read<G>(
        walk: &Walk<'_, G>,
        (cursor, params): (&mut Cursor<'_>, &mut Cursor<'_>),
        var: u32,
    ) -> Option<Self> {
        let positions = [cursor.at(), params.at()];
        let Line { step, turns, .. } = ahead::step(walk, (&mut cursor.clone(), params), var)?;
        params.go_to(positions[1]);
        let found = operand((&walk.bindings, &walk.values), cursor, params).ok()?;
        let given = if found.is_regular() { found.resolve().ok()? } else { return None };
        Some(Self { given, step, last: turns, positions })
    }
}

impl Next for Moving {
    #[inline]
    fn position(&self) -> u64 {
        self.given.position()
    }

    #[inline]
    fn is_like(&self, given: &Given) -> bool {
        self.given.is_like(given)
    }
}

/// A call of the body.
struct RowCall {
    call: Call,
    measure: Measure,
    /// The first of its operands, and the end of the range.
    operands: [usize; 2],
    /// Whether nothing is held back for it.
    is_alone: bool,
}

/// The calls of a body, as the turn before has them.
struct Row {
    calls: heapless::Vec<RowCall, MOST_CALLS>,
    operands: heapless::Vec<Moving, OPERANDS>,
}

/// Makes the calls of the turns after this one, while a variable counts up, `most` of them at most; of how many turns. The variable has the
/// value of the last one then.
// Not inlined, because the operands would otherwise use stack of every loop.
#[inline(never)]
pub(super) fn go_on<G: StreamBuilder>(
    walk: &mut Walk<'_, G>,
    calls: &BodyCalls<'_>,
    (var, loop_at): (u32, usize),
    most: u64,
) -> Result<u64, Stop> {
    let mut row = Row { calls: heapless::Vec::new(), operands: heapless::Vec::new() };
    if !calls.iter().all(|call| row.take(walk, call, var)) {
        return Ok(0);
    }
    let mut made = 0;
    while made < most {
        let last = row.last().min(most);
        if made == last {
            if row.renew(walk, var, made) {
                continue;
            }
            break;
        }
        let count = walk.turns_to_look().min(last - made);
        for _ in 0..count {
            let next = walk.values.var(var).wrapping_add(1);
            walk.values.set_var(var, next);
            row.turn(walk)?;
        }
        walk.turned(count, loop_at)?;
        made += count;
    }
    Ok(made)
}

impl Row {
    /// Takes a call in, with its operands in this turn; `false`: they do not move by steps.
    fn take<G: StreamBuilder>(
        &mut self,
        walk: &Walk<'_, G>,
        (cursor, at, number): &ahead::Call<'_>,
        var: u32,
    ) -> bool {
        let Some(kernel) = walk.plan.kernel(*number) else { return false };
        let first = self.operands.len();
        let mut cursor = *cursor;
        let forms = cursor.wide();
        let mut params = walk.plan.from(kernel.params_at);
        for _ in 0..kernel.params {
            let found = Moving::read(walk, (&mut cursor, &mut params), var);
            if found.is_none_or(|moving| self.operands.push(moving).is_err()) {
                return false;
            }
        }
        let measure = walk.measure(*number);
        let own = self.operands.get(first..).unwrap_or(&[]);
        let is_alone = is_alone(walk, measure) || !has_room(own.iter().map(|moving| &moving.given));
        let call = Call { at: *at, kernel, head: head(&walk.bindings, (&kernel, *number), forms) };
        let operands = [first, self.operands.len()];
        self.calls.push(RowCall { call, measure, operands, is_alone }).is_ok()
    }

    /// The last turn that all operands move to.
    fn last(&self) -> u64 {
        self.operands.iter().fold(u64::MAX, |last, moving| last.min(moving.last))
    }

    /// Evaluates those operands again whose last turn was this one, as the next turn has them; `false`: one of them does not move by steps there, and
    /// nothing may be made of the row any more.
    fn renew<G: StreamBuilder>(&mut self, walk: &mut Walk<'_, G>, var: u32, made: u64) -> bool {
        let now = walk.values.var(var);
        walk.values.set_var(var, now.wrapping_add(1));
        let mut ended = self.operands.iter_mut().filter(|moving| moving.last == made);
        let is_renewed = ended.all(|moving| {
            let [mut cursor, mut param] = moving.positions.map(|at| walk.plan.from(at));
            let Some(next) = Moving::read(walk, (&mut cursor, &mut param), var) else {
                return false;
            };
            *moving = next;
            // One step back: the turn moves it to where it is.
            moving.given.move_to(moving.given.position().wrapping_sub(moving.step));
            moving.last = moving.last.saturating_add(made + 1);
            true
        });
        walk.values.set_var(var, now);
        is_renewed
    }

    /// One turn of the loop.
    fn turn<G: StreamBuilder>(&mut self, walk: &mut Walk<'_, G>) -> Result<(), Stop> {
        for row_call in &self.calls {
            let [first, end] = row_call.operands;
            let operands = self.operands.get_mut(first..end).unwrap_or_default();
            for moving in operands.iter_mut() {
                moving.given.move_to(moving.given.position().wrapping_add(moving.step));
            }
            let given = operands.iter().map(|moving| &moving.given);
            let RowCall { call, measure, is_alone, .. } = row_call;
            if *is_alone {
                release(walk)?;
                walk.run.forget();
                submit(walk, call, given)?;
                continue;
            }
            let joined = walk.run.join(walk.stream, call.at, &*operands);
            if !joined.map_err(|fault| Stop::new(fault, walk.run.at()))? {
                hold(walk, (call, *measure), given)?;
            }
        }
        Ok(())
    }
}

#[inline]
fn submit<'g, G: StreamBuilder>(
    walk: &mut Walk<'_, G>,
    call: &Call,
    given: impl Iterator<Item = &'g Given>,
) -> Result<(), Stop> {
    let mut args = Args::new();
    fill(&mut args, &call.head, given);
    let task = TensorTask::new(call.kernel.func, call.kernel.kind, &args);
    walk.stream.submit_tensors(&task).map(drop).map_err(|fault| Stop::new(fault, call.at))
}
