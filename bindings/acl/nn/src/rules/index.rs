//! Elements chosen, or replaced, by indices and masks in memory. A wrong index is reported when the stream is synchronised.

use pto_operators::{DType, Operator, ScatterReduction, broadcast, elements};

use super::reduce::as_output;
use super::shape::axis_of;
use crate::call::{OperatorCall, TensorRef};
use crate::element::{BOOL, ElementType, I64};
use crate::graph::{CallGraph, V};
use crate::plan::CompiledCall;
use crate::refusal::{Checked, Rejection};
use crate::value::Value;

fn signed(extent: usize) -> i64 {
    i64::try_from(extent).unwrap_or(i64::MAX)
}

/// A tensor of indices, as `i64`.
fn indices(graph: &mut CallGraph<'_>, tensor: &TensorRef) -> Checked<V> {
    if !matches!(tensor.element, ElementType::Real(dtype) if dtype.is_integer()) {
        return Err(Rejection::invalid(
            tensor.name,
            format!("is {}; indices are integers", tensor.element.name()),
        ));
    }
    graph.can_fail();
    let value = graph.tensor(tensor);
    Ok(match tensor.element {
        ElementType::Real(DType::I32) => value,
        _ => graph.cast(value, I64),
    })
}

fn reshaped(graph: &mut CallGraph<'_>, value: V, shape: &[usize]) -> Checked<V> {
    let shape = shape.iter().map(|extent| signed(*extent)).collect();
    graph.one(Operator::Reshape { shape, allow_zero: true }, &[value])
}

fn flat(graph: &mut CallGraph<'_>, value: V) -> Checked<V> {
    let all = elements(graph.shape(value));
    reshaped(graph, value, &[all])
}

/// (self, axis, index): elements along an axis.
pub(crate) fn gather(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, index, out) = (call.tensor(0)?, call.tensor(2)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let value = graph.tensor(x);
    let index = indices(&mut graph, index)?;
    let result = graph.one(Operator::GatherElements { axis: call.integer(1) }, &[value, index])?;
    graph.finish(&[(result, out)])
}

/// (self, axis, index): slices of an axis.
pub(crate) fn select(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, index, out) = (call.tensor(0)?, call.tensor(2)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let value = graph.tensor(x);
    let index = indices(&mut graph, index)?;
    let index = flat(&mut graph, index)?;
    let result = graph.one(Operator::Gather { axis: call.integer(1) }, &[value, index])?;
    graph.finish(&[(result, out)])
}

/// (self, index): elements of the flattened tensor.
pub(crate) fn take(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, index, out) = (call.tensor(0)?, call.tensor(1)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let value = graph.tensor(x);
    let value = flat(&mut graph, value)?;
    let index = indices(&mut graph, index)?;
    let result = graph.one(Operator::Gather { axis: 0 }, &[value, index])?;
    let result = as_output(&mut graph, result, out.shape())?;
    graph.finish(&[(result, out)])
}

/// (self, indices, whether negative ones are allowed): slices by tuples of indices.
pub(crate) fn gather_tuples(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, index, out) = (call.tensor(0)?, call.tensor(1)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let value = graph.tensor(x);
    let index = indices(&mut graph, index)?;
    let result = graph.one(Operator::GatherNd { batch_dims: 0 }, &[value, index])?;
    graph.finish(&[(result, out)])
}

const fn combined(accumulate: bool) -> ScatterReduction {
    if accumulate { ScatterReduction::Add } else { ScatterReduction::None }
}

/// (self, axis, index, source): elements added along an axis.
pub(crate) fn scatter_add(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, index, source, out) = (call.tensor(0)?, call.tensor(2)?, call.tensor(3)?, call.out(0)?);
    scatter(call, (x, index, source, out), (call.integer(1), ScatterReduction::Add))
}

/// (self, index, source, axis): elements replaced along an axis.
pub(crate) fn scatter_update(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, index, source, out) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?, call.out(0)?);
    scatter(call, (x, index, source, out), (call.integer(3), ScatterReduction::None))
}

/// (self, axis, index, source): slices of an axis replaced.
pub(crate) fn index_copy(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, index, source, out) = (call.tensor(0)?, call.tensor(2)?, call.tensor(3)?, call.out(0)?);
    scatter(call, (x, index, source, out), (call.integer(1), ScatterReduction::None))
}

