//! A call of a tile kernel, which becomes a task with the tensors that it touches, or joins a [run](super::grain).

use pto_abi::fault::Fault;
use pto_abi::ids::TaskId;

use super::accept::{KernelEntry, ParamEntry};
use super::ahead;
use super::bindings::Bindings;
use super::crossings::{self, Load};
use super::cursor::Cursor;
use super::expression::eval;
use super::grain::{Call, Run};
use super::layout::limits;
use super::measure::Measure;
use super::operand::{Args, Given, Operand, fill};
use super::schedule::{Choice, Pace};
use super::stop::Stop;
use super::task;
use super::tile::view;
use super::values::Values;
use super::walk::Walk;
use crate::stream::StreamBuilder;
use crate::tensor_task::TensorTask;

type Operands<'t> = heapless::Vec<Operand<'t>, { limits::PARAMS }>;
type AllGiven = heapless::Vec<Given, { limits::PARAMS }>;

/// Submits the call at the cursor, or lets it join a run, and moves the cursor past it. `at` is the call, `number` its kernel.
pub(super) fn submit<G: StreamBuilder>(
    walk: &mut Walk<'_, G>,
    cursor: &mut Cursor<'_>,
    (at, number): (usize, u32),
) -> Result<(), Stop> {
    let kernel = walk.plan.kernel(number).ok_or(Stop::new(Fault::PLAN_NAME, at))?;
    let forms = cursor.wide();
    walk.has_task = true;
    let mut operands = Operands::new();
    let mut params = walk.plan.from(kernel.params_at);
    for _ in 0..kernel.params {
        // There is room for as many as a kernel has.
        let _ = operands.push(operand((&walk.bindings, &walk.values), cursor, &mut params)?);
    }
    let joined = walk.run.join(walk.stream, at, &operands);
    if joined.map_err(|fault| Stop::new(fault, walk.run.at()))? {
        return Ok(());
    }
    let mut given = AllGiven::new();
    for operand in &operands {
        // As above.
        let _ = given.push(operand.resolve()?);
    }
    let call = Call { at, kernel, head: head(&walk.bindings, (&kernel, number), forms) };
    let measure = walk.measure(number);
    let is_alone = is_alone(walk, measure);
    let can_be_held = operands.iter().all(Operand::is_regular) && has_room(given.iter());
    drop(operands);
    if walk.pace.is_none() && !is_alone && can_be_held {
        return hold(walk, (&call, measure), given.iter());
    }
    release(walk)?;
    walk.run.forget();
    submit_alone(walk, cursor, &call, &given)
}

/// Whether nothing is held back for a call: no other one shares a dispatch with it.
pub(super) fn is_alone<G: StreamBuilder>(walk: &Walk<'_, G>, measure: Measure) -> bool {
    measure.most(walk.is_in_order()) <= 1 && !measure.is_short()
}

/// Whether a chain has room for the words of a call.
pub(super) fn has_room<'g>(given: impl Iterator<Item = &'g Given>) -> bool {
    Run::has_room(task::PARAMS + given.map(Given::args).sum::<usize>())
}

/// Puts a call that can be in a run, and did not join the one before it as it goes on, to those before it or to none.
pub(super) fn hold<'g, G: StreamBuilder>(
    walk: &mut Walk<'_, G>,
    (call, measure): (&Call, Measure),
    given: impl Iterator<Item = &'g Given> + Clone,
) -> Result<(), Stop> {
    let mut all: heapless::Vec<&Given, { limits::PARAMS }> = heapless::Vec::new();
    for given in given.clone() {
        // There is room for as many as a kernel has; to collect them could panic.
        let _ = all.push(given);
    }
    if walk.run.add(call, &all, measure) {
        return Ok(());
    }
    release(walk)?;
    walk.run.begin(call, given, measure);
    Ok(())
}

/// Submits the calls that are held back.
pub(super) fn release<G: StreamBuilder>(walk: &mut Walk<'_, G>) -> Result<(), Stop> {
    walk.run.submit(walk.stream).map_err(|fault| Stop::new(fault, walk.run.at()))
}

/// The operand of the parameter at `params`. Both cursors move past it.
#[inline]
pub(super) fn operand<'w>(
    (bindings, values): (&'w Bindings, &Values),
    cursor: &mut Cursor<'_>,
    params: &mut Cursor<'_>,
) -> Result<Operand<'w>, Stop> {
    let param = ParamEntry::read(params);
    Ok(match param.is_tensor() {
        true => Operand::View(view((bindings, values), cursor, param)?),
        false => Operand::Word(eval(cursor, values)?),
    })
}

