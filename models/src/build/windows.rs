//! Convolutions, pooling, resizing.

use pto_operators::{
    AspectPolicy, Coordinates, Epilogue, Interpolation, NearestMode, Operator, Padding, Pooling,
    Resize, ResizeTarget, Window,
};

use super::builder::{Builder, one, several};
use super::call::{Call, NodeValue, Step, stop};

/// The window that attributes describe.
pub(super) fn window(c: &Call<'_>, dilations: bool) -> Step<Window> {
    let pads = c.ints("pads")?;
    let padding = match c.text("auto_pad", "NOTSET")?.as_str() {
        "NOTSET" => Padding::Explicit(pads.unwrap_or_default()),
        "SAME_UPPER" => Padding::SameUpper,
        "SAME_LOWER" => Padding::SameLower,
        "VALID" => Padding::Valid,
        other => {
            return stop(format!(
                "attribute auto_pad is '{other}', and has to be NOTSET, SAME_UPPER, SAME_LOWER or VALID"
            ));
        }
    };
    Ok(Window {
        kernel: c.counts("kernel_shape")?,
        strides: c.counts("strides")?,
        dilations: if dilations { c.counts("dilations")? } else { Vec::new() },
        padding,
    })
}

pub(super) fn conv(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let operator = Operator::Conv {
        window: window(c, true)?,
        groups: c.count("group", 1)?,
        epilogue: Epilogue::None,
    };
    one(b.add_with(operator, &[Some(c.input(0)?), Some(c.input(1)?), c.optional(2)?])?)
}

pub(super) fn conv_transpose(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let operator = Operator::ConvTranspose {
        window: window(c, true)?,
        groups: c.count("group", 1)?,
        output_padding: c.counts("output_padding")?,
        output_shape: c.counts("output_shape")?,
        epilogue: Epilogue::None,
    };
    one(b.add_with(operator, &[Some(c.input(0)?), Some(c.input(1)?), c.optional(2)?])?)
}

pub(super) fn max_pool(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let column_major = c.version >= 8 && c.flag("storage_order", false)?;
    let (window, ceil_mode) =
        (window(c, c.version >= 10)?, c.version >= 10 && c.flag("ceil_mode", false)?);
    let operator = Operator::Pool { pooling: Pooling::Max { column_major }, window, ceil_mode };
    several(b.add_all(operator, &[Some(c.input(0)?)])?)
}

pub(super) fn average_pool(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let count_padding = c.version >= 7 && c.flag("count_include_pad", false)?;
    let (window, ceil_mode) =
        (window(c, c.version >= 19)?, c.version >= 10 && c.flag("ceil_mode", false)?);
    let operator =
        Operator::Pool { pooling: Pooling::Average { count_padding }, window, ceil_mode };
    one(b.add(operator, &[c.input(0)?])?)
}

pub(super) fn lp_pool(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    if c.version < 2 {
        return stop("version 1 has a power that is no whole number, and is not supported");
    }
    let p = c.count("p", 2)?;
    let (window, ceil_mode) =
        (window(c, c.version >= 18)?, c.version >= 18 && c.flag("ceil_mode", false)?);
    one(b.add(Operator::Pool { pooling: Pooling::Lp { p }, window, ceil_mode }, &[c.input(0)?])?)
}

pub(super) fn global_pool(
    b: &mut Builder<'_>,
    c: &Call<'_>,
    pooling: Pooling,
) -> Step<Vec<NodeValue>> {
    one(b.add(Operator::GlobalPool { pooling }, &[c.input(0)?])?)
}

pub(super) fn global_lp_pool(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let p = c.count("p", 2)?;
    one(b.add(Operator::GlobalPool { pooling: Pooling::Lp { p } }, &[c.input(0)?])?)
}

fn nearest_mode(text: &str) -> Step<NearestMode> {
    match text {
        "round_prefer_floor" => Ok(NearestMode::RoundPreferFloor),
        "round_prefer_ceil" => Ok(NearestMode::RoundPreferCeil),
        "floor" => Ok(NearestMode::Floor),
        "ceil" => Ok(NearestMode::Ceil),
        other => stop(format!("attribute nearest_mode is '{other}', which there is not")),
    }
}

fn interpolation(mode: &str, a: f64, nearest: NearestMode) -> Step<Interpolation> {
    match mode {
        "nearest" => Ok(Interpolation::Nearest(nearest)),
        "linear" | "bilinear" => Ok(Interpolation::Linear),
        "cubic" => Ok(Interpolation::Cubic { a }),
        other => {
            stop(format!("attribute mode is '{other}', and has to be nearest, linear or cubic"))
        }
    }
}

