//! Operators that put elements elsewhere.

use super::check::{OperatorCheck, broadcast, reduced};
use crate::dtype::DType;
use crate::error::OperatorError;
use crate::operator::{Operator, PadMode};
use crate::tensor::{TensorType, elements};

pub(super) fn infer(
    operator: &Operator,
    check: &OperatorCheck<'_>,
) -> Result<Vec<TensorType>, OperatorError> {
    let first = || check.input(0);
    let with = |shape: Vec<usize>| Ok(vec![TensorType { dtype: first()?.dtype, shape }]);
    match operator {
        Operator::Reshape { shape, allow_zero } => with(reshape(check, shape, *allow_zero)?),
        Operator::Squeeze { axes } => {
            let x = first()?;
            let axes = match axes {
                Some(axes) => check.axes("axes", axes, x.rank())?,
                None => (0..x.rank()).filter(|at| x.shape[*at] == 1).collect(),
            };
            if let Some(axis) = axes.iter().find(|axis| x.shape[**axis] != 1) {
                return Err(check.attribute(
                    "axes",
                    format!(
                        "names axis {axis}, which has the extent {}; it has to be 1",
                        x.shape[*axis]
                    ),
                ));
            }
            with(reduced(&x.shape, &axes, false))
        }
        Operator::Unsqueeze { axes } => {
            let x = first()?;
            let rank = x.rank() + axes.len();
            let axes = check.axes("axes", axes, rank)?;
            let mut extents = x.shape.iter();
            with(
                (0..rank)
                    .map(
                        |at| {
                            if axes.contains(&at) {
                                1
                            } else {
                                extents.next().copied().unwrap_or(1)
                            }
                        },
                    )
                    .collect(),
            )
        }
        Operator::Flatten { axis } => {
            let x = first()?;
            // The axis may be the number of dimensions.
            let axis = if i64::try_from(x.rank()).ok() == Some(*axis) {
                x.rank()
            } else {
                check.axis("axis", *axis, x.rank())?
            };
            with(vec![elements(&x.shape[..axis]), elements(&x.shape[axis..])])
        }
        Operator::Transpose { permutation } => {
            let x = first()?;
            let order = check.permutation(permutation.as_deref(), x.rank())?;
            with(order.iter().map(|at| x.shape[*at]).collect())
        }
        Operator::Slice { starts, ends, axes, steps } => {
            let ranges = slice_ranges(check, starts, ends, (axes.as_deref(), steps.as_deref()))?;
            with(ranges.iter().map(|range| range.count).collect())
        }
        Operator::Concat { axis } => concat(check, *axis),
        Operator::Split { axis, sizes } => {
            let x = first()?;
            let axis = check.axis("axis", *axis, x.rank())?;
            let sum = sizes.iter().try_fold(0_usize, |sum, size| sum.checked_add(*size));
            if sum != Some(x.shape[axis]) || sizes.is_empty() {
                return Err(check.attribute(
                    "sizes",
                    format!(
                        "is {sizes:?}, and axis {axis} has the extent {}; the sum has to be that",
                        x.shape[axis]
                    ),
                ));
            }
            let part = |size: &usize| {
                let mut shape = x.shape.clone();
                shape[axis] = *size;
                TensorType { dtype: x.dtype, shape }
            };
            Ok(sizes.iter().map(part).collect())
        }
        Operator::Expand { shape } => {
            let x = first()?;
            let wanted: Vec<_> = shape
                .iter()
                .map(|extent| check.extent("shape", *extent))
                .collect::<Result<_, _>>()?;
            let shape = broadcast(&x.shape, &wanted).ok_or_else(|| {
                check.attribute("shape", format!("is {wanted:?}, to which {x} does not broadcast"))
            })?;
            with(shape)
        }
        Operator::Tile { repeats } => {
            let x = first()?;
            if repeats.len() != x.rank() {
                return Err(check.attribute(
                    "repeats",
                    format!(
                        "has {} numbers, and x has {} dimensions; give one each",
                        repeats.len(),
                        x.rank()
                    ),
                ));
            }
            let shape = x.shape.iter().zip(repeats).map(|(extent, often)| {
                Ok(check.extent("repeats", *often)?.saturating_mul(*extent))
            });
            with(shape.collect::<Result<_, OperatorError>>()?)
        }
        Operator::Pad { mode, pads, axes } => {
            let x = first()?;
            check.scalar_of(1, x.dtype)?;
            let pads = pad_ranges(check, pads, axes.as_deref())?;
            let mut shape = Vec::with_capacity(x.rank());
            for (at, ((begin, end), extent)) in pads.iter().zip(&x.shape).enumerate() {
                let signed = i128::try_from(*extent).unwrap_or(i128::MAX);
                let total = signed + i128::from(*begin) + i128::from(*end);
                let total = usize::try_from(total).map_err(|_| {
                    check.attribute(
                        "pads",
                        format!(
                            "cuts {begin} and {end} off axis {at}, which has the extent {extent}"
                        ),
                    )
                })?;
                let grows = *begin > 0 || *end > 0;
                let fits = match mode {
                    PadMode::Constant => true,
                    PadMode::Edge | PadMode::Wrap => *extent > 0,
                    PadMode::Reflect => *extent > 0,
                };
                if grows && !fits {
                    return Err(check.attribute(
                        "pads",
                        format!("fills axis {at} with elements of x, and there are none"),
                    ));
                }
                shape.push(total);
            }
            with(shape)
        }
        Operator::Gather { axis } => {
            let (x, indices) = (first()?, check.indices(1)?);
            let axis = check.axis("axis", *axis, x.rank())?;
            with([&x.shape[..axis], &indices.shape, &x.shape[axis + 1..]].concat())
        }
        Operator::GatherElements { axis } => {
            let (x, indices) = (first()?, check.indices(1)?);
            let axis = check.axis("axis", *axis, x.rank())?;
            elements_fit(check, x, indices, axis)?;
            with(indices.shape.clone())
        }
        Operator::GatherNd { batch_dims } => {
            let (x, indices) = (first()?, check.indices(1)?);
            let depth = tuple_depth(check, x, indices, *batch_dims)?;
            let last = indices.rank() - 1;
            with([&indices.shape[..last], &x.shape[batch_dims + depth..]].concat())
        }
        Operator::ScatterElements { axis, reduction } => {
            let (x, indices) = (first()?, check.indices(1)?);
            let updates = check.typed(2, x.dtype)?;
            let axis = check.axis("axis", *axis, x.rank())?;
            elements_fit(check, x, indices, axis)?;
            if updates.shape != indices.shape {
                return Err(check.wrong(2, format!("is {updates}, and the indices have the extents {:?}; both have to be the same", indices.shape)));
            }
            scatter_type(check, x, *reduction)?;
            Ok(vec![x.clone()])
        }
        Operator::ScatterNd { reduction } => {
            let (x, indices) = (first()?, check.indices(1)?);
            let updates = check.typed(2, x.dtype)?;
            let depth = tuple_depth(check, x, indices, 0)?;
            let wanted = [&indices.shape[..indices.rank() - 1], &x.shape[depth..]].concat();
            if updates.shape != wanted {
                return Err(
                    check.wrong(2, format!("is {updates}; it has to have the extents {wanted:?}"))
                );
            }
            scatter_type(check, x, *reduction)?;
            Ok(vec![x.clone()])
        }
        Operator::SpaceToDepth { block } => {
            let [n, c, h, w] = image(check, *block)?;
            if h % block != 0 || w % block != 0 {
                return Err(check.wrong(0, format!("has images of {h} x {w}, and a block is {block} x {block}; whole blocks have to fit")));
            }
            with(vec![n, c.saturating_mul(block * block), h / block, w / block])
        }
        Operator::DepthToSpace { block, .. } => {
            let [n, c, h, w] = image(check, *block)?;
            if c % (block * block) != 0 {
                return Err(check.wrong(0, format!("has {c} channels, and a block is {block} x {block}; whole blocks have to fit")));
            }
            with(vec![n, c / (block * block), h.saturating_mul(*block), w.saturating_mul(*block)])
        }
        Operator::OneHot { depth, axis } => {
            let indices = check.number(0)?;
            let values = check.input(1)?;
            if values.shape != [2] {
                return Err(check.wrong(1, format!("is {values}; give two elements, off and on")));
            }
            let axis = check.axis("axis", *axis, indices.rank() + 1)?;
            let mut shape = indices.shape.clone();
            shape.insert(axis, *depth);
            Ok(vec![TensorType { dtype: values.dtype, shape }])
        }
        Operator::Range => {
            let start = check.number(0)?;
            (1..3).try_for_each(|at| check.scalar_of(at, start.dtype))?;
            check.scalar_of(0, start.dtype)?;
            let count = range_count(check)?;
            with(vec![count])
        }
        Operator::Fill { shape } => {
            let value = first()?;
            check.scalar_of(0, value.dtype)?;
            with(shape.clone())
        }
        Operator::Shape { start, end } => {
            let (from, to) = shape_range(first()?.rank(), *start, *end);
            Ok(vec![TensorType::new(DType::I64, &[to - from])])
        }
        Operator::Size => Ok(vec![TensorType::new(DType::I64, &[])]),
        Operator::EyeLike { dtype, .. } => {
            let x = first()?;
            if x.rank() != 2 {
                return Err(check.wrong(0, format!("is {x}; give a matrix")));
            }
            Ok(vec![TensorType { dtype: *dtype, shape: x.shape.clone() }])
        }
        Operator::Trilu { .. } => {
            let x = first()?;
            if x.rank() < 2 {
                return Err(check.wrong(0, format!("is {x}; give two dimensions at least")));
            }
            Ok(vec![x.clone()])
        }
        Operator::NonZero => {
            let (x, known) = (first()?, check.known(0)?);
            let count = known.to_doubles().iter().filter(|value| **value != 0.0).count();
            Ok(vec![TensorType::new(DType::I64, &[x.rank(), count])])
        }
        Operator::Compress { axis } => {
            let x = first()?;
            let condition = check.typed(1, DType::Bool)?;
            let known = check.known(1)?;
            let count = known.bytes().iter().filter(|byte| **byte != 0).count();
            let extent = match axis {
                Some(axis) => x.shape[check.axis("axis", *axis, x.rank())?],
                None => x.elements(),
            };
            if condition.rank() != 1
                || known.bytes().iter().skip(extent).any(|byte| *byte != 0)
                || condition.elements() > extent
            {
                return Err(check.wrong(
                    1,
                    format!("is {condition}; give one dimension of at most {extent} elements"),
                ));
            }
            let shape = match axis {
                Some(axis) => {
                    let mut shape = x.shape.clone();
                    shape[check.axis("axis", *axis, x.rank())?] = count;
                    shape
                }
                None => vec![count],
            };
            with(shape)
        }
        Operator::ReverseSequence { batch_axis, time_axis } => {
            let x = first()?;
            let lengths = check.indices(1)?;
            if x.rank() < 2 || *batch_axis > 1 || *time_axis > 1 || batch_axis == time_axis {
                return Err(check.attribute("time_axis", format!("is {time_axis}, and batch_axis {batch_axis}, of {x}; one is 0 and the other 1, and x has two dimensions at least")));
            }
            if lengths.shape != [x.shape[*batch_axis]] {
                return Err(check.wrong(
                    1,
                    format!(
                        "is {lengths}; give one length for each of {} sequences",
                        x.shape[*batch_axis]
                    ),
                ));
            }
            Ok(vec![x.clone()])
        }
        other => Err(check.refuse(format!("{} has no rule here", other.variant()))),
    }
}

