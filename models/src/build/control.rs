//! Branches and loops: a branch whose condition is known takes the place of its node, and loops are unrolled.

use std::collections::HashMap;

use pto_operators::{Operator, Tensor, ValueId};

use super::builder::{Builder, MAX_TURNS, one};
use super::call::{Call, NodeValue, Step, Stop, stop};
use crate::proto::GraphProto;

/// Translates a branch in a scope of its own; what its outputs stand for.
fn inlined<'m>(
    b: &mut Builder<'m>,
    graph: &'m GraphProto,
    label: &str,
    inputs: Vec<(String, NodeValue)>,
) -> Step<Vec<NodeValue>> {
    if b.scopes.len() > 32 {
        return stop("branches are nested more than 32 times");
    }
    b.scopes.push(HashMap::new());
    let path = format!("{}/{label}/", b.current);
    let outer = std::mem::replace(&mut b.path, path);
    for (name, slot) in inputs {
        b.bind(&name, slot);
    }
    let done = b.body(graph);
    let outputs =
        graph.output.iter().map(|output| b.find(&output.name)).collect::<Option<Vec<_>>>();
    b.path = outer;
    b.scopes.pop();
    done?;
    let outputs = outputs
        .ok_or_else(|| Stop::Reason("an output of the branch is made by no node".to_owned()))?;
    if outputs.iter().any(|slot| matches!(slot, NodeValue::Failed)) {
        Err(Stop::Failed)
    } else {
        Ok(outputs)
    }
}

/// A condition that is known before a run.
fn condition(b: &Builder<'_>, value: ValueId, what: &str) -> Step<bool> {
    match b.ints(value, what)?[..] {
        [one] => Ok(one != 0),
        ref other => stop(format!("{what} has {} elements, and one is wanted", other.len())),
    }
}

pub(super) fn branch<'m>(b: &mut Builder<'m>, c: &Call<'m>) -> Step<Vec<NodeValue>> {
    let (yes, no) = (c.graph("then_branch")?, c.graph("else_branch")?);
    let is_true = condition(b, c.input(0)?, "input 0 (the condition)")?;
    let (graph, label) = if is_true { (yes, "then") } else { (no, "else") };
    inlined(b, graph, label, Vec::new())
}

pub(super) fn repeat<'m>(b: &mut Builder<'m>, c: &Call<'m>) -> Step<Vec<NodeValue>> {
    let body = c.graph("body")?;
    let most = match c.optional(0)? {
        Some(most) => b.int(most, "input 0 (the number of turns)")?,
        None => i64::MAX,
    };
    let mut go_on = match c.optional(1)? {
        Some(value) => condition(b, value, "input 1 (the condition)")?,
        None => true,
    };
    let mut state: Vec<NodeValue> =
        c.inputs.iter().skip(2).map(|slot| slot.clone().unwrap_or(NodeValue::Nothing)).collect();
    let scans = body.output.len().checked_sub(1 + state.len());
    let Some(scans) = scans.filter(|_| body.input.len() == 2 + state.len()) else {
        return stop("the body does not have the inputs and outputs that the node needs");
    };
    let mut rows: Vec<Vec<ValueId>> = vec![Vec::new(); scans];
    let mut turn = 0;
    while go_on && turn < most {
        if turn >= MAX_TURNS {
            return stop(format!("it has more than {MAX_TURNS} turns"));
        }
        let (number, always) = (
            b.constant(Tensor::scalar(turn)),
            b.constant(Tensor::scalar(pto_operators::Boolean::from(true))),
        );
        let given =
            [NodeValue::Value(number), NodeValue::Value(always)].into_iter().chain(state.clone());
        let inputs = body.input.iter().map(|input| input.name.clone()).zip(given).collect();
        let outputs = inlined(b, body, &format!("turn {turn}"), inputs)?;
        let mut outputs = outputs.into_iter();
        let Some(NodeValue::Value(next)) = outputs.next() else {
            return stop("the body gives no condition");
        };
        go_on = condition(b, next, "the condition that the body gives")?;
        state = outputs.by_ref().take(state.len()).collect();
        for (row, slot) in rows.iter_mut().zip(outputs) {
            let NodeValue::Value(value) = slot else {
                return stop("the body gives a sequence for each turn");
            };
            row.push(b.add(Operator::Unsqueeze { axes: vec![0] }, &[value])?);
        }
        turn += 1;
    }
    for row in rows {
        if row.is_empty() {
            return stop("a loop without turns gives what it collects no extents");
        }
        state.push(NodeValue::Value(b.concat(&row, 0)?));
    }
    Ok(state)
}

