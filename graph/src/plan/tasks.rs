//! A call of a tile kernel, which becomes a task with the tensors that it touches, or joins a [run](super::grain).

use pto_abi::fault::Fault;
use pto_abi::ids::TaskId;

use super::accept::{KernelEntry, ParamEntry};
use super::ahead;
use super::bindings::Bindings;
use super::cursor::Cursor;
use super::expression::eval;
use super::grain::Run;
use super::layout::limits;
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

/// Submits the call at the cursor, or lets it join a run, and goes behind it. `at` is the call, `number` its kernel. `is_kept`: the
/// calls that follow [go on](go_on) from this one.
pub(super) fn submit<G: StreamBuilder>(
    walk: &mut Walk<'_, G>,
    cursor: &mut Cursor<'_>,
    (at, number): (usize, u32),
    is_kept: bool,
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
    if walk.run.join(at, &operands) {
        return Ok(());
    }
    let begun = walk.run.submit(walk.stream);
    begun.map_err(|fault| Stop::new(fault, walk.run.at()))?;
    let mut given = AllGiven::new();
    for operand in &operands {
        // As above.
        let _ = given.push(operand.resolve()?);
    }
    let call = (at, kernel, head(&walk.bindings, (&kernel, number), forms));
    let measure = walk.measure(number);
    let is_alone = measure.most(walk.is_in_order()) <= 1;
    if walk.pace.is_none() && (is_kept || !is_alone) && Run::can_hold(&operands) {
        walk.run.begin(call, (&operands, &given), measure);
        let submitted = if is_alone { walk.run.submit(walk.stream) } else { Ok(()) };
        return submitted.map_err(|fault| Stop::new(fault, at));
    }
    walk.run.forget();
    drop(operands);
    submit_alone(walk, cursor, call, &given)
}

/// What the parameter at `params` gets. Both cursors go behind it.
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

/// Submits the call at the cursor as a task that waits for others beside those that its tiles say, and goes behind it.
pub(super) fn submit_after<G: StreamBuilder>(
    walk: &mut Walk<'_, G>,
    cursor: &mut Cursor<'_>,
    (at, number): (usize, u32),
    after: &[TaskId],
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
    let mut args = Args::new();
    fill(&mut args, &head(&walk.bindings, (&kernel, number), forms), given.iter());
    let task = TensorTask::new(kernel.func, kernel.kind, &args).after(after);
    walk.stream.submit_tensors(&task).map_err(|fault| Stop::new(fault, at))
}

/// Makes calls after the one that was submitted last, while a variable counts up, `most` of them at most; how many. The variable has
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
    let is_alone = walk.measure(*number).most(walk.is_in_order()) <= 1;
    let mut made = 0;
    while made < turns {
        let count = walk.turns_to_look().min(turns - made);
        let mut left = count;
        let went = walk.run.go_on(walk.stream, (&steps, is_alone), &mut left);
        let reached = walk.values.var(var).wrapping_add((count - left).cast_signed());
        walk.values.set_var(var, reached);
        went.map_err(|fault| Stop::new(fault, *at))?;
        walk.turned(count, loop_at)?;
        made += count;
    }
    Ok(made)
}

/// A call: where it is, its kernel, and the words in front of those of the parameters.
type Call = (usize, KernelEntry, [u64; task::PARAMS]);

/// Submits a call as a task of its own.
fn submit_alone<G: StreamBuilder>(
    walk: &mut Walk<'_, G>,
    cursor: &mut Cursor<'_>,
    (at, kernel, head): Call,
    given: &[Given],
) -> Result<(), Stop> {
    let mut args = Args::new();
    fill(&mut args, &head, given.iter());
    let task = TensorTask::new(kernel.func, kernel.kind, &args);
    let submitted = match &mut walk.pace {
        Some(pace) => {
            let choice = pace.choose(cursor, &walk.values)?;
            paced(pace, walk.stream, &task, choice)
        }
        None => walk.stream.submit_tensors(&task).map(drop),
    };
    submitted.map_err(|fault| Stop::new(fault, at))
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