impl OperatorCheck<'_> {
    /// The order of dimensions.
    pub(crate) fn permutation(
        &self,
        order: Option<&[usize]>,
        rank: usize,
    ) -> Result<Vec<usize>, OperatorError> {
        let order: Vec<usize> = order.map_or_else(|| (0..rank).rev().collect(), <[usize]>::to_vec);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if sorted.iter().copied().eq(0..rank) {
            return Ok(order);
        }
        Err(self.attribute(
            "permutation",
            format!("is {order:?}, and x has {rank} dimensions; name each once"),
        ))
    }
}

/// The extents of a reshaped input.
pub(crate) fn reshape(
    check: &OperatorCheck<'_>,
    shape: &[i64],
    allow_zero: bool,
) -> Result<Vec<usize>, OperatorError> {
    let x = check.input(0)?;
    let mut extents = Vec::with_capacity(shape.len());
    let mut rest = None;
    for (at, extent) in shape.iter().enumerate() {
        extents.push(match extent {
            -1 if rest.is_none() => {
                rest = Some(at);
                1
            }
            -1 => {
                return Err(
                    check.attribute("shape", format!("is {shape:?}; only one extent can be -1"))
                );
            }
            0 if !allow_zero => *x.shape.get(at).ok_or_else(|| {
                check.attribute(
                    "shape",
                    format!("is {shape:?}, where 0 at {at} stands for an extent of x, {x}"),
                )
            })?,
            extent => check.extent("shape", *extent)?,
        });
    }
    let mismatch = || {
        check.attribute("shape", format!("is {shape:?}, and x, {x}, has {} elements; the numbers of elements have to be equal", x.elements()))
    };
    let known = elements(&extents);
    if let Some(at) = rest {
        if known == 0 || x.elements() % known != 0 {
            return Err(mismatch());
        }
        extents[at] = x.elements() / known;
    } else if known != x.elements() {
        return Err(mismatch());
    }
    Ok(extents)
}