/// Updates at indices of an axis: an index for each element, or a vector with one for each slice.
fn scatter(
    call: &OperatorCall,
    (x, index, source, out): (&TensorRef, &TensorRef, &TensorRef, &TensorRef),
    (axis, reduction): (i64, ScatterReduction),
) -> Checked<CompiledCall> {
    let mut graph = CallGraph::new(call);
    let mut value = graph.tensor(x);
    let mut updates = graph.tensor(source);
    updates = graph.cast(updates, x.element);
    let mut at = indices(&mut graph, index)?;
    if x.rank() == 0 {
        value = flat(&mut graph, value)?;
        updates = flat(&mut graph, updates)?;
        at = flat(&mut graph, at)?;
    }
    let rank = graph.shape(value).len();
    let axis = axis_of(call, 1, axis, rank)?;
    if graph.shape(at) != graph.shape(updates) {
        // One index for each slice.
        let count = elements(graph.shape(at));
        let shape = graph.shape(updates).to_vec();
        if shape.get(axis) != Some(&count) {
            return Err(Rejection::invalid(
                index.name,
                format!(
                    "has the extents {:?}, and the updates {shape:?}; give an index for each element, or for each slice",
                    index.shape()
                ),
            ));
        }
        let mut column = vec![1; shape.len()];
        column[axis] = count;
        at = reshaped(&mut graph, at, &column)?;
        let shape = shape.iter().map(|extent| signed(*extent)).collect();
        at = graph.one(Operator::Expand { shape }, &[at])?;
    }
    let result = graph
        .one(Operator::ScatterElements { axis: signed(axis), reduction }, &[value, at, updates])?;
    let result = as_output(&mut graph, result, out.shape())?;
    graph.finish(&[(result, out)])
}

/// (self, index, source, accumulate): elements of the flattened tensor.
pub(crate) fn put(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, index, source, out) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let value = graph.tensor(x);
    let value = flat(&mut graph, value)?;
    let updates = graph.tensor(source);
    let updates = graph.cast(updates, x.element);
    let updates = flat(&mut graph, updates)?;
    let at = indices(&mut graph, index)?;
    let at = flat(&mut graph, at)?;
    let operator = Operator::ScatterElements { axis: 0, reduction: combined(call.flag(3)) };
    let result = graph.one(operator, &[value, at, updates])?;
    let result = as_output(&mut graph, result, out.shape())?;
    graph.finish(&[(result, out)])
}

/// (self, list of indices, values, accumulate, unsafe): slices by indices of the first dimensions.
pub(crate) fn index_put(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, list, source, out) = (call.tensor(0)?, call.list(1)?, call.tensor(2)?, call.out(0)?);
    if list.len() > x.rank() {
        return Err(Rejection::invalid(
            call.name(1),
            format!("has {} tensors, and self {} dimensions", list.len(), x.rank()),
        ));
    }
    let mut graph = CallGraph::new(call);
    let value = graph.tensor(x);
    let mut shape = Vec::new();
    for index in list {
        shape = broadcast(&shape, index.shape()).ok_or_else(|| {
            Rejection::invalid(
                call.name(1),
                format!(
                    "has the extents {:?}, which do not broadcast with {shape:?}",
                    index.shape()
                ),
            )
        })?;
    }
    let wide: Vec<i64> = shape.iter().map(|extent| signed(*extent)).collect();
    let mut column = shape.clone();
    column.push(1);
    let mut parts = Vec::new();
    for index in list {
        let at = indices(&mut graph, index)?;
        let at = graph.cast(at, I64);
        let at = graph.one(Operator::Expand { shape: wide.clone() }, &[at])?;
        parts.push(reshaped(&mut graph, at, &column)?);
    }
    let tuples = graph.one(Operator::Concat { axis: signed(shape.len()) }, &parts)?;
    let updates = graph.tensor(source);
    let updates = graph.cast(updates, x.element);
    let slices: Vec<i64> =
        shape.iter().chain(&x.shape()[list.len()..]).map(|extent| signed(*extent)).collect();
    let updates = graph.one(Operator::Expand { shape: slices }, &[updates])?;
    let operator = Operator::ScatterNd { reduction: combined(call.flag(3)) };
    let result = graph.one(operator, &[value, tuples, updates])?;
    graph.finish(&[(result, out)])
}

/// The elements of a value that a mask of the same extents chooses, one behind the other.
fn chosen(value: &Value, mask: &[i64]) -> Result<(Vec<[f64; 2]>, Vec<i64>), String> {
    let is_on = |at: &usize| mask[*at] != 0;
    let places: Vec<usize> = (0..mask.len()).filter(is_on).collect();
    if value.element().category() < 2 {
        let all = value.integers();
        return Ok((Vec::new(), places.into_iter().map(|at| all[at]).collect()));
    }
    let all = value.pairs();
    Ok((places.into_iter().map(|at| all[at]).collect(), Vec::new()))
}

