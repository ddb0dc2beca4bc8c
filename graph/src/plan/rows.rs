//! The calls of a body with several tasks, many turns of its loop at once: each operand moves by its step, as [`super::ahead`] says.
//!
//! A call whose kernel is short is held back until the next one is there, as a [run](super::grain) is, so that both ways of making calls submit
//! them at the same moments. Calls of such a body never join, because another one stands between two calls of a kernel.

use super::accept::KernelEntry;
use super::ahead::{self, BodyCalls, Call, MOST_CALLS};
use super::grain::Run;
use super::operand::{Args, Given, Operand, fill};
use super::stop::Stop;
use super::task;
use super::tasks::{head, operand};
use super::walk::Walk;
use crate::stream::StreamBuilder;
use crate::tensor_task::TensorTask;

/// Operands of all calls of a body.
const OPERANDS: usize = 48;

/// An operand, and how far it moves in a turn.
struct Moving {
    given: Given,
    place: u64,
    step: u64,
}

/// A call of the body.
struct RowCall {
    at: usize,
    kernel: KernelEntry,
    head: [u64; task::PARAMS],
    /// The first of its operands, and the one behind the last.
    operands: [usize; 2],
    /// Whether nothing is held back for it.
    is_alone: bool,
}

/// The calls of a body, as the turn before has them.
struct Row {
    calls: heapless::Vec<RowCall, MOST_CALLS>,
    operands: heapless::Vec<Moving, OPERANDS>,
    /// The call that is held back.
    held: Option<usize>,
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
    let mut row = Row { calls: heapless::Vec::new(), operands: heapless::Vec::new(), held: None };
    let mut turns = most;
    for call in calls {
        turns = turns.min(row.take(walk, call, (var, most)));
    }
    // The last turn is made in the ordinary way where it leaves a call behind that others may join.
    let is_alone = row.calls.last().is_none_or(|call| call.is_alone);
    let turns = if is_alone { turns } else { turns.saturating_sub(1) };
    let mut made = 0;
    while made < turns {
        let count = walk.turns_to_look().min(turns - made);
        for _ in 0..count {
            count_up(walk, var);
            row.turn(walk)?;
        }
        walk.turned(count, loop_at)?;
        made += count;
    }
    if row.held.is_some() {
        // It is submitted in the turn after its own.
        count_up(walk, var);
        row.release(walk)?;
    }
    Ok(made)
}

fn count_up<G>(walk: &mut Walk<'_, G>, var: u32) {
    let next = walk.values.var(var).wrapping_add(1);
    walk.values.set_var(var, next);
}

impl Row {
    /// Takes a call in, with its operands in this turn; for how many turns they move by steps.
    fn take<G: StreamBuilder>(
        &mut self,
        walk: &Walk<'_, G>,
        (cursor, at, number): &Call<'_>,
        (var, most): (u32, u64),
    ) -> u64 {
        let Some(kernel) = walk.plan.kernel(*number) else { return 0 };
        let (steps, turns) = ahead::steps(walk, &mut cursor.clone(), (*number, var), most);
        let (first, mut words) = (self.operands.len(), task::PARAMS);
        let mut cursor = *cursor;
        let forms = cursor.wide();
        let mut params = walk.plan.from(kernel.params_at);
        // By reference: an iterator that owns them could panic when it is dropped.
        for step in &steps {
            let found = operand((&walk.bindings, &walk.values), &mut cursor, &mut params);
            let is_regular = match &found {
                Ok(Operand::View(view)) => view.is_regular(),
                found => found.is_ok(),
            };
            let given = found.and_then(|found| Ok((found.place(), found.resolve()?)));
            let Some((place, given)) = given.ok().filter(|_| is_regular) else { return 0 };
            words += given.args();
            if self.operands.push(Moving { given, place, step: step.cast_unsigned() }).is_err() {
                return 0;
            }
        }
        let measure = walk.measure(*number);
        let is_alone = measure.most(walk.is_in_order()) <= 1 || !Run::has_room(words);
        let call = RowCall {
            at: *at,
            kernel,
            head: head(&walk.bindings, (&kernel, *number), forms),
            operands: [first, self.operands.len()],
            is_alone,
        };
        if self.calls.push(call).is_ok() { turns } else { 0 }
    }

    /// One turn of the loop.
    fn turn<G: StreamBuilder>(&mut self, walk: &mut Walk<'_, G>) -> Result<(), Stop> {
        for number in 0..self.calls.len() {
            self.release(walk)?;
            let Some(call) = self.calls.get(number) else { return Ok(()) };
            let [first, end] = call.operands;
            for moving in self.operands.get_mut(first..end).unwrap_or_default() {
                moving.place = moving.place.wrapping_add(moving.step);
                moving.given.move_to(moving.place);
            }
            if call.is_alone {
                self.submit(walk, number)?;
            } else {
                self.held = Some(number);
            }
        }
        Ok(())
    }

    /// Submits what was held back: here, or before the first turn.
    fn release<G: StreamBuilder>(&mut self, walk: &mut Walk<'_, G>) -> Result<(), Stop> {
        walk.run.submit(walk.stream).map_err(|fault| Stop::new(fault, walk.run.at()))?;
        match self.held.take() {
            Some(number) => self.submit(walk, number),
            None => Ok(()),
        }
    }

    #[inline]
    fn submit<G: StreamBuilder>(&self, walk: &mut Walk<'_, G>, number: usize) -> Result<(), Stop> {
        let Some(call) = self.calls.get(number) else { return Ok(()) };
        let [first, end] = call.operands;
        let operands = self.operands.get(first..end).unwrap_or(&[]);
        let mut args = Args::new();
        fill(&mut args, &call.head, operands.iter().map(|moving| &moving.given));
        let task = TensorTask::new(call.kernel.func, call.kernel.kind, &args);
        let submitted = walk.stream.submit_tensors(&task);
        submitted.map(drop).map_err(|fault| Stop::new(fault, call.at))
    }
}
