//! Operators whose elements come from elsewhere, dimension by dimension: the position of an element of the input is a sum of one number for each
//! dimension of the output, or it is outside, where a value is filled in.

use super::memory::{In, Out};
use crate::element::Element;

/// What a dimension of the output adds to the position in the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Dim {
    /// The index times this, for so many elements.
    Step {
        /// How many elements.
        extent: usize,
        /// The distance in the input.
        step: isize,
    },
    /// These numbers; `None`: outside.
    Table(Vec<Option<isize>>),
}

impl Dim {
    const fn extent(&self) -> usize {
        match self {
            Self::Step { extent, .. } => *extent,
            Self::Table(table) => table.len(),
        }
    }

    fn at(&self, index: usize) -> Option<isize> {
        match self {
            Self::Step { step, .. } => Some(step * index.cast_signed()),
            Self::Table(table) => table[index],
        }
    }
}

/// Where each element comes from.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    /// The position of the first element.
    pub(crate) first: isize,
    pub(crate) dims: Vec<Dim>,
}

/// Dimensions of extent 1 add to the first position, and those that follow each other without a gap become one.
fn joined(map: &Map) -> Option<(isize, Vec<Dim>)> {
    let mut first = map.first;
    let mut dims: Vec<Dim> = Vec::new();
    for dim in &map.dims {
        if dim.extent() == 1 {
            first += dim.at(0)?;
            continue;
        }
        match (dims.last_mut(), dim) {
            (Some(Dim::Step { extent: outer, step: distance }), Dim::Step { extent, step })
                if *distance == step * extent.cast_signed() =>
            {
                *outer *= extent;
                *distance = *step;
            }
            _ => dims.push(dim.clone()),
        }
    }
    Some((first, dims))
}

/// Fills elements `start .. start + count` of the output.
pub(crate) fn copy(
    map: &Map,
    input: &In<'_>,
    fill: Option<&In<'_>>,
    output: &mut Out<'_>,
    range: (usize, usize),
) {
    match output.ty.dtype.bytes() {
        1 => copy_typed::<u8>(map, input, fill, output, range),
        2 => copy_typed::<u16>(map, input, fill, output, range),
        4 => copy_typed::<u32>(map, input, fill, output, range),
        _ => copy_typed::<u64>(map, input, fill, output, range),
    }
}

fn copy_typed<T: Element>(
    map: &Map,
    input: &In<'_>,
    fill: Option<&In<'_>>,
    output: &mut Out<'_>,
    (start, count): (usize, usize),
) {
    let values = input.elements::<T>();
    let fill = fill
        .and_then(|fill| fill.elements::<T>().first().copied())
        .unwrap_or_else(|| T::from_slice(&[]));
    let to = output.elements::<T>(start, count);
    let Some((first, dims)) = joined(map) else { return to.fill(fill) };
    let Some((inner, outer)) = dims.split_last() else {
        return to.fill(values[first.cast_unsigned()]);
    };
    let extent = inner.extent();
    let mut done = 0;
    while done < count {
        let place = start + done;
        let (mut rest, column) = (place / extent, place % extent);
        let length = (extent - column).min(count - done);
        let mut at = Some(first);
        for dim in outer.iter().rev() {
            let size = dim.extent();
            at = at.zip(dim.at(rest % size)).map(|(at, more)| at + more);
            rest /= size;
        }
        let to = &mut to[done..done + length];
        match (at, inner) {
            (None, _) => to.fill(fill),
            (Some(at), Dim::Step { step: 1, .. }) => {
                let from = at.cast_unsigned() + column;
                to.copy_from_slice(&values[from..from + length]);
            }
            (Some(at), Dim::Step { step: 0, .. }) => to.fill(values[at.cast_unsigned()]),
            (Some(at), Dim::Step { step, .. }) => {
                let mut from = at + step * column.cast_signed();
                for to in to {
                    *to = values[from.cast_unsigned()];
                    from += step;
                }
            }
            (Some(at), Dim::Table(table)) => {
                for (to, from) in to.iter_mut().zip(&table[column..]) {
                    *to = from.map_or(fill, |from| values[(at + from).cast_unsigned()]);
                }
            }
        }
        done += length;
    }
}

/// A dimension of an operator in which nothing moves.
pub(crate) const fn step(extent: usize, step: usize) -> Dim {
    Dim::Step { extent, step: step.cast_signed() }
}

/// One behind the other along an axis.
pub(crate) fn concat(
    inputs: &[In<'_>],
    axis: usize,
    output: &mut Out<'_>,
    (start, count): (usize, usize),
) {
    let size = output.ty.dtype.bytes();
    let inner: usize = output.ty.shape[axis + 1..].iter().product::<usize>() * size;
    let row = output.ty.shape[axis] * inner;
    if row == 0 {
        return;
    }
    let bytes = output.elements::<u8>(start * size, count * size);
    let (first, end) = (start * size, (start + count) * size);
    for outer in first / row..end.div_ceil(row) {
        let mut at = outer * row;
        for input in inputs {
            let width = input.ty.shape[axis] * inner;
            let (from, to) = (at.max(first), (at + width).min(end));
            if from < to {
                let source = outer * width + (from - at);
                bytes[from - first..to - first]
                    .copy_from_slice(&input.bytes[source..source + (to - from)]);
            }
            at += width;
        }
    }
}