/// What a slice takes of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SliceRange {
    pub(crate) start: usize,
    pub(crate) step: i64,
    pub(crate) count: usize,
}

/// What a slice takes of each dimension.
pub(crate) fn slice_ranges(
    check: &OperatorCheck<'_>,
    starts: &[i64],
    ends: &[i64],
    (axes, steps): (Option<&[i64]>, Option<&[i64]>),
) -> Result<Vec<SliceRange>, OperatorError> {
    let x = check.input(0)?;
    let count = starts.len();
    let lengths = [
        ("ends", ends.len()),
        ("axes", axes.map_or(count, <[_]>::len)),
        ("steps", steps.map_or(count, <[_]>::len)),
    ];
    if let Some((name, found)) = lengths.into_iter().find(|(_, found)| *found != count) {
        return Err(check.attribute(
            name,
            format!("has {found} numbers, and starts has {count}; give as many"),
        ));
    }
    let named: Vec<i64> = axes.map_or_else(|| (0..).take(count).collect(), <[i64]>::to_vec);
    let axes = check.axes("axes", &named, x.rank())?;
    let mut ranges: Vec<_> =
        x.shape.iter().map(|extent| SliceRange { start: 0, step: 1, count: *extent }).collect();
    for (at, axis) in axes.into_iter().enumerate() {
        let step = steps.map_or(1, |steps| steps[at]);
        if step == 0 {
            return Err(check.attribute("steps", "has a step of 0; use another one".to_owned()));
        }
        ranges[axis] = slice_range(x.shape[axis], starts[at], ends[at], step);
    }
    Ok(ranges)
}

