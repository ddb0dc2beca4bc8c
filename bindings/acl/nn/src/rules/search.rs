//! Sorts, searches, counts, and values without repetitions.

use std::cmp::Ordering;

use pto_operators::{Operator, elements};

use super::reduce::{as_output, with_dimension};
use crate::call::{OperatorCall, TensorRef};
use crate::element::{ElementType, F64, I64};
use crate::graph::{CallGraph, V};
use crate::plan::CompiledCall;
use crate::refusal::{Checked, Rejection};
use crate::value::Value;

/// (self, stable, axis, descending) or (self, axis, descending): in order, and where each element was.
pub(crate) fn sort(call: &OperatorCall, gives_values: bool) -> Checked<CompiledCall> {
    let x = call.tensor(0)?;
    let (axis, descending) = if gives_values { (2, 3) } else { (1, 2) };
    let mut graph = CallGraph::new(call);
    let value = graph.tensor(x);
    let value = graph.numeric(value);
    let value = with_dimension(&mut graph, value)?;
    let operator = Operator::Sort { axis: call.integer(axis), descending: call.flag(descending) };
    let sorted = graph.node(operator, &[value])?;
    let wanted: Vec<(V, &TensorRef)> = if gives_values {
        let values = std::iter::once((sorted[0], call.out(0)?));
        values.chain(call.optional_out(1).map(|out| (sorted[1], out))).collect()
    } else {
        vec![(sorted[1], call.out(0)?)]
    };
    let mut results = Vec::new();
    for (value, out) in wanted {
        results.push((as_output(&mut graph, value, out.shape())?, out));
    }
    graph.finish(&results)
}

/// An element as something that has an order: NaN last.
#[derive(Clone, Copy, PartialEq)]
enum Ordered {
    Whole(i64),
    Float(f64),
}

