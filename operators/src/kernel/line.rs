//! Operators along one axis: scans, softmax, sorts. A unit of work is everything at one index of the dimensions in front of the axis.

use super::memory::{In, Out};
use crate::element::{Element, with_type};
use crate::operator::Operator;

/// Elements in front of the axis, along it, and behind it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AxisLayout {
    pub(crate) outer: usize,
    pub(crate) extent: usize,
    pub(crate) inner: usize,
}

impl AxisLayout {
    pub(crate) fn of(shape: &[usize], axis: usize) -> Self {
        Self {
            outer: shape[..axis].iter().product(),
            extent: shape[axis],
            inner: shape[axis + 1..].iter().product(),
        }
    }
}

/// A number by which elements are ordered: of floats NaN is the largest, and zeros are equal.
pub(crate) fn key<T: Element>(x: T) -> i128 {
    if !T::DTYPE.is_float() {
        return x.to_i128();
    }
    let x = x.to_f64() + 0.0;
    if x.is_nan() {
        return i128::MAX;
    }
    let bits = x.to_bits().cast_signed();
    i128::from(if bits < 0 { i64::MIN.wrapping_sub(bits) } else { bits })
}

/// From lines of elements to lines of elements of the same type, which are as long.
fn lines<T: Element>(
    (input, lines): (&In<'_>, AxisLayout),
    units: (usize, usize),
    output: &mut Out<'_>,
    mut line: impl FnMut(&mut [T]),
) {
    let AxisLayout { extent, inner, .. } = lines;
    let values = input.elements::<T>();
    let size = extent * inner;
    let to = output.elements::<T>(units.0 * size, units.1 * size);
    let from = &values[units.0 * size..(units.0 + units.1) * size];
    if size == 0 {
        return;
    }
    let mut own = Vec::with_capacity(extent);
    for (from, to) in from.chunks_exact(size).zip(to.chunks_exact_mut(size)) {
        if inner == 1 {
            to.copy_from_slice(from);
            line(to);
            continue;
        }
        for column in 0..inner {
            own.clear();
            own.extend(from[column..].iter().step_by(inner));
            line(&mut own);
            to[column..].iter_mut().step_by(inner).zip(&own).for_each(|(to, own)| *to = *own);
        }
    }
}

/// Softmax and its kin, scans, norms: lines of the same length.
pub(crate) fn same_length(
    operator: &Operator,
    input: &In<'_>,
    of: AxisLayout,
    units: (usize, usize),
    output: &mut Out<'_>,
) {
    with_type!(input.ty.dtype, T => {
        match operator {
            Operator::CumSum { exclusive, reverse, .. } => {
                lines::<T>((input, of), units, output, |line| scan(line, (*exclusive, *reverse), false));
            }
            Operator::CumProd { exclusive, reverse, .. } => {
                lines::<T>((input, of), units, output, |line| scan(line, (*exclusive, *reverse), true));
            }
            Operator::Hardmax { .. } => lines::<T>((input, of), units, output, |line| {
                let largest = (0..line.len()).max_by_key(|at| (key(line[*at]), std::cmp::Reverse(*at)));
                line.fill(T::from_f64(0.0));
                if let Some(at) = largest {
                    line[at] = T::from_f64(1.0);
                }
            }),
            Operator::LpNormalization { p, .. } => lines::<T>((input, of), units, output, |line| {
                let sum: f64 = line.iter().map(|x| x.to_f64()).map(|x| if *p == 1 { x.abs() } else { x * x }).sum();
                let norm = if *p == 1 { sum } else { sum.sqrt() };
                for x in line {
                    *x = T::from_f64(if norm == 0.0 { 0.0 } else { x.to_f64() / norm });
                }
            }),
            _ => {
                let is_log = matches!(operator, Operator::LogSoftmax { .. });
                let mut wide = Vec::with_capacity(of.extent);
                lines::<T>((input, of), units, output, |line| softmax(line, &mut wide, is_log));
            }
        }
    });
}

fn softmax<T: Element>(line: &mut [T], wide: &mut Vec<f64>, is_log: bool) {
    wide.clear();
    wide.extend(line.iter().map(|x| x.to_f64()));
    let largest = wide
        .iter()
        .copied()
        .fold(f64::NEG_INFINITY, |a, b| if b > a || b.is_nan() { b } else { a });
    if is_log {
        let sum: f64 = wide.iter().map(|x| pto_aicore_kernels::tile::math::exp(x - largest)).sum();
        let log = sum.ln() + largest;
        line.iter_mut().zip(wide.iter()).for_each(|(to, x)| *to = T::from_f64(x - log));
        return;
    }
    wide.iter_mut().for_each(|x| *x = pto_aicore_kernels::tile::math::exp(*x - largest));
    let sum: f64 = wide.iter().sum();
    line.iter_mut().zip(wide.iter()).for_each(|(to, x)| *to = T::from_f64(x / sum));
}

/// Sums or products so far: of floats in `f64`, of integers wrapping.
fn scan<T: Element>(line: &mut [T], (exclusive, reverse): (bool, bool), is_product: bool) {
    let start = if is_product { 1 } else { 0 };
    let (mut whole, mut float): (i128, f64) = (start, f64::from(u8::from(is_product)));
    let is_float = T::DTYPE.is_float();
    let count = line.len();
    for step in 0..count {
        let at = if reverse { count - 1 - step } else { step };
        let x = line[at];
        let so_far = |whole: i128, float: f64| {
            if is_float { T::from_f64(float) } else { T::from_i128(whole) }
        };
        let before = so_far(whole, float);
        if is_float {
            float = if is_product { float * x.to_f64() } else { float + x.to_f64() };
        } else {
            whole = if is_product {
                whole.wrapping_mul(x.to_i128())
            } else {
                whole.wrapping_add(x.to_i128())
            };
        }
        line[at] = if exclusive { before } else { so_far(whole, float) };
    }
}

/// The position of the largest or smallest element.
pub(crate) fn arg_reduce(
    input: &In<'_>,
    of: AxisLayout,
    (largest, last): (bool, bool),
    units: (usize, usize),
    output: &mut Out<'_>,
) {
    with_type!(input.ty.dtype, T => {
        let values = input.elements::<T>();
        let to = output.elements::<i64>(units.0 * of.inner, units.1 * of.inner);
        for (number, to) in to.iter_mut().enumerate() {
            let (outer, column) = (units.0 + number / of.inner, number % of.inner);
            let first = outer * of.extent * of.inner + column;
            let order = |x: T| {
                let key = key(x);
                // NaN is found either way.
                if largest || (T::DTYPE.is_float() && key == i128::MAX) { key } else { -key }
            };
            let mut best = (0, order(values[first]));
            for at in 1..of.extent {
                let found = order(values[first + at * of.inner]);
                if found > best.1 || (last && found == best.1) {
                    best = (at, found);
                }
            }
            *to = best.0 as i64;
        }
    });
}

/// The first `k` elements in order, and their positions.
pub(crate) fn top(
    (input, of): (&In<'_>, AxisLayout),
    (k, descending): (usize, bool),
    units: (usize, usize),
    outputs: &mut [Out<'_>],
) {
    with_type!(input.ty.dtype, T => top_typed::<T>((input.elements(), of), (k, descending), units, outputs));
}

fn top_typed<T: Element>(
    (values, of): (&[T], AxisLayout),
    (k, descending): (usize, bool),
    units: (usize, usize),
    outputs: &mut [Out<'_>],
) {
    let AxisLayout { extent, inner, .. } = of;
    let size = k * inner;
    let mut order: Vec<(i128, usize)> = Vec::with_capacity(extent);
    for unit in units.0..units.0 + units.1 {
        for column in 0..inner {
            let first = unit * extent * inner + column;
            order.clear();
            order.extend((0..extent).map(|at| {
                let key = key(values[first + at * inner]);
                (if descending { -key } else { key }, at)
            }));
            if k < extent && k > 0 {
                order.select_nth_unstable(k - 1);
                order.truncate(k);
            }
            order.sort_unstable();
            for (rank, (_, at)) in order.iter().take(k).enumerate() {
                let place = unit * size + rank * inner + column;
                if let Some(values_out) = outputs.first_mut() {
                    values_out.elements::<T>(place, 1)[0] = values[first + at * inner];
                }
                if let Some(positions) = outputs.get_mut(1) {
                    positions.elements::<i64>(place, 1)[0] = *at as i64;
                }
            }
        }
    }
}