pub(super) fn upsample(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let mode = interpolation(&c.text("mode", "nearest")?, -0.75, NearestMode::Floor)?;
    let scales = if c.version < 9 {
        match c.floats("scales")? {
            Some(scales) => scales,
            None => return stop("attribute scales is missing"),
        }
    } else {
        b.doubles(c.input(1)?, "input 1 (scales)")?
    };
    one(b.add(Operator::Resize(simple(mode, scales)), &[c.input(0)?])?)
}

/// As it was before coordinates could be chosen.
const fn simple(interpolation: Interpolation, scales: Vec<f64>) -> Resize {
    Resize {
        interpolation,
        coordinates: Coordinates::Asymmetric,
        target: ResizeTarget::Scales(scales),
        axes: None,
        exclude_outside: false,
        antialias: false,
        extrapolation: 0.0,
        regions: Vec::new(),
    }
}

pub(super) fn resize(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let x = c.input(0)?;
    let mode = c.text("mode", "nearest")?;
    if c.version < 11 {
        let scales = b.doubles(c.input(1)?, "input 1 (scales)")?;
        let mode = interpolation(&mode, -0.75, NearestMode::Floor)?;
        return one(b.add(Operator::Resize(simple(mode, scales)), &[x])?);
    }
    let nearest = nearest_mode(&c.text("nearest_mode", "round_prefer_floor")?)?;
    let interpolation = interpolation(&mode, c.float("cubic_coeff_a", -0.75)?, nearest)?;
    let coordinates = match c.text("coordinate_transformation_mode", "half_pixel")?.as_str() {
        "half_pixel" => Coordinates::HalfPixel,
        "half_pixel_symmetric" if c.version >= 19 => Coordinates::HalfPixelSymmetric,
        "pytorch_half_pixel" => Coordinates::PytorchHalfPixel,
        "align_corners" => Coordinates::AlignCorners,
        "asymmetric" => Coordinates::Asymmetric,
        "tf_crop_and_resize" => Coordinates::CropAndResize,
        other => {
            return stop(format!(
                "attribute coordinate_transformation_mode is '{other}', which is not supported"
            ));
        }
    };
    let (mut axes, mut antialias, mut policy) = (None, false, AspectPolicy::Stretch);
    if c.version >= 18 {
        axes = c.ints("axes")?;
        antialias = c.flag("antialias", false)?;
        policy = match c.text("keep_aspect_ratio_policy", "stretch")?.as_str() {
            "stretch" => AspectPolicy::Stretch,
            "not_larger" => AspectPolicy::NotLarger,
            "not_smaller" => AspectPolicy::NotSmaller,
            other => {
                return stop(format!(
                    "attribute keep_aspect_ratio_policy is '{other}', which there is not"
                ));
            }
        };
    }
    let exclude_outside = c.flag("exclude_outside", false)?;
    let extrapolation = c.float("extrapolation_value", 0.0)?;
    let regions = match (coordinates, c.optional(1)?) {
        (Coordinates::CropAndResize, Some(roi)) => b.doubles(roi, "input 1 (roi)")?,
        _ => Vec::new(),
    };
    // Files of version 11 give an empty tensor for what is not used.
    let filled =
        |value: Option<pto_operators::ValueId>| value.filter(|value| b.ty(*value).elements() > 0);
    let target = match (filled(c.optional(2)?), filled(c.optional(3)?)) {
        (Some(scales), None) => {
            let scales = b.doubles(scales, "input 2 (scales)")?;
            if coordinates == Coordinates::AlignCorners && axes.is_none() {
                let is_whole =
                    |(extent, scale): (&usize, &f64)| (*extent as f64 * scale).fract() == 0.0;
                if !b.shape(x).iter().zip(&scales).all(is_whole) {
                    return stop(
                        "align_corners with a scale that gives no whole extent means different things to different programs, and is not supported; give sizes",
                    );
                }
            }
            ResizeTarget::Scales(scales)
        }
        (None, Some(sizes)) => {
            let sizes = b.ints(sizes, "input 3 (sizes)")?;
            let size = |size: &i64| {
                usize::try_from(*size)
                    .or_else(|_| stop(format!("a size is {size}, and has to be 0 or more")))
            };
            ResizeTarget::Sizes { sizes: sizes.iter().map(size).collect::<Step<_>>()?, policy }
        }
        (Some(_), Some(_)) => return stop("both scales and sizes are given"),
        (None, None) => return stop("neither scales nor sizes are given"),
    };
    let resize = Resize {
        interpolation,
        coordinates,
        target,
        axes,
        exclude_outside,
        antialias,
        extrapolation,
        regions,
    };
    one(b.add(Operator::Resize(resize), &[x])?)
}
