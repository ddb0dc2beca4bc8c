//! Operators whose elements are chosen by indices that stand in memory.

use super::failure::Failure;
use super::memory::{In, Out};
use crate::dtype::DType;
use crate::element::{Element, with_type};
use crate::infer::strides_of;
use crate::operator::ScatterReduction;

/// Index `at` of a tensor of indices, for an axis; negative ones count from the end.
fn index(indices: &In<'_>, at: usize, extent: usize) -> Result<usize, Failure> {
    let index = match indices.ty.dtype {
        DType::I32 => i64::from(indices.elements::<i32>()[at]),
        _ => indices.elements::<i64>()[at],
    };
    let from_front =
        if index < 0 { index.saturating_add(extent.cast_signed() as i64) } else { index };
    usize::try_from(from_front)
        .ok()
        .filter(|at| *at < extent)
        .ok_or(Failure::Index { index, extent: extent as u64 })
}

/// Slices of an axis. A unit is one index, for each position in the dimensions before the axis.
pub(crate) fn gather(
    data: &In<'_>,
    indices: &In<'_>,
    axis: usize,
    output: &mut Out<'_>,
    units: (usize, usize),
) -> Result<(), Failure> {
    let shape = &data.ty.shape;
    let size = data.ty.dtype.bytes() * shape[axis + 1..].iter().product::<usize>();
    let count = indices.ty.elements();
    for unit in units.0..units.0 + units.1 {
        let at = index(indices, unit % count, shape[axis])?;
        let from = (unit / count * shape[axis] + at) * size;
        output.elements::<u8>(unit * size, size).copy_from_slice(&data.bytes[from..from + size]);
    }
    Ok(())
}

/// The indices of an element of a dense tensor, by its position.
fn unravel(shape: &[usize], mut position: usize, to: &mut Vec<usize>) {
    to.clear();
    to.resize(shape.len(), 0);
    for (to, extent) in to.iter_mut().zip(shape).rev() {
        *to = position % extent;
        position /= extent;
    }
}

/// The position of an element with these indices.
fn ravel(indices: &[usize], strides: &[usize]) -> usize {
    indices.iter().zip(strides).map(|(at, stride)| at * stride).sum()
}

/// Elements along an axis. A unit is an element.
pub(crate) fn gather_elements(
    data: &In<'_>,
    indices: &In<'_>,
    axis: usize,
    output: &mut Out<'_>,
    units: (usize, usize),
) -> Result<(), Failure> {
    let size = data.ty.dtype.bytes();
    let strides = strides_of(&data.ty.shape);
    let mut coordinates = Vec::new();
    for unit in units.0..units.0 + units.1 {
        unravel(&indices.ty.shape, unit, &mut coordinates);
        coordinates[axis] = index(indices, unit, data.ty.shape[axis])?;
        let from = ravel(&coordinates, &strides) * size;
        output.elements::<u8>(unit * size, size).copy_from_slice(&data.bytes[from..from + size]);
    }
    Ok(())
}

/// Where the slice of a tuple begins, in elements.
fn tuple(
    indices: &In<'_>,
    at: usize,
    extents: &[usize],
    strides: &[usize],
) -> Result<usize, Failure> {
    let depth = extents.len();
    (0..depth).try_fold(0, |sum, dim| {
        Ok(sum + index(indices, at * depth + dim, extents[dim])? * strides[dim])
    })
}

/// Slices by tuples. A unit is a tuple.
pub(crate) fn gather_nd(
    data: &In<'_>,
    indices: &In<'_>,
    batch_dims: usize,
    output: &mut Out<'_>,
    units: (usize, usize),
) -> Result<(), Failure> {
    let shape = &data.ty.shape;
    let last = indices.ty.rank() - 1;
    let depth = indices.ty.shape[last];
    let strides = strides_of(shape);
    let (extents, strides) =
        (&shape[batch_dims..batch_dims + depth], &strides[batch_dims..batch_dims + depth]);
    let count: usize = shape[batch_dims + depth..].iter().product();
    let batch: usize = shape[batch_dims..].iter().product();
    let tuples: usize = indices.ty.shape[batch_dims..last].iter().product();
    let size = data.ty.dtype.bytes();
    for unit in units.0..units.0 + units.1 {
        let from = (unit / tuples * batch + tuple(indices, unit, extents, strides)?) * size;
        let bytes = count * size;
        output.elements::<u8>(unit * bytes, bytes).copy_from_slice(&data.bytes[from..from + bytes]);
    }
    Ok(())
}

fn combined<T: Element>(reduction: ScatterReduction, old: T, new: T) -> T {
    let is_float = T::DTYPE.is_float();
    match reduction {
        ScatterReduction::None => new,
        ScatterReduction::Add if is_float => T::from_f64(old.to_f64() + new.to_f64()),
        ScatterReduction::Add => T::from_i128(old.to_i128().wrapping_add(new.to_i128())),
        ScatterReduction::Mul if is_float => T::from_f64(old.to_f64() * new.to_f64()),
        ScatterReduction::Mul => T::from_i128(old.to_i128().wrapping_mul(new.to_i128())),
        ScatterReduction::Max | ScatterReduction::Min => {
            let (a, b) = (super::line::key(old), super::line::key(new));
            let is_nan = |x: T| is_float && x.to_f64().is_nan();
            let takes_new = is_nan(new)
                || (!is_nan(old) && if reduction == ScatterReduction::Max { b > a } else { b < a });
            if takes_new { new } else { old }
        }
    }
}