pub(super) fn scan<'m>(b: &mut Builder<'m>, c: &Call<'m>) -> Step<Vec<NodeValue>> {
    if c.version < 9 {
        return stop("version 8 has batches, and is not supported");
    }
    let body = c.graph("body")?;
    let count = c.count("num_scan_inputs", 0)?;
    let inputs = c.all()?;
    let (Some(states), Some(_)) = (inputs.len().checked_sub(count), count.checked_sub(1)) else {
        return stop(format!(
            "attribute num_scan_inputs is {count}, and {} inputs are given",
            inputs.len()
        ));
    };
    let Some(outputs) =
        body.output.len().checked_sub(states).filter(|_| body.input.len() == inputs.len())
    else {
        return stop("the body does not have the inputs and outputs that the node needs");
    };
    let list = |name: &'static str, count: usize| -> Step<Vec<i64>> {
        let given = c.ints(name)?.unwrap_or_else(|| vec![0; count]);
        if given.len() == count {
            Ok(given)
        } else {
            stop(format!("attribute {name} has {} numbers, and {count} are wanted", given.len()))
        }
    };
    let (in_axes, in_ways) =
        (list("scan_input_axes", count)?, list("scan_input_directions", count)?);
    let (out_axes, out_ways) =
        (list("scan_output_axes", outputs)?, list("scan_output_directions", outputs)?);
    let mut turns = None;
    for (value, axis) in inputs[states..].iter().zip(&in_axes) {
        let extent = b.shape(*value)[b.axis(*axis, b.rank(*value))?];
        if *turns.get_or_insert(extent) != extent {
            return stop("the inputs that are scanned have different extents");
        }
    }
    let turns = turns.unwrap_or(0);
    if turns as i64 > MAX_TURNS || turns == 0 {
        return stop(format!("it has {turns} turns, and 1 to {MAX_TURNS} are supported"));
    }
    let mut state: Vec<NodeValue> =
        inputs[..states].iter().copied().map(NodeValue::Value).collect();
    let mut rows: Vec<Vec<ValueId>> = vec![Vec::new(); outputs];
    for turn in 0..turns {
        let mut given = state.clone();
        for ((value, axis), way) in inputs[states..].iter().zip(&in_axes).zip(&in_ways) {
            let axis = b.axis(*axis, b.rank(*value))?;
            let at = if *way == 0 { turn } else { turns - 1 - turn };
            let part = b.part(*value, axis, at, at + 1)?;
            given.push(NodeValue::Value(
                b.add(Operator::Squeeze { axes: Some(vec![axis as i64]) }, &[part])?,
            ));
        }
        let named = body.input.iter().map(|input| input.name.clone()).zip(given).collect();
        let mut made = inlined(b, body, &format!("turn {turn}"), named)?.into_iter();
        state = made.by_ref().take(states).collect();
        for (row, slot) in rows.iter_mut().zip(made) {
            let NodeValue::Value(value) = slot else {
                return stop("the body gives a sequence for each turn");
            };
            row.push(value);
        }
    }
    for ((mut row, axis), way) in rows.into_iter().zip(&out_axes).zip(&out_ways) {
        if *way != 0 {
            row.reverse();
        }
        let Some(first) = row.first() else { continue };
        let axis = b.axis(*axis, b.rank(*first) + 1)?;
        let mut parts = Vec::new();
        for value in row {
            parts.push(b.add(Operator::Unsqueeze { axes: vec![axis as i64] }, &[value])?);
        }
        state.push(NodeValue::Value(b.concat(&parts, axis)?));
    }
    Ok(state)
}

/// Whether an optional value is there: known when the model is built.
pub(super) fn optional_has_element(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let is_there =
        matches!(c.inputs.first(), Some(Some(NodeValue::Value(_) | NodeValue::Sequence(_))));
    one(b.constant(Tensor::scalar(pto_operators::Boolean::from(is_there))))
}

pub(super) fn get_element(_: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    match c.inputs.first() {
        Some(Some(slot @ (NodeValue::Value(_) | NodeValue::Sequence(_)))) => Ok(vec![slot.clone()]),
        _ => stop("the optional value is not there"),
    }
}

pub(super) fn optional(_: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    c.ignore(&["type"]);
    Ok(vec![c.inputs.first().cloned().flatten().unwrap_or(NodeValue::Nothing)])
}

