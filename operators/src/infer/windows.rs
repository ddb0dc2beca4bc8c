//! Windows over spatial dimensions: convolutions, pooling; and the sizes of `Resize`.

use super::check::OperatorCheck;
use crate::dtype::DType;
use crate::error::OperatorError;
use crate::operator::{AspectPolicy, Coordinates, Padding, Pooling, Resize, ResizeTarget, Window};
use crate::tensor::TensorType;

/// A window over the spatial dimensions of an input, with every number known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Spatial extents of the input.
    pub(crate) input: Vec<usize>,
    /// Spatial extents of the output.
    pub(crate) spatial: Vec<usize>,
    pub(crate) kernel: Vec<usize>,
    pub(crate) strides: Vec<usize>,
    pub(crate) dilations: Vec<usize>,
    /// Padding at the beginnings. That at the ends follows from the extents; of a transposed convolution it may be negative.
    pub(crate) begins: Vec<i64>,
    /// Padding at the ends, as far as it counts for averages.
    pub(crate) ends: Vec<i64>,
    /// The type of the output.
    pub(crate) output: TensorType,
}

/// Numbers of a window, at most.
const MOST: usize = 1 << 30;

/// Kernel, strides, dilations.
type Sides = (Vec<usize>, Vec<usize>, Vec<usize>);

fn sides(
    check: &OperatorCheck<'_>,
    window: &Window,
    kernel: &[usize],
) -> Result<Sides, OperatorError> {
    let rank = kernel.len();
    let numbers = |name: &'static str, given: &[usize]| match given {
        [] => Ok(vec![1; rank]),
        given if given.len() != rank => Err(check.attribute(
            name,
            format!(
                "has {} numbers, and there are {rank} spatial dimensions; give one each",
                given.len()
            ),
        )),
        given if given.iter().any(|number| !(1..=MOST).contains(number)) => {
            Err(check.attribute(name, format!("is {given:?}; use 1 to {MOST}")))
        }
        given => Ok(given.to_vec()),
    };
    Ok((
        numbers("kernel", kernel)?,
        numbers("strides", &window.strides)?,
        numbers("dilations", &window.dilations)?,
    ))
}

/// Padding at the begins and ends as it is given; zeros where it follows from the output.
fn explicit(
    check: &OperatorCheck<'_>,
    padding: &Padding,
    input: &[usize],
) -> Result<(Vec<i64>, Vec<i64>), OperatorError> {
    if input.iter().any(|extent| *extent > MOST) {
        return Err(check.wrong(0, format!("has spatial extents {input:?}; {MOST} is the limit")));
    }
    let rank = input.len();
    let pads = match padding {
        Padding::Explicit(pads) if !pads.is_empty() => pads,
        _ => return Ok((vec![0; rank], vec![0; rank])),
    };
    if pads.len() != 2 * rank {
        return Err(check.attribute(
            "padding",
            format!(
                "has {} numbers, and there are {rank} spatial dimensions; give two each",
                pads.len()
            ),
        ));
    }
    let limit = i64::try_from(MOST).unwrap_or(i64::MAX);
    if pads.iter().any(|pad| !(0..=limit).contains(pad)) {
        return Err(check.attribute("padding", format!("is {pads:?}; use 0 to {MOST}")));
    }
    Ok((pads[..rank].to_vec(), pads[rank..].to_vec()))
}