/// Elements put along an axis, in the order of the updates; one unit.
pub(crate) fn scatter_elements(
    inputs: [&In<'_>; 3],
    axis: usize,
    reduction: ScatterReduction,
    output: &mut Out<'_>,
) -> Result<(), Failure> {
    let [data, indices, updates] = inputs;
    let strides = strides_of(&data.ty.shape);
    with_type!(data.ty.dtype, T => {
        let to = output.all::<T>();
        to.copy_from_slice(data.elements::<T>());
        let mut coordinates = Vec::new();
        for (at, update) in updates.elements::<T>().iter().enumerate() {
            unravel(&indices.ty.shape, at, &mut coordinates);
            coordinates[axis] = index(indices, at, data.ty.shape[axis])?;
            let to = &mut to[ravel(&coordinates, &strides)];
            *to = combined(reduction, *to, *update);
        }
    });
    Ok(())
}

/// Slices put by tuples, in the order of the updates; one unit.
pub(crate) fn scatter_nd(
    inputs: [&In<'_>; 3],
    reduction: ScatterReduction,
    output: &mut Out<'_>,
) -> Result<(), Failure> {
    let [data, indices, updates] = inputs;
    let strides = strides_of(&data.ty.shape);
    let last = indices.ty.rank() - 1;
    let depth = indices.ty.shape[last];
    let count: usize = data.ty.shape[depth..].iter().product();
    let tuples: usize = indices.ty.shape[..last].iter().product();
    with_type!(data.ty.dtype, T => {
        let to = output.all::<T>();
        to.copy_from_slice(data.elements::<T>());
        let updates = updates.elements::<T>();
        for at in 0..tuples {
            let first = tuple(indices, at, &data.ty.shape[..depth], &strides[..depth])?;
            for (to, update) in to[first..first + count].iter_mut().zip(&updates[at * count..]) {
                *to = combined(reduction, *to, *update);
            }
        }
    });
    Ok(())
}

/// `on` at the index, `off` elsewhere. An index that stands for nothing leaves `off`. A unit is an element.
pub(crate) fn one_hot(
    indices: &In<'_>,
    values: &In<'_>,
    (depth, axis): (usize, usize),
    output: &mut Out<'_>,
    units: (usize, usize),
) {
    let inner: usize = output.ty.shape[axis + 1..].iter().product();
    with_type!(values.ty.dtype, T => {
        let pair = values.elements::<T>();
        let to = output.elements::<T>(units.0, units.1);
        for (number, to) in to.iter_mut().enumerate() {
            let position = units.0 + number;
            let (column, hot, outer) = (position % inner, position / inner % depth, position / inner / depth);
            let index = with_type!(indices.ty.dtype, I => {
                indices.elements::<I>()[outer * inner + column].to_i128()
            });
            let index = if index < 0 { index + depth as i128 } else { index };
            *to = pair[usize::from(index == hot as i128)];
        }
    });
}

/// The first elements of each sequence in reverse order; one unit.
pub(crate) fn reverse_sequence(
    x: &In<'_>,
    lengths: &In<'_>,
    time_axis: usize,
    output: &mut Out<'_>,
) -> Result<(), Failure> {
    let shape = &x.ty.shape;
    let size = x.ty.dtype.bytes() * shape[2..].iter().product::<usize>();
    let (first, second) = (shape[0], shape[1]);
    let extent = shape[time_axis];
    for a in 0..first {
        for b in 0..second {
            let (sequence, time) = if time_axis == 0 { (b, a) } else { (a, b) };
            // A length is up to the extent.
            let length = index(lengths, sequence, extent + 1)?;
            let source = if time < length { length - 1 - time } else { time };
            let row = if time_axis == 0 { source * second + b } else { a * second + source };
            let from = row * size;
            output
                .elements::<u8>((a * second + b) * size, size)
                .copy_from_slice(&x.bytes[from..from + size]);
        }
    }
    Ok(())
}

/// The indices of elements that are not 0.
pub(crate) fn non_zero(x: &In<'_>, output: &mut Out<'_>) {
    let count = output.ty.shape[1];
    let shape = &x.ty.shape;
    let mut coordinates = Vec::new();
    let mut found = 0;
    with_type!(x.ty.dtype, T => {
        for (at, value) in x.elements::<T>().iter().enumerate() {
            if value.to_f64() != 0.0 && found < count {
                unravel(shape, at, &mut coordinates);
                for (dim, index) in coordinates.iter().enumerate() {
                    output.elements::<i64>(dim * count + found, 1)[0] = index.cast_signed() as i64;
                }
                found += 1;
            }
        }
    });
}

/// The slices of an axis where the condition is true.
pub(crate) fn compress(x: &In<'_>, condition: &In<'_>, axis: Option<usize>, output: &mut Out<'_>) {
    let size = x.ty.dtype.bytes();
    let (outer, extent, inner) = match axis {
        Some(axis) => (
            x.ty.shape[..axis].iter().product(),
            x.ty.shape[axis],
            x.ty.shape[axis + 1..].iter().product::<usize>() * size,
        ),
        None => (1, x.ty.elements(), size),
    };
    let chosen: Vec<_> =
        (0..extent).filter(|at| condition.bytes.get(*at).is_some_and(|byte| *byte != 0)).collect();
    for row in 0..outer {
        for (rank, at) in chosen.iter().enumerate() {
            let from = (row * extent + at) * inner;
            output
                .elements::<u8>((row * chosen.len() + rank) * inner, inner)
                .copy_from_slice(&x.bytes[from..from + inner]);
        }
    }
}
