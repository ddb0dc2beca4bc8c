//! Reductions over axes, scans, variances, the median.

use pto_operators::{Binary, DType, Operator, Reduction, Unary};

use crate::call::OperatorCall;
use crate::element::{BOOL, ElementType, F32, F64, I64};
use crate::graph::{CallGraph, V};
use crate::plan::CompiledCall;
use crate::refusal::{Checked, Rejection};
use crate::value::Value;

/// A tensor with one dimension at least.
pub(crate) fn with_dimension(graph: &mut CallGraph<'_>, value: V) -> Checked<V> {
    if graph.shape(value).is_empty() {
        return graph.one(Operator::Reshape { shape: vec![1], allow_zero: true }, &[value]);
    }
    Ok(value)
}

/// A value in the output's extents, where it has as many elements.
pub(crate) fn as_output(graph: &mut CallGraph<'_>, value: V, shape: &[usize]) -> Checked<V> {
    let own = graph.shape(value);
    if own == shape || pto_operators::elements(own) != pto_operators::elements(shape) {
        return Ok(value);
    }
    let shape = shape.iter().map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX)).collect();
    graph.one(Operator::Reshape { shape, allow_zero: true }, &[value])
}

/// A reduction of a value over axes; none: all.
fn reduced(
    graph: &mut CallGraph<'_>,
    reduction: Reduction,
    value: V,
    axes: Option<&[i64]>,
    keep_dims: bool,
) -> Checked<V> {
    let is_scalar = graph.shape(value).is_empty();
    let value = with_dimension(graph, value)?;
    let axes = axes.filter(|axes| !axes.is_empty()).map(<[i64]>::to_vec);
    let result = graph.one(Operator::Reduce { reduction, axes, keep_dims }, &[value])?;
    if is_scalar && keep_dims {
        return graph.one(Operator::Reshape { shape: Vec::new(), allow_zero: true }, &[result]);
    }
    Ok(result)
}

/// What sums and products of a type are made in: `bool` becomes `i64`, and the output's type is taken where it is the same with more bits, so that nothing is
/// lost before the end.
fn summed(element: ElementType, out: ElementType) -> ElementType {
    let element = if element == BOOL { I64 } else { element };
    let is_wider = out.category() == element.category() && out.bytes() > element.bytes();
    if is_wider { out } else { element }
}

/// (self, axes, keep dimensions, type): a sum, or a mean.
pub(crate) fn sum(
    call: &OperatorCall,
    reduction: Reduction,
    without_nan: bool,
) -> Checked<CompiledCall> {
    let (x, out) = (call.tensor(0)?, call.out(0)?);
    let element = call.element(3)?;
    let mut graph = CallGraph::new(call);
    let mut value = graph.tensor(x);
    if without_nan && x.element.is_float() {
        let is_nan = graph.unary(Unary::IsNaN, value)?;
        let zero = graph.number(0.0, x.element);
        value = graph.choose(is_nan, zero, value)?;
    }
    // A mean of integers is one of floats.
    let wanted = match reduction {
        Reduction::Mean if element.category() < 2 => F64,
        _ => {
            let least =
                if element.category() >= x.element.category() { element } else { x.element };
            summed(least, out.element)
        }
    };
    let value = graph.cast(value, wanted);
    let result = reduced(&mut graph, reduction, value, call.optional_integers(1), call.flag(2))?;
    graph.finish(&[(result, out)])
}

/// (self, axes, keep dimensions): the largest or the smallest element.
pub(crate) fn extreme(call: &OperatorCall, reduction: Reduction) -> Checked<CompiledCall> {
    let (x, out) = (call.tensor(0)?, call.out(0)?);
    check_any(call, x.shape())?;
    let mut graph = CallGraph::new(call);
    let value = graph.tensor(x);
    let result = reduced(&mut graph, reduction, value, call.optional_integers(1), call.flag(2))?;
    graph.finish(&[(result, out)])
}