impl Ordered {
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => {
                a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
            }
            _ => Ordering::Equal,
        }
    }

    fn number(self) -> f64 {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "the nearest number")]
            Self::Whole(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

fn ordered(value: &Value) -> Vec<Ordered> {
    if value.element().is_float() {
        return value.doubles().into_iter().map(Ordered::Float).collect();
    }
    value.integers().into_iter().map(Ordered::Whole).collect()
}

fn made(element: ElementType, shape: &[usize], values: &[Ordered]) -> Value {
    if element.is_float() {
        return Value::of_doubles(
            element,
            shape,
            &values.iter().map(|value| value.number()).collect::<Vec<_>>(),
        );
    }
    let whole: Vec<i64> = values
        .iter()
        .map(|value| match value {
            Ordered::Whole(value) => *value,
            Ordered::Float(_) => 0,
        })
        .collect();
    Value::of_integers(shape, &whole).cast(element)
}

fn check_real(call: &OperatorCall, at: usize, element: ElementType) -> Checked {
    if element.is_complex() {
        return Err(Rejection::invalid(
            call.name(at),
            "is complex, and complex numbers have no order",
        ));
    }
    Ok(())
}

/// (self, sorted, inverse, counts) or (self, inverse, counts, axis): values without repetitions. An output that has more room than there are values ends with zeros.
pub(crate) fn unique(call: &OperatorCall, is_consecutive: bool) -> Checked<CompiledCall> {
    let (x, values) = (call.tensor(0)?, call.out(0)?);
    check_real(call, 0, x.element)?;
    let at = if is_consecutive { 1 } else { 2 };
    if is_consecutive && x.rank() > 1 && call.integer(3) != 1000 {
        return Err(Rejection::invalid(
            call.name(3),
            format!(
                "is {}, and self has {} dimensions; slices are not compared, so give a vector, or 1000 for the flattened tensor",
                call.integer(3),
                x.rank()
            ),
        ));
    }
    let mut graph = CallGraph::new(call);
    graph.can_fail();
    let value = graph.tensor(x);
    let wanted =
        |number: usize, flag: usize| call.flag(flag).then(|| call.optional_out(number)).flatten();
    let (inverse, counts) = (wanted(1, at), wanted(2, at + 1));
    let element = x.element;
    let (room, all) = (values.shape().to_vec(), elements(x.shape()));
    let count_room = counts.map_or_else(|| room.clone(), |counts| counts.shape().to_vec());
    let types = [(element, room.clone()), (I64, vec![all]), (I64, count_room.clone())];
    let made_values = graph.own(
        &[value],
        &types,
        Box::new(move |given| {
            let found = ordered(given[0]);
            let mut order: Vec<usize> = (0..found.len()).collect();
            if !is_consecutive {
                order.sort_by(|a, b| found[*a].compare(&found[*b]));
            }
            let (mut values, mut counts, mut inverse) =
                (Vec::<Ordered>::new(), Vec::new(), vec![0; found.len()]);
            for at in order {
                if values.last().is_none_or(|last| last.compare(&found[at]) != Ordering::Equal) {
                    values.push(found[at]);
                    counts.push(0_i64);
                }
                if let Some(count) = counts.last_mut() {
                    *count += 1;
                }
                inverse[at] = i64::try_from(values.len() - 1).unwrap_or(i64::MAX);
            }
            let rooms = elements(&room).min(elements(&count_room));
            if values.len() > rooms {
                return Err(format!(
                    "there are {} different values, and the outputs have room for {rooms}",
                    values.len()
                ));
            }
            let zero = if element.is_float() { Ordered::Float(0.0) } else { Ordered::Whole(0) };
            values.resize(elements(&room), zero);
            counts.resize(elements(&count_room), 0);
            Ok(vec![
                made(element, &room, &values),
                Value::of_integers(&[found.len()], &inverse),
                Value::of_integers(&count_room, &counts),
            ])
        }),
    );
    let mut results = vec![(made_values[0], values)];
    if let Some(inverse) = inverse {
        let value = as_output(&mut graph, made_values[1], inverse.shape())?;
        results.push((value, inverse));
    }
    if let Some(counts) = counts {
        results.push((made_values[2], counts));
    }
    graph.finish(&results)
}

/// (sorted sequence, self, whether the result is `i32`, right, sorter): where each element belongs in the order of its row.
pub(crate) fn search_sorted(call: &OperatorCall) -> Checked<CompiledCall> {
    let (sequence, x, out) = (call.tensor(0)?, call.tensor(1)?, call.out(0)?);
    check_real(call, 0, sequence.element)?;
    check_real(call, 1, x.element)?;
    let right = call.flag(3);
    let rows_fit = sequence.rank() == 1
        || (sequence.rank() == x.rank()
            && sequence.rank() > 0
            && sequence.shape()[..sequence.rank() - 1] == x.shape()[..x.rank() - 1]);
    if !rows_fit {
        return Err(Rejection::invalid(
            call.name(0),
            format!(
                "has the extents {:?}, and self {:?}; give a vector, or rows for the rows of self",
                sequence.shape(),
                x.shape()
            ),
        ));
    }
    let mut graph = CallGraph::new(call);
    graph.can_fail();
    let (a, b) = (graph.tensor(sequence), graph.tensor(x));
    let [a, b] = graph.promote(a, b);
    let mut inputs = vec![a, b];
    if let Some(sorter) = call.optional(4) {
        if sorter.shape() != sequence.shape() {
            return Err(Rejection::invalid(
                call.name(4),
                "does not have the extents of the sequence",
            ));
        }
        inputs.push(graph.tensor(sorter));
    }
    let width = sequence.shape().last().copied().unwrap_or(0);
    let (is_vector, columns) = (sequence.rank() == 1, x.shape().last().copied().unwrap_or(1));
    let made = graph.own(
        &inputs,
        &[(I64, x.shape().to_vec())],
        Box::new(move |given| {
            let (sequence, wanted) = (ordered(given[0]), ordered(given[1]));
            let sorter = given.get(2).map(|sorter| sorter.integers());
            let mut found = Vec::with_capacity(wanted.len());
            for (at, value) in wanted.iter().enumerate() {
                let first = if is_vector { 0 } else { at / columns.max(1) * width };
                let element = |place: usize| -> Result<Ordered, String> {
                    let place = match &sorter {
                        Some(sorter) => usize::try_from(sorter[first + place])
                            .ok()
                            .filter(|at| *at < width)
                            .ok_or_else(|| {
                                format!(
                                    "the sorter has the index {}, and there are {width} elements",
                                    sorter[first + place]
                                )
                            })?,
                        None => place,
                    };
                    Ok(sequence[first + place])
                };
                let (mut low, mut high) = (0, width);
                while low < high {
                    let middle = usize::midpoint(low, high);
                    let order = element(middle)?.compare(value);
                    if order == Ordering::Less || (right && order == Ordering::Equal) {
                        low = middle + 1;
                    } else {
                        high = middle;
                    }
                }
                found.push(i64::try_from(low).unwrap_or(i64::MAX));
            }
            Ok(vec![Value::of_integers(given[1].shape(), &found)])
        }),
    );
    graph.finish(&[(made[0], out)])
}

/// (self, bins, min, max): how many elements are in each of so many equal parts of a range.
pub(crate) fn histogram(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, bins, out) = (call.tensor(0)?, call.integer(1), call.out(0)?);
    check_real(call, 0, x.element)?;
    let (low, high) = (call.scalar(2)?.parts()[0], call.scalar(3)?.parts()[0]);
    let count = usize::try_from(bins)
        .ok()
        .filter(|count| (1..=1 << 24).contains(count))
        .ok_or_else(|| Rejection::invalid(call.name(1), format!("is {bins}; give 1 at least")))?;
    if low > high || !low.is_finite() || !high.is_finite() {
        return Err(Rejection::invalid(
            call.name(2),
            format!("is {low}, and max {high}; give a finite range"),
        ));
    }
    let mut graph = CallGraph::new(call);
    let value = graph.tensor(x);
    let made = graph.own(
        &[value],
        &[(F64, vec![count])],
        Box::new(move |given| {
            let found = given[0].doubles();
            let (mut low, mut high) = (low, high);
            if low == high {
                // The range of the elements.
                low = found.iter().copied().fold(f64::INFINITY, f64::min);
                high = found.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                if found.is_empty() || low == high {
                    (low, high) =
                        if found.is_empty() { (0.0, 1.0) } else { (low - 1.0, high + 1.0) };
                }
            }
            let mut counts = vec![0.0; count];
            for x in found.into_iter().filter(|x| *x >= low && *x <= high) {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    clippy::cast_precision_loss,
                    reason = "the number of a part"
                )]
                let at = ((x - low) / (high - low) * count as f64) as usize;
                counts[at.min(count - 1)] += 1.0;
            }
            Ok(vec![Value::Real(crate::value::doubles(&[count], &counts))])
        }),
    );
    graph.finish(&[(made[0], out)])
}

