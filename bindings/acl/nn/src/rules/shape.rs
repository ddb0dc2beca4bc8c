//! Operators that move elements.

use pto_operators::{Operator, elements};

use super::elementwise::scalar_as;
use super::reduce::as_output;
use crate::call::OperatorCall;
use crate::element::{BOOL, ElementType, I64};
use crate::graph::{CallGraph, V};
use crate::plan::CompiledCall;
use crate::refusal::{Checked, Rejection};
use crate::value::Value;

fn signed(extent: usize) -> i64 {
    i64::try_from(extent).unwrap_or(i64::MAX)
}

/// An axis of a tensor of so many dimensions.
pub(crate) fn axis_of(call: &OperatorCall, at: usize, axis: i64, rank: usize) -> Checked<usize> {
    let limit = signed(rank);
    let from_front = if axis < 0 { axis.checked_add(limit) } else { Some(axis) };
    from_front.and_then(|axis| usize::try_from(axis).ok()).filter(|axis| *axis < rank).ok_or_else(
        || Rejection::invalid(call.name(at), format!("is {axis}, and there are {rank} dimensions")),
    )
}

/// (self, dimensions): in another order.
pub(crate) fn permute(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, dims, out) = (call.tensor(0)?, call.integers(1)?, call.out(0)?);
    let permutation =
        dims.iter().map(|axis| axis_of(call, 1, *axis, x.rank())).collect::<Checked<Vec<_>>>()?;
    let mut graph = CallGraph::new(call);
    let value = graph.tensor(x);
    let result = graph.one(Operator::Transpose { permutation: Some(permutation) }, &[value])?;
    graph.finish(&[(result, out)])
}

/// (self, axes): from the other end.
pub(crate) fn flip(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, axes, out) = (call.tensor(0)?, call.integers(1)?, call.out(0)?);
    let axes = axes
        .iter()
        .map(|axis| axis_of(call, 1, *axis, x.rank()).map(signed))
        .collect::<Checked<Vec<_>>>()?;
    let mut graph = CallGraph::new(call);
    let mut value = graph.tensor(x);
    if !axes.is_empty() {
        let count = axes.len();
        let operator = Operator::Slice {
            starts: vec![-1; count],
            ends: vec![i64::MIN; count],
            axes: Some(axes),
            steps: Some(vec![-1; count]),
        };
        value = graph.one(operator, &[value])?;
    }
    graph.finish(&[(value, out)])
}

/// (self, shifts, axes): what leaves at one end comes in at the other. Without axes the flattened tensor.
pub(crate) fn roll(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, shifts, out) = (call.tensor(0)?, call.integers(1)?, call.out(0)?);
    let axes = call.optional_integers(2).unwrap_or(&[]).to_vec();
    let mut graph = CallGraph::new(call);
    let mut value = graph.tensor(x);
    let axes = if axes.is_empty() {
        value = graph.one(Operator::Reshape { shape: vec![-1], allow_zero: false }, &[value])?;
        vec![0]
    } else {
        axes.iter().map(|axis| axis_of(call, 2, *axis, x.rank())).collect::<Checked<Vec<_>>>()?
    };
    if axes.len() != shifts.len() {
        return Err(Rejection::invalid(
            call.name(1),
            format!(
                "has {} numbers, and there are {} axes; give one for each",
                shifts.len(),
                axes.len()
            ),
        ));
    }
    for (axis, shift) in axes.into_iter().zip(shifts) {
        let extent = signed(graph.shape(value)[axis]);
        let shift = if extent == 0 { 0 } else { shift.rem_euclid(extent) };
        if shift == 0 {
            continue;
        }
        let part = |graph: &mut CallGraph<'_>, start: i64, end: i64| {
            let operator = Operator::Slice {
                starts: vec![start],
                ends: vec![end],
                axes: Some(vec![signed(axis)]),
                steps: None,
            };
            graph.one(operator, &[value])
        };
        let last = part(&mut graph, extent - shift, extent)?;
        let first = part(&mut graph, 0, extent - shift)?;
        value = graph.one(Operator::Concat { axis: signed(axis) }, &[last, first])?;
    }
    let value = as_output(&mut graph, value, out.shape())?;
    graph.finish(&[(value, out)])
}

/// (self, axis): as a matrix.
pub(crate) fn flatten(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, out) = (call.tensor(0)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let value = graph.tensor(x);
    let axis = call.integer(1);
    // The interface flattens a tensor without dimensions to one of one element.
    let result = if x.rank() == 0 {
        as_output(&mut graph, value, out.shape())?
    } else {
        graph.one(Operator::Flatten { axis }, &[value])?
    };
    let result = as_output(&mut graph, result, out.shape())?;
    graph.finish(&[(result, out)])
}

/// (self, repeats): side by side along each dimension, new ones in front.
pub(crate) fn repeat(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, repeats, out) = (call.tensor(0)?, call.integers(1)?.to_vec(), call.out(0)?);
    let missing = repeats.len().checked_sub(x.rank()).ok_or_else(|| {
        Rejection::invalid(
            call.name(1),
            format!(
                "has {} numbers, and the tensor has {} dimensions; give one for each",
                repeats.len(),
                x.rank()
            ),
        )
    })?;
    let mut graph = CallGraph::new(call);
    let value = graph.tensor(x);
    let shape = std::iter::repeat_n(1, missing)
        .chain(x.shape().iter().map(|extent| signed(*extent)))
        .collect();
    let value = graph.one(Operator::Reshape { shape, allow_zero: true }, &[value])?;
    let result = graph.one(Operator::Tile { repeats }, &[value])?;
    graph.finish(&[(result, out)])
}