/// As Python: a beginning and an end that are negative count from the end, and are clamped.
fn slice_range(extent: usize, start: i64, end: i64, step: i64) -> SliceRange {
    let extent = i128::try_from(extent).unwrap_or(i128::MAX);
    let (low, high) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
    let place = |at: i64| {
        let at = i128::from(at);
        (if at < 0 { at + extent } else { at }).clamp(low, high)
    };
    let (start, end, wide) = (place(start), place(end), i128::from(step));
    let distance = if step > 0 { end - start } else { start - end };
    let count = if distance <= 0 { 0 } else { (distance + wide.abs() - 1) / wide.abs() };
    SliceRange {
        start: usize::try_from(start).unwrap_or(0),
        step,
        count: usize::try_from(count).unwrap_or(0),
    }
}

/// Beginning and end of the padding of each dimension.
pub(crate) fn pad_ranges(
    check: &OperatorCheck<'_>,
    pads: &[i64],
    axes: Option<&[i64]>,
) -> Result<Vec<(i64, i64)>, OperatorError> {
    let x = check.input(0)?;
    let axes = check.axes_or_all("axes", axes, x.rank())?;
    if pads.len() != 2 * axes.len() {
        return Err(check.attribute(
            "pads",
            format!("has {} numbers for {} axes; give two each", pads.len(), axes.len()),
        ));
    }
    let mut ranges = vec![(0, 0); x.rank()];
    for (at, axis) in axes.iter().enumerate() {
        ranges[*axis] = (pads[at], pads[at + axes.len()]);
    }
    Ok(ranges)
}

fn concat(check: &OperatorCheck<'_>, axis: i64) -> Result<Vec<TensorType>, OperatorError> {
    let first = check.input(0)?;
    let axis = check.axis("axis", axis, first.rank())?;
    let mut shape = first.shape.clone();
    for at in 1..check.inputs.len() {
        let ty = check.typed(at, first.dtype)?;
        let fits = ty.rank() == shape.len()
            && (0..shape.len()).all(|dim| dim == axis || ty.shape[dim] == shape[dim]);
        if !fits {
            return Err(check.wrong(
                at,
                format!(
                    "is {ty}, and the first one is {first}; they may differ along axis {axis} only"
                ),
            ));
        }
        shape[axis] = shape[axis].saturating_add(ty.shape[axis]);
    }
    Ok(vec![TensorType { dtype: first.dtype, shape }])
}

