//! Index maps of operators that put elements elsewhere, and the small ones that compute an element from its place.

use super::map::{Dim, Map, copy, step};
use super::memory::{In, Out};
use super::rules::accepted;
use crate::element::{Element, with_type};
use crate::infer::{pad_ranges, shape_range, slice_ranges, strides_of};
use crate::operator::{DepthOrder, Operator, PadMode};

/// Runs units, which are elements of the output.
pub(super) fn run(
    operator: &Operator,
    inputs: &[Option<In<'_>>],
    outputs: &mut [Out<'_>],
    units: (usize, usize),
) {
    let Some(Some(x)) = inputs.first() else { return };
    let fill = inputs.get(1).and_then(Option::as_ref);
    if let Operator::Split { axis, .. } = operator {
        return split(*axis, x, outputs);
    }
    if let Some(map) = map(operator, inputs, x, &outputs[0].ty.shape) {
        return copy(&map, x, fill, &mut outputs[0], units);
    }
    computed(operator, inputs, x, &mut outputs[0], units);
}

fn dense(shape: &[usize]) -> Vec<Dim> {
    shape.iter().zip(strides_of(shape)).map(|(extent, stride)| step(*extent, stride)).collect()
}

/// Where each element of the output comes from.
fn map(
    operator: &Operator,
    inputs: &[Option<In<'_>>],
    x: &In<'_>,
    output: &[usize],
) -> Option<Map> {
    let shape = &x.ty.shape;
    let strides = strides_of(shape);
    let plain = |dims: Vec<Dim>| Some(Map { first: 0, dims });
    match operator {
        Operator::Unary(_)
        | Operator::Reshape { .. }
        | Operator::Squeeze { .. }
        | Operator::Unsqueeze { .. }
        | Operator::Flatten { .. } => plain(vec![step(x.ty.elements(), 1)]),
        Operator::Transpose { permutation } => {
            let order = accepted(operator, inputs, |check| {
                check.permutation(permutation.as_deref(), shape.len())
            })?;
            plain(order.iter().map(|at| step(shape[*at], strides[*at])).collect())
        }
        Operator::Slice { starts, ends, axes, steps } => {
            let ranges = accepted(operator, inputs, |check| {
                slice_ranges(check, starts, ends, (axes.as_deref(), steps.as_deref()))
            })?;
            let mut first = 0;
            let mut dims = Vec::with_capacity(ranges.len());
            for (range, stride) in ranges.iter().zip(&strides) {
                // Of an empty dimension there is no first element.
                first += if range.count > 0 { (range.start * stride).cast_signed() } else { 0 };
                let step =
                    isize::try_from(range.step).unwrap_or(0).saturating_mul(stride.cast_signed());
                dims.push(Dim::Step { extent: range.count, step });
            }
            Some(Map { first, dims })
        }
        Operator::Expand { .. } => {
            let missing = output.len() - shape.len();
            let dim = |(at, extent): (usize, &usize)| match at.checked_sub(missing) {
                Some(at) if shape[at] != 1 => step(*extent, strides[at]),
                _ => step(*extent, 0),
            };
            plain(output.iter().enumerate().map(dim).collect())
        }
        Operator::Fill { .. } => plain(output.iter().map(|extent| step(*extent, 0)).collect()),
        Operator::Tile { .. } => {
            let dim = |at: usize| {
                let (extent, stride) = (shape[at], strides[at].cast_signed());
                if output[at] == extent {
                    return step(extent, strides[at]);
                }
                Dim::Table(
                    (0..output[at])
                        .map(|index| Some((index % extent).cast_signed() * stride))
                        .collect(),
                )
            };
            plain((0..output.len()).map(dim).collect())
        }
        Operator::Pad { mode, pads, axes } => {
            let ranges =
                accepted(operator, inputs, |check| pad_ranges(check, pads, axes.as_deref()))?;
            let dim = |at: usize| {
                if ranges[at] == (0, 0) {
                    return step(shape[at], strides[at]);
                }
                let source = |index: usize| {
                    padded(
                        *mode,
                        index.cast_signed() as i64 - ranges[at].0,
                        shape[at].cast_signed() as i64,
                    )
                };
                Dim::Table(
                    (0..output[at])
                        .map(|index| Some(source(index)?.cast_signed() * strides[at].cast_signed()))
                        .collect(),
                )
            };
            plain((0..output.len()).map(dim).collect())
        }
        Operator::SpaceToDepth { block } => {
            let [n, c, h, w] = <[usize; 4]>::try_from(shape.as_slice()).ok()?;
            // (n, block row, block column, c, h / block, w / block)
            let (rows, cols) = (h / block, w / block);
            plain(vec![
                step(n, c * h * w),
                step(*block, w),
                step(*block, 1),
                step(c, h * w),
                step(rows, block * w),
                step(cols, *block),
            ])
        }
        Operator::DepthToSpace { block, order } => {
            let [n, c, h, w] = <[usize; 4]>::try_from(shape.as_slice()).ok()?;
            let depth = c / (block * block);
            // (n, depth, h, block row, w, block column)
            let (of_depth, of_row, of_col) = match order {
                DepthOrder::Dcr => (h * w, block * depth * h * w, depth * h * w),
                DepthOrder::Crd => (block * block * h * w, block * h * w, h * w),
            };
            plain(vec![
                step(n, c * h * w),
                step(depth, of_depth),
                step(h, w),
                step(*block, of_row),
                step(w, 1),
                step(*block, of_col),
            ])
        }
        _ => None,
    }
}

/// Where an index of a padded dimension comes from; `None`: it is filled.
fn padded(mode: PadMode, index: i64, extent: i64) -> Option<usize> {
    if (0..extent).contains(&index) {
        return usize::try_from(index).ok();
    }
    let source = match mode {
        PadMode::Constant => return None,
        PadMode::Edge => index.clamp(0, extent - 1),
        PadMode::Wrap => index.rem_euclid(extent),
        PadMode::Reflect if extent == 1 => 0,
        PadMode::Reflect => {
            let period = 2 * (extent - 1);
            let at = index.rem_euclid(period);
            if at < extent { at } else { period - at }
        }
    };
    usize::try_from(source).ok()
}

/// Parts along an axis; one unit.
fn split(axis: i64, x: &In<'_>, outputs: &mut [Out<'_>]) {
    let rank = x.ty.rank();
    let axis = usize::try_from(if axis < 0 { axis + rank.cast_signed() as i64 } else { axis })
        .unwrap_or(0);
    let stride = strides_of(&x.ty.shape)[axis];
    let mut first = 0;
    for output in outputs {
        let mut dims = dense(&x.ty.shape);
        dims[axis] = step(output.ty.shape[axis], stride);
        let count = output.ty.elements();
        if count > 0 {
            copy(&Map { first, dims }, x, None, output, (0, count));
        }
        first += (output.ty.shape[axis] * stride).cast_signed();
    }
}

/// Elements that follow from their place.
fn computed(
    operator: &Operator,
    inputs: &[Option<In<'_>>],
    x: &In<'_>,
    output: &mut Out<'_>,
    (start, count): (usize, usize),
) {
    let given = |at: usize| inputs.get(at).and_then(Option::as_ref);
    match operator {
        Operator::Range => with_type!(x.ty.dtype, T => {
            let (Some(first), Some(Some(step))) = (x.elements::<T>().first(), given(2).map(|step| step.elements::<T>().first())) else { return };
            for (number, to) in output.elements::<T>(start, count).iter_mut().enumerate() {
                let at = start + number;
                *to = if T::DTYPE.is_float() {
                    #[expect(clippy::cast_precision_loss, reason = "a position")]
                    T::from_f64(first.to_f64() + at as f64 * step.to_f64())
                } else {
                    T::from_i128(first.to_i128() + at as i128 * step.to_i128())
                };
            }
        }),
        Operator::Shape { start: from, end } => {
            let (from, _) = shape_range(x.ty.rank(), *from, *end);
            for (number, to) in output.elements::<i64>(start, count).iter_mut().enumerate() {
                *to = x.ty.shape[from + start + number].cast_signed() as i64;
            }
        }
        Operator::Size => output.elements::<i64>(0, 1)[0] = x.ty.elements().cast_signed() as i64,
        Operator::EyeLike { k, .. } => {
            let cols = output.ty.shape[1];
            with_type!(output.ty.dtype, T => {
                for (number, to) in output.elements::<T>(start, count).iter_mut().enumerate() {
                    let at = start + number;
                    let is_one = i128::from(*k) == (at % cols) as i128 - (at / cols) as i128;
                    *to = T::from_f64(f64::from(u8::from(is_one)));
                }
            });
        }
        Operator::Trilu { upper, k } => {
            let rank = x.ty.rank();
            let (rows, cols) = (x.ty.shape[rank - 2], x.ty.shape[rank - 1]);
            let size = x.ty.dtype.bytes();
            let to = output.elements::<u8>(start * size, count * size);
            for (number, to) in to.chunks_exact_mut(size).enumerate() {
                let at = start + number;
                let diagonal = (at % cols) as i128 - (at / cols % rows) as i128;
                let stays =
                    if *upper { diagonal >= i128::from(*k) } else { diagonal <= i128::from(*k) };
                if stays {
                    to.copy_from_slice(&x.bytes[at * size..(at + 1) * size]);
                } else {
                    to.fill(0);
                }
            }
        }
        _ => {}
    }
}
