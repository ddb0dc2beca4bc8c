//! A task of a plan: a call of a tile kernel, submitted with the tensors that it touches.

use pto_abi::fault::Fault;

use super::accept::{KernelEntry, ParamEntry};
use super::cursor::Cursor;
use super::expression::eval;
use super::layout::{limits, param};
use super::stop::Stop;
use super::task;
use super::tile::{Tile, tile};
use super::walk::Walk;
use crate::stream::StreamBuilder;
use crate::tensor_task::{Arg, TensorTask};

/// What a parameter gets.
enum Operand {
    Tile(u32, Tile),
    Word(u64),
}

type Operands = heapless::Vec<Operand, { limits::PARAMS }>;

/// Submits the task at the cursor, and goes behind it. `at` is the task, `number` its kernel.
pub(super) fn submit<G: StreamBuilder>(
    walk: &mut Walk<'_, G>,
    cursor: &mut Cursor<'_>,
    (at, number): (usize, u32),
) -> Result<(), Stop> {
    let kernel = walk.plan.kernel(number).ok_or(Stop::new(Fault::PLAN_NAME, at))?;
    let head = head(walk, (&kernel, number), cursor.wide());
    let mut operands = Operands::new();
    let mut params = walk.plan.from(kernel.params_at);
    for _ in 0..kernel.params {
        let param = ParamEntry::read(&mut params);
        let operand = match param.is_tensor() {
            true => Operand::Tile(param.role, tile(walk, cursor, &param)?),
            false => Operand::Word(eval(cursor, &walk.values)?),
        };
        // There is room for as many as a kernel has.
        let _ = operands.push(operand);
    }
    let mut args: heapless::Vec<Arg<'_>, { task::WORDS }> = heapless::Vec::new();
    let _ = args.extend_from_slice(&head.map(Arg::Scalar));
    for operand in &operands {
        let _ = match operand {
            Operand::Tile(role, tile) => args.extend_from_slice(&[
                access(*role, tile),
                Arg::Scalar(tile.first),
                Arg::Scalar(tile.sides),
            ]),
            Operand::Word(word) => args.extend_from_slice(&[Arg::Scalar(*word)]),
        };
    }
    let task = TensorTask::new(kernel.func, kernel.kind, &args);
    let Some(pace) = &mut walk.pace else {
        let submitted = walk.stream.submit_tensors(&task);
        return submitted.map(drop).map_err(|fault| Stop::new(fault, at));
    };
    let choice = pace.choose(cursor, &walk.values)?;
    let after = choice.after.as_slice();
    let task = task.after(after).priority(choice.priority);
    let added = walk.stream.add_tensor_task(&task);
    let noted = added.and_then(|id| pace.added(walk.stream, id, choice));
    noted.map_err(|fault| Stop::new(fault, at))
}

/// The words in front of those of the parameters.
fn head<G>(
    walk: &Walk<'_, G>,
    (kernel, number): (&KernelEntry, u32),
    forms: u64,
) -> [u64; task::PARAMS] {
    let bindings = &walk.bindings;
    [
        bindings.code.offset(kernel.code.into()).0,
        u64::from(kernel.bytes) | u64::from(number) << 32,
        bindings.record.0,
        bindings.scratch.0,
        forms,
        bindings.descriptors.0,
    ]
}

/// What the task does with a tile.
const fn access(role: u32, tile: &Tile) -> Arg<'_> {
    let region = &tile.region;
    match role {
        _ if !tile.is_touched => Arg::NoDep(region),
        param::IN => Arg::In(region),
        param::OUT => Arg::Out(region),
        _ => Arg::InOut(region),
    }
}