/// Refuses a tensor without elements.
fn check_any(call: &OperatorCall, shape: &[usize]) -> Checked {
    if pto_operators::elements(shape) == 0 {
        return Err(Rejection::invalid(
            call.name(0),
            "has no elements, and there is no largest or smallest of nothing",
        ));
    }
    Ok(())
}

/// (self, axis, keep dimensions, type): the product.
pub(crate) fn product(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, out) = (call.tensor(0)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let value = graph.tensor(x);
    let value = graph.cast(value, summed(call.element(3)?, out.element));
    let result =
        reduced(&mut graph, Reduction::Prod, value, Some(&[call.integer(1)]), call.flag(2))?;
    graph.finish(&[(result, out)])
}

/// (self, axes, keep dimensions): whether all, or any, are true.
pub(crate) fn logical(call: &OperatorCall, reduction: Reduction) -> Checked<CompiledCall> {
    let (x, out) = (call.tensor(0)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let value = graph.tensor(x);
    let value = graph.cast(value, BOOL);
    let result = reduced(&mut graph, reduction, value, call.optional_integers(1), call.flag(2))?;
    graph.finish(&[(result, out)])
}

/// (self, axis, keep dimensions): where the largest or smallest element is.
pub(crate) fn position(call: &OperatorCall, largest: bool) -> Checked<CompiledCall> {
    let (x, out) = (call.tensor(0)?, call.out(0)?);
    check_any(call, x.shape())?;
    let mut graph = CallGraph::new(call);
    let value = graph.tensor(x);
    let value = graph.numeric(value);
    let is_scalar = x.rank() == 0;
    let value = with_dimension(&mut graph, value)?;
    let keep_dims = call.flag(2) && !is_scalar;
    let operator =
        Operator::ArgReduce { largest, axis: call.integer(1), keep_dims, select_last: false };
    let result = graph.one(operator, &[value])?;
    graph.finish(&[(result, out)])
}

/// (self, axes, correction or whether it is 1, keep dimensions): the variance, or its root.
pub(crate) fn variance(call: &OperatorCall, is_root: bool) -> Checked<CompiledCall> {
    let (x, out) = (call.tensor(0)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let value = graph.tensor(x);
    if x.element.is_complex() {
        return Err(Rejection::invalid(
            call.name(0),
            "is complex, and the operator is for real numbers",
        ));
    }
    let value = graph.cast(value, F64);
    let axes = call.optional_integers(1);
    let mean = reduced(&mut graph, Reduction::Mean, value, axes, true)?;
    let distance = graph.binary(Binary::Sub, value, mean)?;
    let squares = reduced(&mut graph, Reduction::SumSquare, distance, axes, call.flag(3))?;
    let all = pto_operators::elements(x.shape());
    let groups = pto_operators::elements(graph.shape(squares)).max(1);
    #[expect(clippy::cast_precision_loss, reason = "a number of elements")]
    let divisor =
        (all / groups) as f64 - f64::from(i32::try_from(call.integer(2)).unwrap_or(i32::MAX));
    let divisor = graph.number(divisor.max(0.0), F64);
    let mut result = graph.binary(Binary::Div, squares, divisor)?;
    if is_root {
        result = graph.unary(Unary::Sqrt, result)?;
    }
    graph.finish(&[(result, out)])
}

/// The median; of an even number of elements the lower one of the middle. NaN if one is NaN.
pub(crate) fn median(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, out) = (call.tensor(0)?, call.out(0)?);
    check_any(call, x.shape())?;
    if x.element.is_complex() {
        return Err(Rejection::invalid(
            call.name(0),
            "is complex, and complex numbers have no order",
        ));
    }
    let mut graph = CallGraph::new(call);
    let value = graph.tensor(x);
    let element = x.element;
    let made = graph.own(
        &[value],
        &[(element, Vec::new())],
        Box::new(move |values| {
            let result = if element.is_float() {
                let mut found = values[0].doubles();
                let middle = (found.len() - 1) / 2;
                if found.iter().any(|x| x.is_nan()) {
                    f64::NAN
                } else {
                    found.sort_unstable_by(f64::total_cmp);
                    found[middle]
                }
            } else {
                let mut found = values[0].integers();
                found.sort_unstable();
                let middle = found[(found.len() - 1) / 2];
                return Ok(vec![Value::of_integers(&[], &[middle]).cast(element)]);
            };
            Ok(vec![Value::of_doubles(element, &[], &[result])])
        }),
    );
    let result = as_output(&mut graph, made[0], out.shape())?;
    graph.finish(&[(result, out)])
}

/// The smallest and the largest element: of all, or (axis, keep dimensions) along an axis.
pub(crate) fn extremes(call: &OperatorCall, is_axis: bool) -> Checked<CompiledCall> {
    let (x, least, largest) = (call.tensor(0)?, call.out(0)?, call.out(1)?);
    check_any(call, x.shape())?;
    let mut graph = CallGraph::new(call);
    let value = graph.tensor(x);
    let axis = [if is_axis { call.integer(1) } else { 0 }];
    let (axes, keep_dims) = if is_axis { (Some(&axis[..]), call.flag(2)) } else { (None, false) };
    let min = reduced(&mut graph, Reduction::Min, value, axes, keep_dims)?;
    let max = reduced(&mut graph, Reduction::Max, value, axes, keep_dims)?;
    graph.finish(&[(min, least), (max, largest)])
}

/// (self, axes, keep dimensions, whether no axes are none): the largest element.
pub(crate) fn largest(call: &OperatorCall) -> Checked<CompiledCall> {
    let axes = call.optional_integers(1).unwrap_or(&[]);
    if axes.is_empty() && call.flag(3) {
        let (x, out) = (call.tensor(0)?, call.out(0)?);
        let mut graph = CallGraph::new(call);
        let value = graph.tensor(x);
        return graph.finish(&[(value, out)]);
    }
    extreme(call, Reduction::Max)
}

/// (self, axis, type): sums or products so far.
pub(crate) fn scan(call: &OperatorCall, is_product: bool) -> Checked<CompiledCall> {
    let (x, out) = (call.tensor(0)?, call.out(0)?);
    #[expect(clippy::cast_possible_truncation, reason = "a small whole number")]
    let axis = if is_product { call.scalar(1)?.parts()[0] as i64 } else { call.integer(1) };
    let element = summed(call.element(2)?, out.element);
    let mut graph = CallGraph::new(call);
    let value = graph.tensor(x);
    let value = graph.cast(value, element);
    let value = with_dimension(&mut graph, value)?;
    let operator = if is_product {
        Operator::CumProd { axis, exclusive: false, reverse: false }
    } else {
        Operator::CumSum { axis, exclusive: false, reverse: false }
    };
    let result = graph.one(operator, &[value])?;
    let result = as_output(&mut graph, result, out.shape())?;
    graph.finish(&[(result, out)])
}

/// The sum of the diagonal of a matrix.
pub(crate) fn trace(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, out) = (call.tensor(0)?, call.out(0)?);
    let [rows, columns] = *x.shape() else {
        return Err(Rejection::invalid(
            call.name(0),
            format!("has the extents {:?}; give a matrix", x.shape()),
        ));
    };
    let mut graph = CallGraph::new(call);
    let value = graph.tensor(x);
    let element = match x.element {
        ElementType::Real(dtype) if !dtype.is_float() => I64,
        ElementType::Real(DType::F16 | DType::BF16) => F32,
        other => other,
    };
    let value = graph.cast(value, element);
    let diagonal: Vec<f64> =
        (0..rows * columns).map(|at| f64::from(u8::from(at / columns == at % columns))).collect();
    let mask = graph.constant(Value::of_doubles(BOOL, &[rows, columns], &diagonal));
    let zero = graph.number(0.0, F64);
    let zero = graph.cast(zero, element);
    let kept = graph.choose(mask, value, zero)?;
    let result = reduced(&mut graph, Reduction::Sum, kept, None, false)?;
    let result = as_output(&mut graph, result, out.shape())?;
    graph.finish(&[(result, out)])
}
