//! Reading the kernels of a chain.

use pto_abi::chain::Turns;
use pto_abi::limits::MAX_FUNC_ID;
use serde_json::Value;

use super::args::{Tensors, Wrong, argument, defect as defect_of_view};
use super::{ByteLine, LinkLine, TaskLine, VaryLine};
use crate::chains::{defect, groups};
use crate::program::{Argument, ChainLink, TensorByte, Vary, View, Way};
use crate::submit::tensor_view;

/// The kernels of a task that is a chain; none: it is not.
pub(super) fn read(
    tensors: &(impl Tensors + TensorBytes),
    line: &TaskLine<Value, Value>,
) -> Result<Vec<ChainLink>, Wrong> {
    if line.chain.is_empty() {
        return Ok(Vec::new());
    }
    if !line.args.is_empty() {
        return Err("args: each kernel of a \"chain\" has its own; leave them out".into());
    }
    if !line.mix.is_empty()
        || line.blocks.is_some()
        || line.start.is_some()
        || line.priority.is_some()
    {
        return Err(
            "chain: a chain runs on one core as one block; leave mix, blocks, start and priority out".into(),
        );
    }
    let links = line.chain.iter().enumerate();
    let links: Vec<_> = links
        .map(|(at, line)| link(tensors, line).map_err(|what| format!("chain[{at}].{what}")))
        .collect::<Result<_, _>>()?;
    let unequal = |group: &&[ChainLink]| group.iter().any(|link| link.times != group[0].times);
    if let Some(group) = groups(&links).find(unequal) {
        let times: Vec<_> = group.iter().map(|link| link.times.to_string()).collect();
        let times = times.join(", ");
        return Err(format!(
            "chain.times: links that take turns run {times} times; give them one number"
        ));
    }
    Ok(links)
}

/// How large tensors are.
pub(super) trait TensorBytes {
    /// Bytes of the tensor with this index.
    fn bytes(&self, index: usize) -> u64;
}

fn link(
    tensors: &(impl Tensors + TensorBytes),
    line: &LinkLine<Value>,
) -> Result<ChainLink, Wrong> {
    if usize::from(line.func) >= MAX_FUNC_ID {
        return Err(format!("func: {} is not below {MAX_FUNC_ID}", line.func));
    }
    let list = |field: &str, args: &[Value]| {
        let args = args.iter().enumerate();
        let args = args.map(|(at, arg)| argument(tensors, &format!("{field}[{at}]"), arg));
        args.collect::<Result<Vec<_>, _>>()
    };
    let uses = line.uses.iter().enumerate();
    let uses = uses.map(|(turn, uses)| list(&format!("uses[{turn}]"), uses));
    let link = ChainLink {
        func: line.func,
        args: list("args", &line.args)?,
        times: line.times,
        with_next: line.with_next,
        vary: line.vary.iter().map(|line| vary(tensors, line)).collect::<Result<_, _>>()?,
        uses: uses.collect::<Result<_, _>>()?,
    };
    if link.args.iter().any(|arg| matches!(arg, Argument::BoundScalar(_))) {
        return Err("args: a chain stands in no record, and has no bound words".into());
    }
    match defect(&link) {
        Some(what) => Err(what),
        None => check_views(tensors, &link).map(|()| link),
    }
}

fn vary(tensors: &impl Tensors, line: &VaryLine) -> Result<Vary, Wrong> {
    let way = match (line.by, &line.of, &line.at) {
        (Some(step), None, None) => Way::By(step),
        (None, Some(words), None) => Way::Of(words.clone()),
        (None, None, Some(bytes)) => {
            Way::At(bytes.iter().map(|line| byte(tensors, line)).collect::<Result<_, _>>()?)
        }
        _ => {
            return Err(
                "vary: an argument grows \"by\" a step, has words \"of\" each time, or is \"at\" a byte of a tensor each time"
                    .into(),
            );
        }
    };
    let turns = match (line.every, line.within) {
        (None, None) => Turns::EACH,
        (Some(turns), None) => Turns::every(turns),
        (None, Some(turns)) => Turns::within(turns),
        (Some(_), Some(_)) => {
            return Err(
                "vary: an argument goes on \"every\" so many times, or begins anew \"within\" so many; for two nested loops, give an entry for each"
                    .into(),
            );
        }
    };
    Ok(Vary { arg: line.arg, turns, way })
}

/// A byte of a tensor that is known; that the tensor has it is looked at with the views.
fn byte(tensors: &impl Tensors, line: &ByteLine) -> Result<TensorByte, Wrong> {
    let known = tensors.tensor(line.tensor).map(|(index, _)| index);
    let tensor = known.ok_or_else(|| {
        let id = line.tensor;
        format!("vary.at: no tensor {id} is known here; declare it above, by a line with \"tensor\" or \"alloc\"")
    })?;
    Ok(TensorByte { tensor, byte: line.byte })
}

/// Every view of every time is a part of its tensor.
fn check_views(tensors: &impl TensorBytes, link: &ChainLink) -> Result<(), Wrong> {
    for turn in 0..link.times {
        for (at, arg) in link.args_at(turn).iter().enumerate() {
            let Some((view, _)) = arg.view() else { continue };
            let defect = |view: &View| {
                tensor_view(view, pto_abi::GmAddr::NULL, tensors.bytes(view.tensor)).defect()
            };
            if let Some(found) = defect(view) {
                let what = defect_of_view(found);
                return Err(format!("vary: argument {at} at time {turn}: {what}"));
            }
        }
    }
    Ok(())
}