fn signed(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Padding of an axis at its begin and at its end. An odd element is at the end under `SameUpper`, else at the begin.
fn halves(padding: &Padding, total: i64) -> (i64, i64) {
    let small = total.div_euclid(2);
    match padding {
        Padding::SameUpper => (small, total - small),
        _ => (total - small, small),
    }
}

/// The geometry of a window over an input; `ceil`: the number of windows is rounded up.
fn over(
    check: &OperatorCheck<'_>,
    (window, kernel): (&Window, &[usize]),
    input: &[usize],
    ceil: bool,
) -> Result<Geometry, OperatorError> {
    let rank = input.len();
    let (kernel, strides, dilations) = sides(check, window, kernel)?;
    let extents: Vec<i64> = kernel
        .iter()
        .zip(&dilations)
        .map(|(kernel, dilation)| signed(dilation.saturating_mul(kernel - 1).saturating_add(1)))
        .collect();
    let (mut begins, mut ends) = explicit(check, &window.padding, input)?;
    let mut spatial = Vec::with_capacity(rank);
    for at in 0..rank {
        let (extent, stride, covered) = (signed(input[at]), signed(strides[at]), extents[at]);
        if matches!(window.padding, Padding::SameUpper | Padding::SameLower) {
            let count = (extent + stride - 1) / stride;
            let total =
                ((count - 1).max(0).saturating_mul(stride).saturating_add(covered) - extent).max(0);
            (begins[at], ends[at]) = halves(&window.padding, total);
            spatial.push(usize::try_from(count).unwrap_or(0));
            continue;
        }
        let room = extent + begins[at] + ends[at] - covered;
        if room < 0 {
            return Err(check.attribute("window", format!("covers {covered} elements of spatial dimension {at}, which has {} with its padding; it has to fit", extent + begins[at] + ends[at])));
        }
        let mut count = room / stride + 1;
        if ceil && room % stride != 0 && count * stride < extent + begins[at] {
            // A window that began in the padding at the end is none.
            count += 1;
        }
        spatial.push(usize::try_from(count).unwrap_or(0));
    }
    let output = TensorType::new(DType::F32, &[]);
    Ok(Geometry {
        input: input.to_vec(),
        spatial,
        kernel,
        strides,
        dilations,
        begins,
        ends,
        output,
    })
}

/// x, with batch, channels and one to three spatial dimensions.
fn spatial_input<'c>(check: &OperatorCheck<'c>) -> Result<&'c TensorType, OperatorError> {
    let x = check.float(0)?;
    if (3..=5).contains(&x.rank()) {
        Ok(x)
    } else {
        Err(check
            .wrong(0, format!("is {x}; give batch, channels and one to three spatial dimensions")))
    }
}

/// Weights and bias of a convolution: the kernel's extents.
fn weights<'c>(
    check: &OperatorCheck<'c>,
    x: &TensorType,
    (window, groups): (&Window, usize),
) -> Result<&'c TensorType, OperatorError> {
    let weights = check.typed(1, x.dtype)?;
    if weights.rank() != x.rank() {
        return Err(check.wrong(1, format!("is {weights}, and x is {x}; give as many dimensions")));
    }
    if groups == 0 || !x.shape[1].is_multiple_of(groups) || !weights.shape[0].is_multiple_of(groups)
    {
        return Err(check.attribute(
            "groups",
            format!(
                "is {groups}, of {} channels, and weights are {weights}; groups have to be equal",
                x.shape[1]
            ),
        ));
    }
    if !window.kernel.is_empty() && window.kernel != weights.shape[2..] {
        return Err(check.attribute(
            "kernel",
            format!(
                "is {:?}, and the weights are {weights}; both have to be the same",
                window.kernel
            ),
        ));
    }
    if weights.shape[2..].contains(&0) {
        return Err(check.wrong(1, format!("is {weights}; a kernel has one element at least")));
    }
    Ok(weights)
}

fn bias(check: &OperatorCheck<'_>, x: &TensorType, channels: usize) -> Result<(), OperatorError> {
    if check.optional(2).is_some() { check.vector_of(2, x.dtype, channels) } else { Ok(()) }
}

pub(crate) fn conv(
    check: &OperatorCheck<'_>,
    window: &Window,
    groups: usize,
) -> Result<Geometry, OperatorError> {
    let x = spatial_input(check)?;
    let weights = weights(check, x, (window, groups))?;
    if weights.shape[1].checked_mul(groups) != Some(x.shape[1]) {
        return Err(check.wrong(1, format!("is {weights}, and x is {x}, in {groups} groups; the second extent of weights is that of channels in a group, {}", x.shape[1] / groups)));
    }
    bias(check, x, weights.shape[0])?;
    let mut geometry = over(check, (window, &weights.shape[2..]), &x.shape[2..], false)?;
    let shape = [&[x.shape[0], weights.shape[0]], geometry.spatial.as_slice()].concat();
    geometry.output = TensorType { dtype: x.dtype, shape };
    Ok(geometry)
}

