//! The calls of a body with several tasks, many turns of its loop at once: each operand moves by its step, as [`super::ahead`] says.
//!
//! Both ways of making calls give them to the same [run](super::grain), which puts short ones together.

use super::ahead::{self, BodyCalls, MOST_CALLS};
use super::grain::Call;
use super::measure::Measure;
use super::operand::{Args, Given, Next, Operand, fill};
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
}

impl Next for Moving {
    #[inline]
    fn place(&self) -> u64 {
        self.given.place()
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
    /// The first of its operands, and the one behind the last.
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
// Not inlined: the operands would stand on the stack of every loop.
#[inline(never)]
pub(super) fn go_on<G: StreamBuilder>(
    walk: &mut Walk<'_, G>,
    calls: &BodyCalls<'_>,
    (var, loop_at): (u32, usize),
    most: u64,
) -> Result<u64, Stop> {
    let mut row = Row { calls: heapless::Vec::new(), operands: heapless::Vec::new() };
    let mut turns = most;
    for call in calls {
        turns = turns.min(row.take(walk, call, (var, most)));
    }
    let mut made = 0;
    while made < turns {
        let count = walk.turns_to_look().min(turns - made);
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
    /// Takes a call in, with its operands in this turn; for how many turns they move by steps.
    fn take<G: StreamBuilder>(
        &mut self,
        walk: &Walk<'_, G>,
        (cursor, at, number): &ahead::Call<'_>,
        (var, most): (u32, u64),
    ) -> u64 {
        let Some(kernel) = walk.plan.kernel(*number) else { return 0 };
        let (steps, turns) = ahead::steps(walk, &mut cursor.clone(), (*number, var), most);
        let first = self.operands.len();
        let mut cursor = *cursor;
        let forms = cursor.wide();
        let mut params = walk.plan.from(kernel.params_at);
        // By reference: an iterator that owns them could panic when it is dropped.
        for step in &steps {
            let found = operand((&walk.bindings, &walk.values), &mut cursor, &mut params);
            let found = found.ok().filter(Operand::is_regular);
            let Some(given) = found.and_then(|found| found.resolve().ok()) else { return 0 };
            if self.operands.push(Moving { given, step: step.cast_unsigned() }).is_err() {
                return 0;
            }
        }
        let measure = walk.measure(*number);
        let own = self.operands.get(first..).unwrap_or(&[]);
        let is_alone = is_alone(walk, measure) || !has_room(own.iter().map(|moving| &moving.given));
        let call = Call { at: *at, kernel, head: head(&walk.bindings, (&kernel, *number), forms) };
        let operands = [first, self.operands.len()];
        if self.calls.push(RowCall { call, measure, operands, is_alone }).is_ok() {
            turns
        } else {
            0
        }
    }

    /// One turn of the loop.
    fn turn<G: StreamBuilder>(&mut self, walk: &mut Walk<'_, G>) -> Result<(), Stop> {
        for row_call in &self.calls {
            let [first, end] = row_call.operands;
            let operands = self.operands.get_mut(first..end).unwrap_or_default();
            for moving in operands.iter_mut() {
                moving.given.move_to(moving.given.place().wrapping_add(moving.step));
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
                hold(walk, (call, *measure, false), given)?;
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
