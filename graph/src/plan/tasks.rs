//! A call of a tile kernel, which becomes a task with the tensors that it touches, or joins a [run](super::grain).

use pto_abi::fault::Fault;

use super::accept::{KernelEntry, ParamEntry};
use super::bindings::Bindings;
use super::cursor::Cursor;
use super::expression::eval;
use super::grain::Run;
use super::layout::limits;
use super::operand::{Given, Operand, args_of};
use super::schedule::{Choice, Pace};
use super::stop::Stop;
use super::task;
use super::tile::view;
use super::walk::Walk;
use crate::stream::StreamBuilder;
use crate::tensor_task::TensorTask;

type Operands<'t> = heapless::Vec<Operand<'t>, { limits::PARAMS }>;
type AllGiven = heapless::Vec<Given, { limits::PARAMS }>;

/// Submits the call at the cursor, or lets it join a run, and goes behind it. `at` is the call, `number` its kernel.
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
        let param = ParamEntry::read(&mut params);
        let operand = match param.is_tensor() {
            true => Operand::View(view((&walk.bindings, &walk.values), cursor, param)?),
            false => Operand::Word(eval(cursor, &walk.values)?),
        };
        // There is room for as many as a kernel has.
        let _ = operands.push(operand);
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
    if walk.pace.is_none() && measure.most(walk.is_in_order()) > 1 && Run::can_hold(&operands) {
        walk.run.begin(call, (&operands, &given), measure);
        return Ok(());
    }
    drop(operands);
    submit_alone(walk, cursor, call, &given)
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
    let args = args_of(&head, given.iter());
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
fn head(
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