pub(crate) fn conv_transpose(
    check: &OperatorCheck<'_>,
    window: &Window,
    groups: usize,
    (output_padding, output_shape): (&[usize], &[usize]),
) -> Result<Geometry, OperatorError> {
    let x = spatial_input(check)?;
    let weights = weights(check, x, (window, groups))?;
    if weights.shape[0] != x.shape[1] {
        return Err(check.wrong(
            1,
            format!("is {weights}, and x is {x}; the first extent of weights is that of channels"),
        ));
    }
    let channels = weights.shape[1].saturating_mul(groups);
    bias(check, x, channels)?;
    let input = &x.shape[2..];
    let rank = input.len();
    let (kernel, strides, dilations) = sides(check, window, &weights.shape[2..])?;
    let extra = match output_padding {
        [] => vec![0; rank],
        given if given.len() != rank || given.iter().any(|number| *number > MOST) => {
            return Err(check.attribute(
                "output_padding",
                format!(
                    "is {given:?}, and there are {rank} spatial dimensions; give one number each"
                ),
            ));
        }
        given => given.to_vec(),
    };
    if !output_shape.is_empty()
        && (output_shape.len() != rank || output_shape.iter().any(|extent| *extent > MOST))
    {
        return Err(check.attribute(
            "output_shape",
            format!(
                "is {output_shape:?}, and there are {rank} spatial dimensions; give one extent each"
            ),
        ));
    }
    let (mut begins, mut ends) = explicit(check, &window.padding, input)?;
    let mut spatial = Vec::with_capacity(rank);
    for at in 0..rank {
        let covered = signed(dilations[at].saturating_mul(kernel[at] - 1).saturating_add(1));
        let full = (signed(input[at]) - 1)
            .saturating_mul(signed(strides[at]))
            .saturating_add(signed(extra[at]))
            .saturating_add(covered);
        let is_same = matches!(window.padding, Padding::SameUpper | Padding::SameLower);
        let wanted = match output_shape.get(at) {
            Some(extent) => Some(signed(*extent)),
            None if is_same => Some(signed(input[at]).saturating_mul(signed(strides[at]))),
            None => None,
        };
        if let Some(wanted) = wanted {
            (begins[at], ends[at]) = halves(&window.padding, full - wanted);
        }
        let extent = full - begins[at] - ends[at];
        let extent = usize::try_from(extent).map_err(|_| {
            check.attribute(
                "padding",
                format!("leaves {extent} elements of spatial dimension {at}; use less"),
            )
        })?;
        spatial.push(extent);
    }
    let shape = [&[x.shape[0], channels], spatial.as_slice()].concat();
    let output = TensorType { dtype: x.dtype, shape };
    Ok(Geometry {
        input: input.to_vec(),
        spatial,
        kernel,
        strides,
        dilations,
        begins,
        ends,
        output,
    })
}

pub(crate) fn pool(
    check: &OperatorCheck<'_>,
    window: &Window,
    ceil_mode: bool,
) -> Result<Geometry, OperatorError> {
    let x = check.number(0)?;
    if x.rank() < 3 {
        return Err(check.wrong(0, format!("is {x}; give batch, channels and spatial dimensions")));
    }
    if window.kernel.len() != x.rank() - 2 {
        return Err(check.attribute(
            "kernel",
            format!(
                "is {:?}, and x is {x}; give one extent for each spatial dimension",
                window.kernel
            ),
        ));
    }
    let mut geometry = over(check, (window, &window.kernel), &x.shape[2..], ceil_mode)?;
    let shape = [&x.shape[..2], geometry.spatial.as_slice()].concat();
    geometry.output = TensorType { dtype: x.dtype, shape };
    Ok(geometry)
}