pub(super) fn map_sequence<'m>(b: &mut Builder<'m>, c: &Call<'m>) -> Step<Vec<NodeValue>> {
    let body = c.graph("body")?;
    let first = c.sequence(0)?;
    let mut made: Vec<Vec<ValueId>> = vec![Vec::new(); body.output.len()];
    for at in 0..first.len() {
        let element = |slot: &Option<NodeValue>| match slot {
            Some(NodeValue::Sequence(values)) => match values.get(at) {
                Some(value) => Ok(NodeValue::Value(*value)),
                None => stop("a sequence is shorter than the first one"),
            },
            Some(slot) => Ok(slot.clone()),
            None => Ok(NodeValue::Nothing),
        };
        let given = c.inputs.iter().map(element).collect::<Step<Vec<_>>>()?;
        let named = body.input.iter().map(|input| input.name.clone()).zip(given).collect();
        for (row, slot) in made.iter_mut().zip(inlined(b, body, &format!("element {at}"), named)?) {
            let NodeValue::Value(value) = slot else { return stop("the body gives no tensor") };
            row.push(value);
        }
    }
    Ok(made.into_iter().map(NodeValue::Sequence).collect())
}

pub(super) fn zeros_of_sequence(_: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    c.ignore(&["dtype"]);
    Ok(vec![NodeValue::Sequence(Vec::new())])
}

pub(super) fn sequence_of(_: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    Ok(vec![NodeValue::Sequence(c.all()?)])
}

/// A position in a sequence; negative ones count from its end.
fn position(b: &Builder<'_>, value: ValueId, length: usize, end: bool) -> Step<usize> {
    let at = b.int(value, "the position")?;
    let from_front = if at < 0 { at + length as i64 } else { at };
    let limit = if end { length + 1 } else { length };
    usize::try_from(from_front)
        .ok()
        .filter(|at| *at < limit)
        .ok_or_else(|| Stop::Reason(format!("position {at} is none of a sequence of {length}")))
}

pub(super) fn sequence_at(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let values = c.sequence(0)?;
    let at = position(b, c.input(1)?, values.len(), false)?;
    one(values[at])
}

pub(super) fn sequence_insert(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let mut values = c.sequence(0)?;
    let at = match c.optional(2)? {
        Some(at) => position(b, at, values.len(), true)?,
        None => values.len(),
    };
    values.insert(at, c.input(1)?);
    Ok(vec![NodeValue::Sequence(values)])
}

pub(super) fn sequence_erase(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let mut values = c.sequence(0)?;
    let last = values
        .len()
        .checked_sub(1)
        .ok_or_else(|| Stop::Reason("the sequence is empty".to_owned()))?;
    let at = match c.optional(1)? {
        Some(at) => position(b, at, values.len(), false)?,
        None => last,
    };
    values.remove(at);
    Ok(vec![NodeValue::Sequence(values)])
}

pub(super) fn sequence_length(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let length = c.sequence(0)?.len() as i64;
    one(b.constant(Tensor::scalar(length)))
}

pub(super) fn split_to_sequence(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let x = c.input(0)?;
    let axis = b.axis(c.int("axis", 0)?, b.rank(x))?;
    let extent = b.shape(x)[axis];
    let mut keep = c.flag("keepdims", true)?;
    let sizes: Vec<usize> = match c.optional(1)? {
        None if extent > 65_536 => {
            return stop(format!("a sequence of {extent} elements is too long"));
        }
        None => vec![1; extent],
        Some(split) => {
            keep = true;
            let is_scalar = b.rank(split) == 0;
            let sizes = b.ints(split, "input 1 (split)")?;
            let sizes = sizes.iter().map(|size| {
                usize::try_from(*size).or_else(|_| stop(format!("a part has the extent {size}")))
            });
            let sizes = sizes.collect::<Step<Vec<usize>>>()?;
            match sizes[..] {
                [0] if is_scalar => return stop("parts have the extent 0"),
                [size] if is_scalar && extent / size > 65_536 => {
                    return stop("the sequence is too long");
                }
                [size] if is_scalar => (0..extent.div_ceil(size))
                    .map(|part| (extent - part * size).min(size))
                    .collect(),
                _ => sizes,
            }
        }
    };
    let parts = b.add_all(Operator::Split { axis: axis as i64, sizes }, &[Some(x)])?;
    if keep {
        return Ok(vec![NodeValue::Sequence(parts)]);
    }
    let squeezed = parts
        .into_iter()
        .map(|part| b.add(Operator::Squeeze { axes: Some(vec![axis as i64]) }, &[part]));
    Ok(vec![NodeValue::Sequence(squeezed.collect::<Step<_>>()?)])
}

pub(super) fn concat_from_sequence(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let mut values = c.sequence(0)?;
    let axis = c.required_int("axis")?;
    if c.flag("new_axis", false)? {
        for value in &mut values {
            *value = b.add(Operator::Unsqueeze { axes: vec![axis] }, &[*value])?;
        }
    }
    let Some(first) = values.first() else { return stop("the sequence is empty") };
    let axis = b.axis(axis, b.rank(*first))?;
    one(b.concat(&values, axis)?)
}