fn elements_fit(
    check: &OperatorCheck<'_>,
    x: &TensorType,
    indices: &TensorType,
    axis: usize,
) -> Result<(), OperatorError> {
    let fits = x.rank() == indices.rank()
        && (0..x.rank()).all(|dim| dim == axis || indices.shape[dim] <= x.shape[dim]);
    if fits {
        Ok(())
    } else {
        Err(check.wrong(1, format!("is {indices}, and data is {x}; give as many dimensions, none longer but axis {axis}")))
    }
}

/// How many dimensions a tuple of indices names.
fn tuple_depth(
    check: &OperatorCheck<'_>,
    x: &TensorType,
    indices: &TensorType,
    batch_dims: usize,
) -> Result<usize, OperatorError> {
    let fits = batch_dims < indices.rank().max(1)
        && indices.rank() >= 1
        && batch_dims <= x.rank()
        && x.shape[..batch_dims] == indices.shape[..batch_dims];
    if !fits {
        return Err(check.wrong(1, format!("is {indices}, and data is {x}; the first {batch_dims} dimensions have to be the same, and tuples stand in the last one")));
    }
    let depth = indices.shape[indices.rank() - 1];
    if depth > x.rank() - batch_dims {
        return Err(check.wrong(1, format!("is {indices}, with tuples of {depth}, and data is {x}; a tuple names {} dimensions at most", x.rank() - batch_dims)));
    }
    Ok(depth)
}

fn scatter_type(
    check: &OperatorCheck<'_>,
    x: &TensorType,
    reduction: crate::operator::ScatterReduction,
) -> Result<(), OperatorError> {
    use crate::operator::ScatterReduction;
    if x.dtype == DType::Bool && !matches!(reduction, ScatterReduction::None) {
        return Err(check.wrong(0, format!("is {x}; the reduction is for numbers")));
    }
    Ok(())
}

fn image(check: &OperatorCheck<'_>, block: usize) -> Result<[usize; 4], OperatorError> {
    let x = check.input(0)?;
    if block == 0 || block > 1 << 16 {
        return Err(check.attribute("block", format!("is {block}; use 1 to 65536")));
    }
    <[usize; 4]>::try_from(x.shape.as_slice())
        .map_err(|_| check.wrong(0, format!("is {x}; give batch, channels, height, width")))
}

fn range_count(check: &OperatorCheck<'_>) -> Result<usize, OperatorError> {
    let known: Vec<_> = (0..3).map(|at| check.known(at)).collect::<Result<_, _>>()?;
    let dtype = known[0].dtype();
    let zero = || check.wrong(2, "is 0; use another step".to_owned());
    if dtype.is_float() {
        let [start, limit, delta] = [0, 1, 2].map(|at: usize| known[at].to_doubles()[0]);
        if delta == 0.0 {
            return Err(zero());
        }
        let count = ((limit - start) / delta).ceil().max(0.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative; saturates, and the limit of elements refuses it"
        )]
        return if count.is_nan() {
            Err(check.wrong(0, "is NaN, or a limit is; use numbers".to_owned()))
        } else {
            Ok(count as usize)
        };
    }
    let integer = |at: usize| crate::element::wide(dtype, known[at].bytes());
    let (start, limit, delta) = (integer(0), integer(1), integer(2));
    if delta == 0 {
        return Err(zero());
    }
    let distance = if delta > 0 { limit - start } else { start - limit };
    let count = if distance <= 0 { 0 } else { (distance + delta.abs() - 1) / delta.abs() };
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// The dimensions that `Shape` gives: from, to.
pub(crate) fn shape_range(rank: usize, start: i64, end: Option<i64>) -> (usize, usize) {
    let signed = i64::try_from(rank).unwrap_or(i64::MAX);
    let place = |at: i64| {
        let at = if at < 0 { at.saturating_add(signed) } else { at };
        usize::try_from(at.clamp(0, signed)).unwrap_or(0)
    };
    let from = place(start);
    (from, end.map_or(rank, place).max(from))
}