/// (list, axis): one behind the other, or (`is_new`) along a new dimension.
pub(crate) fn join(call: &OperatorCall, is_new: bool) -> Checked<CompiledCall> {
    let (list, axis, out) = (call.list(0)?, call.integer(1), call.out(0)?);
    let mut graph = CallGraph::new(call);
    // A vector without elements joins with everything.
    let rank = list.iter().map(|tensor| tensor.rank()).max().unwrap_or(0);
    let mut parts: Vec<V> = Vec::new();
    for tensor in
        list.iter().filter(|tensor| is_new || tensor.rank() == rank || elements(tensor.shape()) > 0)
    {
        let value = graph.tensor(tensor);
        let value = graph.cast(value, out.element);
        parts.push(if is_new {
            let axis = if axis < 0 { axis + signed(tensor.rank()) + 1 } else { axis };
            let at =
                usize::try_from(axis).ok().filter(|at| *at <= tensor.rank()).ok_or_else(|| {
                    Rejection::invalid(
                        call.name(1),
                        format!("is {axis}, and there are {} dimensions", tensor.rank() + 1),
                    )
                })?;
            let mut shape: Vec<i64> = tensor.shape().iter().map(|extent| signed(*extent)).collect();
            shape.insert(at, 1);
            graph.one(Operator::Reshape { shape, allow_zero: true }, &[value])?
        } else {
            value
        });
    }
    let result = graph.one(Operator::Concat { axis }, &parts)?;
    graph.finish(&[(result, out)])
}

/// (self, diagonal): one triangle of the last two dimensions.
pub(crate) fn triangle(call: &OperatorCall, upper: bool) -> Checked<CompiledCall> {
    let (x, out) = (call.tensor(0)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let value = graph.tensor(x);
    let value = graph.numeric(value);
    let result = graph.one(Operator::Trilu { upper, k: call.integer(1) }, &[value])?;
    graph.finish(&[(result, out)])
}

/// (start, end, step): numbers at equal distances, as many as the output holds.
pub(crate) fn arange(call: &OperatorCall) -> Checked<CompiledCall> {
    let (start, end, step) = (call.scalar(0)?, call.scalar(1)?, call.scalar(2)?);
    let out = call.out(0)?;
    let [count] = *out.shape() else {
        return Err(Rejection::invalid(
            out.name,
            format!("has the extents {:?}; give a vector", out.shape()),
        ));
    };
    if step.parts()[0] == 0.0 {
        return Err(Rejection::invalid(call.name(2), "is 0; give another step"));
    }
    let most = (end.parts()[0] - start.parts()[0]) / step.parts()[0] + 1.0;
    if count as f64 > most.max(0.0) + 1.0 {
        return Err(Rejection::invalid(
            out.name,
            format!(
                "has {count} elements, and there are fewer from {:?} to {:?}",
                start.parts()[0],
                end.parts()[0]
            ),
        ));
    }
    let mut graph = CallGraph::new(call);
    let element = out.element;
    let is_whole = [&start, &step].iter().all(|scalar| scalar.element.category() < 2);
    let made = graph.own(
        &[],
        &[(if is_whole { I64 } else { crate::element::F64 }, vec![count])],
        Box::new(move |_| {
            if is_whole {
                let of = |scalar: &crate::objects::ScalarObject| {
                    scalar
                        .tensor()
                        .to_integers()
                        .and_then(|values| values.first().copied())
                        .unwrap_or(0)
                };
                let (start, step) = (of(&start), of(&step));
                let values: Vec<i64> = (0..count)
                    .map(|at| start.wrapping_add(step.wrapping_mul(signed(at))))
                    .collect();
                return Ok(vec![Value::of_integers(&[count], &values)]);
            }
            #[expect(clippy::cast_precision_loss, reason = "a number of elements")]
            let values: Vec<f64> =
                (0..count).map(|at| start.parts()[0] + at as f64 * step.parts()[0]).collect();
            Ok(vec![Value::Real(crate::value::doubles(&[count], &values))])
        }),
    );
    let result = graph.cast(made[0], element);
    graph.finish(&[(result, out)])
}

/// (self, value, wrap): the diagonal becomes the value.
pub(crate) fn fill_diagonal(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, fill, wrap, out) = (call.tensor(0)?, call.scalar(1)?, call.flag(2), call.out(0)?);
    let shape = x.shape().to_vec();
    let is_cube = shape.iter().all(|extent| *extent == shape[0]);
    if shape.len() < 2 || (shape.len() > 2 && !is_cube) {
        return Err(Rejection::invalid(
            call.name(0),
            format!(
                "has the extents {shape:?}; give a matrix, or more dimensions of the same extent"
            ),
        ));
    }
    let step =
        1 + (1..shape.len()).map(|axis| shape[axis..].iter().product::<usize>()).sum::<usize>();
    let all = elements(&shape);
    let last = if shape.len() == 2 && !wrap { (shape[1] * shape[1]).min(all) } else { all };
    let mask: Vec<f64> =
        (0..all).map(|at| f64::from(u8::from(at < last && at % step == 0))).collect();
    let mut graph = CallGraph::new(call);
    let value = graph.tensor(x);
    let mask = graph.constant(Value::of_doubles(BOOL, &shape, &mask));
    let element: ElementType = x.element;
    let fill = scalar_as(&mut graph, &fill, element);
    let result = graph.choose(mask, fill, value)?;
    graph.finish(&[(result, out)])
}