/// Submits the call at the cursor as a task that waits for others in addition to those that its tiles imply, and moves the cursor past it.
/// Without `after` the call is one of another rank, and is only looked at. `load` gets the tiles that it writes.
pub(super) fn submit_after<G: StreamBuilder>(
    walk: &mut Walk<'_, G>,
    cursor: &mut Cursor<'_>,
    (at, number): (usize, u32),
    after: Option<&[TaskId]>,
    load: Option<&mut Load>,
) -> Result<TaskId, Stop> {
    let kernel = walk.plan.kernel(number).ok_or(Stop::new(Fault::PLAN_NAME, at))?;
    let forms = cursor.wide();
    walk.has_task = true;
    let mut given = AllGiven::new();
    let mut params = walk.plan.from(kernel.params_at);
    for _ in 0..kernel.params {
        // There is room for as many as a kernel has.
        let found = operand((&walk.bindings, &walk.values), cursor, &mut params)?;
        let _ = given.push(found.resolve()?);
    }
    if let Some(load) = load
        && !crossings::load(load, given.iter())
    {
        return Err(Stop::new(Fault::TRANSFER_TENSOR, at));
    }
    let Some(after) = after else { return Ok(TaskId::NONE) };
    let mut args = Args::new();
    fill(&mut args, &head(&walk.bindings, (&kernel, number), forms), given.iter());
    let task = TensorTask::new(kernel.func, kernel.kind, &args).after(after);
    walk.stream.submit_tensors(&task).map_err(|fault| Stop::new(fault, at))
}

/// Makes calls after the last one of the run, while a variable counts up, `most` of them at most; how many. The variable has
/// the value of the last one then.
pub(super) fn go_on<G: StreamBuilder>(
    walk: &mut Walk<'_, G>,
    (cursor, at, number): &ahead::Call<'_>,
    (var, loop_at): (u32, usize),
    most: u64,
) -> Result<u64, Stop> {
    if !walk.run.is_kept(*at) {
        return Ok(0);
    }
    let (steps, turns) = ahead::steps(walk, &mut cursor.clone(), (*number, var), most);
    let mut made = 0;
    while made < turns {
        let count = walk.turns_to_look().min(turns - made);
        let mut left = count;
        let went = walk.run.go_on(walk.stream, &steps, &mut left);
        let reached = walk.values.var(var).wrapping_add((count - left).cast_signed());
        walk.values.set_var(var, reached);
        went.map_err(|fault| Stop::new(fault, *at))?;
        walk.turned(count, loop_at)?;
        made += count;
    }
    Ok(made)
}

/// Submits a call as a task of its own.
fn submit_alone<G: StreamBuilder>(
    walk: &mut Walk<'_, G>,
    cursor: &mut Cursor<'_>,
    Call { at, kernel, head }: &Call,
    given: &[Given],
) -> Result<(), Stop> {
    let mut args = Args::new();
    fill(&mut args, head, given.iter());
    let task = TensorTask::new(kernel.func, kernel.kind, &args);
    let submitted = match &mut walk.pace {
        Some(pace) => {
            let choice = pace.choose(cursor, &walk.values)?;
            paced(pace, walk.stream, &task, choice)
        }
        None => walk.stream.submit_tensors(&task).map(drop),
    };
    submitted.map_err(|fault| Stop::new(fault, *at))
}

/// Adds a task as the schedule wants it, and publishes it when it may be.
fn paced<G: StreamBuilder>(
    pace: &mut Pace,
    stream: &mut G,
    task: &TensorTask<'_>,
    choice: Choice,
) -> Result<(), Fault> {
    let after = choice.after.as_slice();
    let id = stream.add_tensor_task(&task.after(after).priority(choice.priority))?;
    pace.added(stream, id, choice)
}

/// The words in front of those of the parameters.
pub(super) fn head(
    bindings: &Bindings,
    (kernel, number): (&KernelEntry, u32),
    forms: u64,
) -> [u64; task::PARAMS] {
    let kernel_number = u8::try_from(number).unwrap_or(u8::MAX);
    [
        bindings.code.offset(kernel.code.into()).0,
        task::pack_code(kernel.bytes, kernel_number, bindings.cost_ns(number)),
        bindings.epitaph.0,
        bindings.scratch.0,
        forms,
        bindings.descriptors.0,
    ]
}