/// (self, weights, least length): how often each number occurs, or the sum of the weights at it.
pub(crate) fn count_numbers(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, weights, least, out) =
        (call.tensor(0)?, call.optional(1), call.integer(2), call.out(0)?);
    let [room] = *out.shape() else {
        return Err(Rejection::invalid(
            out.name,
            format!("has the extents {:?}; give a vector", out.shape()),
        ));
    };
    if least < 0 || usize::try_from(least).is_ok_and(|least| least > room) {
        return Err(Rejection::invalid(
            call.name(2),
            format!("is {least}, and the output has {room} elements"),
        ));
    }
    let mut graph = CallGraph::new(call);
    graph.can_fail();
    let mut inputs = vec![graph.tensor(x)];
    if let Some(weights) = weights {
        if weights.shape() != x.shape() {
            return Err(Rejection::invalid(call.name(1), "does not have the extents of self"));
        }
        inputs.push(graph.tensor(weights));
    }
    let made = graph.own(
        &inputs,
        &[(F64, vec![room])],
        Box::new(move |given| {
            let weights = given.get(1).map(|weights| weights.doubles());
            let mut sums = vec![0.0; room];
            for (at, number) in given[0].integers().into_iter().enumerate() {
                let place = usize::try_from(number).ok().filter(|place| *place < room).ok_or_else(
                    || format!("self has the number {number}, and the output has {room} elements"),
                )?;
                sums[place] += weights.as_ref().map_or(1.0, |weights| weights[at]);
            }
            Ok(vec![Value::Real(crate::value::doubles(&[room], &sums))])
        }),
    );
    graph.finish(&[(made[0], out)])
}