fn made(element: ElementType, shape: &[usize], pairs: &[[f64; 2]], integers: &[i64]) -> Value {
    match element.category() {
        0 | 1 => Value::of_integers(shape, integers).cast(element),
        2 => {
            Value::of_doubles(element, shape, &pairs.iter().map(|pair| pair[0]).collect::<Vec<_>>())
        }
        _ => Value::of_pairs(shape, pairs, element == ElementType::Complex64),
    }
}

/// Two values in the extents to which both are broadcast.
fn both(graph: &mut CallGraph<'_>, call: &OperatorCall, [a, b]: [V; 2]) -> Checked<[V; 2]> {
    let shape = broadcast(graph.shape(a), graph.shape(b))
        .ok_or_else(|| Rejection::invalid(call.name(1), "does not broadcast with self"))?;
    let shape: Vec<i64> = shape.iter().map(|extent| signed(*extent)).collect();
    let mut wide = |value: V| graph.one(Operator::Expand { shape: shape.clone() }, &[value]);
    Ok([wide(a)?, wide(b)?])
}

/// (self, mask): the elements where the mask is true. The output has as many, or the launch fails.
pub(crate) fn masked_select(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, mask, out) = (call.tensor(0)?, call.tensor(1)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    graph.can_fail();
    let value = graph.tensor(x);
    let mask = graph.tensor(mask);
    let mask = graph.cast(mask, BOOL);
    let operands = both(&mut graph, call, [value, mask])?;
    let (element, shape) = (x.element, out.shape().to_vec());
    let results = graph.own(&operands, &[(element, shape.clone())], Box::new(move |values| {
        let (pairs, integers) = chosen(values[0], &values[1].integers())?;
        let count = pairs.len().max(integers.len());
        let room = elements(&shape);
        if count != room {
            return Err(format!("the mask has {count} true elements, and the output {room}; give an output of as many"));
        }
        Ok(vec![made(element, &shape, &pairs, &integers)])
    }));
    graph.finish(&[(results[0], out)])
}

/// (self, mask, source): the elements where the mask is true become those of the source, one after the other.
pub(crate) fn masked_scatter(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, mask, source, out) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    graph.can_fail();
    let value = graph.tensor(x);
    let mask = graph.tensor(mask);
    let mask = graph.cast(mask, BOOL);
    let mask = {
        let shape = x.shape().iter().map(|extent| signed(*extent)).collect();
        graph.one(Operator::Expand { shape }, &[mask])?
    };
    let source = graph.tensor(source);
    let source = graph.cast(source, x.element);
    let (element, shape) = (x.element, x.shape().to_vec());
    let results = graph.own(
        &[value, mask, source],
        &[(element, shape.clone())],
        Box::new(move |values| {
            let mask = values[1].integers();
            let wanted = mask.iter().filter(|on| **on != 0).count();
            if values[2].elements() < wanted {
                return Err(format!(
                    "the mask has {wanted} true elements, and the source {}; give as many",
                    values[2].elements()
                ));
            }
            let is_whole = element.category() < 2;
            let (mut pairs, mut integers) = (Vec::new(), Vec::new());
            if is_whole {
                integers = values[0].integers();
                let mut from = values[2].integers().into_iter();
                let places = integers.iter_mut().zip(&mask).filter(|(_, on)| **on != 0);
                places.for_each(|(place, _)| *place = from.next().unwrap_or(0));
            } else {
                pairs = values[0].pairs();
                let mut from = values[2].pairs().into_iter();
                let places = pairs.iter_mut().zip(&mask).filter(|(_, on)| **on != 0);
                places.for_each(|(place, _)| *place = from.next().unwrap_or([0.0, 0.0]));
            }
            Ok(vec![made(element, &shape, &pairs, &integers)])
        }),
    );
    graph.finish(&[(results[0], out)])
}

/// Where elements are not 0: a row of indices for each. The output has as many rows, or the launch fails.
pub(crate) fn non_zero(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, out) = (call.tensor(0)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    graph.can_fail();
    let value = graph.tensor(x);
    let value = graph.cast(value, BOOL);
    let (from, shape) = (x.shape().to_vec(), out.shape().to_vec());
    let results = graph.own(&[value], &[(I64, shape.clone())], Box::new(move |values| {
        let mut found = Vec::new();
        for (at, on) in values[0].integers().iter().enumerate() {
            if *on == 0 {
                continue;
            }
            let mut rest = at;
            let mut row = vec![0; from.len()];
            for (to, extent) in row.iter_mut().zip(&from).rev() {
                *to = signed(rest % extent);
                rest /= extent;
            }
            found.extend(row);
        }
        if found.len() != elements(&shape) {
            return Err(format!(
                "there are {} indices of elements that are not 0, and the output has room for {}; give an output of as many",
                found.len(),
                elements(&shape)
            ));
        }
        Ok(vec![Value::of_integers(&shape, &found)])
    }));
    graph.finish(&[(results[0], out)])
}