pub(super) fn pool_types(
    check: &OperatorCheck<'_>,
    pooling: &Pooling,
    window: &Window,
    ceil_mode: bool,
) -> Result<Vec<TensorType>, OperatorError> {
    let output = pool(check, window, ceil_mode)?.output;
    match pooling {
        Pooling::Max { .. } => {
            let indices = TensorType { dtype: DType::I64, shape: output.shape.clone() };
            Ok(vec![output, indices])
        }
        Pooling::Average { .. } => check.float(0).map(|_| vec![output]),
        Pooling::Lp { p: 0 } => Err(check.attribute("p", "is 0; use 1 or more".to_owned())),
        Pooling::Lp { .. } => check.float(0).map(|_| vec![output]),
    }
}

/// What `Resize` does to a dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ResizeAxis {
    pub(crate) input: usize,
    pub(crate) output: usize,
    pub(crate) scale: f64,
    /// The part of the input, for `CropAndResize`.
    pub(crate) region: (f64, f64),
}

pub(crate) fn resize_axes(
    check: &OperatorCheck<'_>,
    resize: &Resize,
) -> Result<Vec<ResizeAxis>, OperatorError> {
    let x = check.number(0)?;
    let axes = check.axes_or_all("axes", resize.axes.as_deref(), x.rank())?;
    let mut all: Vec<_> = x
        .shape
        .iter()
        .map(|extent| ResizeAxis {
            input: *extent,
            output: *extent,
            scale: 1.0,
            region: (0.0, 1.0),
        })
        .collect();
    let count = |name: &'static str, found: usize, wanted: usize| {
        if found == wanted {
            Ok(())
        } else {
            Err(check.attribute(
                name,
                format!("has {found} numbers for {} axes; {wanted} are wanted", axes.len()),
            ))
        }
    };
    if resize.coordinates == Coordinates::CropAndResize {
        count("regions", resize.regions.len(), 2 * axes.len())?;
        if resize.regions.iter().any(|number| !number.is_finite()) {
            return Err(check.attribute(
                "regions",
                format!("is {:?}; use numbers from 0 to 1", resize.regions),
            ));
        }
        for (at, axis) in axes.iter().enumerate() {
            all[*axis].region = (resize.regions[at], resize.regions[at + axes.len()]);
        }
    }
    match &resize.target {
        ResizeTarget::Scales(scales) => {
            count("scales", scales.len(), axes.len())?;
            if scales.iter().any(|scale| !scale.is_finite() || *scale <= 0.0 || *scale > 1e9) {
                return Err(
                    check.attribute("scales", format!("is {scales:?}; use numbers above 0"))
                );
            }
            for (axis, scale) in axes.iter().zip(scales) {
                let part = if resize.coordinates == Coordinates::CropAndResize {
                    all[*axis].region.1 - all[*axis].region.0
                } else {
                    1.0
                };
                all[*axis].scale = *scale;
                all[*axis].output = rounded((all[*axis].input as f64 * part * scale).floor());
            }
        }
        ResizeTarget::Sizes { sizes, policy } => {
            count("sizes", sizes.len(), axes.len())?;
            let ratio =
                |(axis, size): (&usize, &usize)| *size as f64 / all[*axis].input.max(1) as f64;
            let ratios = axes.iter().zip(sizes).map(ratio);
            let common = match policy {
                AspectPolicy::Stretch => None,
                AspectPolicy::NotLarger => ratios.reduce(f64::min),
                AspectPolicy::NotSmaller => ratios.reduce(f64::max),
            };
            for (axis, size) in axes.iter().zip(sizes) {
                let input = all[*axis].input;
                let one = &mut all[*axis];
                (one.output, one.scale) = match common {
                    Some(scale) => (rounded((scale * input as f64).round_ties_even()), scale),
                    None => (*size, *size as f64 / input.max(1) as f64),
                };
            }
        }
    }
    if let Some(axis) = all.iter().find(|axis| axis.input == 0 && axis.output > 0) {
        return Err(
            check.wrong(0, format!("is {x}; nothing cannot become {} elements", axis.output))
        );
    }
    Ok(all)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative; saturates"
)]
fn rounded(extent: f64) -> usize {
    extent.max(0.0) as usize
}
