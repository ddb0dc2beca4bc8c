//! Quantised tensors: integers with a scale and a zero point. They are computed in floats that hold the integers exactly.

use pto_operators::{Activation, Binary, DType, Epilogue, Operator, Reduction, Unary, ValueId};

use super::builder::{Builder, one, several};
use super::call::{Call, NodeValue, Step, stop};
use crate::tensor::dtype_of;

/// The least and the largest number of an integer type of 8 or 16 bits.
fn limits(dtype: DType) -> Step<(f64, f64)> {
    match dtype {
        DType::I8 => Ok((-128.0, 127.0)),
        DType::U8 => Ok((0.0, 255.0)),
        DType::I16 => Ok((-32768.0, 32767.0)),
        DType::U16 => Ok((0.0, 65535.0)),
        other => stop(format!("quantised elements of type {other} are not supported")),
    }
}

/// A scale or a zero point, so that it is broadcast to `x`: one for all, one for each slice of the axis, or one for each block of it.
fn spread(
    b: &mut Builder<'_>,
    value: ValueId,
    x: ValueId,
    axis: i64,
    block: usize,
) -> Step<ValueId> {
    let (shape, own) = (b.shape(x), b.shape(value));
    if block > 0 {
        let axis = b.axis(axis, shape.len())?;
        if own.len() != shape.len() || own[axis] != shape[axis].div_ceil(block) {
            return stop(format!(
                "a scale has the extents {own:?}, which are not blocks of {block} of {shape:?}"
            ));
        }
        let wide = b.add(Operator::Unsqueeze { axes: vec![axis as i64 + 1] }, &[value])?;
        let mut extents = own.clone();
        extents.insert(axis + 1, block);
        let wide = b.expand(wide, &extents)?;
        let mut flat = own;
        flat[axis] *= block;
        let wide = b.reshape(wide, &flat)?;
        return b.part(wide, axis, 0, shape[axis]);
    }
    if b.ty(value).elements() == 1 {
        return b.reshape(value, &[]);
    }
    let axis = b.axis(axis, shape.len())?;
    if own.len() != 1 || own[0] != shape[axis] {
        return stop(format!(
            "a scale has the extents {own:?}, and axis {axis} of {shape:?} is wanted"
        ));
    }
    let mut extents = vec![1; shape.len()];
    extents[axis] = own[0];
    b.reshape(value, &extents)
}

/// round(x / scale) + zero, within the limits of the type.
fn quantized(
    b: &mut Builder<'_>,
    x: ValueId,
    scale: ValueId,
    zero: Option<ValueId>,
    to: DType,
) -> Step<ValueId> {
    let (low, high) = limits(to)?;
    let scale = b.cast(scale, b.dtype(x))?;
    let scaled = b.quotient(x, scale)?;
    let scaled = b.cast(scaled, DType::F32)?;
    let mut rounded = b.unary(Unary::Round, scaled)?;
    if let Some(zero) = zero {
        let zero = b.cast(zero, DType::F32)?;
        rounded = b.sum(rounded, zero)?;
    }
    let limited = b.activation(Activation::Clamp { low, high }, rounded)?;
    b.cast(limited, to)
}

pub(super) fn quantize(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let (x, scale, zero) = (c.input(0)?, c.input(1)?, c.optional(2)?);
    let axis = c.int("axis", 1)?;
    let block = if c.version >= 21 { c.count("block_size", 0)? } else { 0 };
    c.ignore(&["saturate"]);
    if c.version >= 23 && c.int("precision", 0)? != 0 {
        return stop("attribute precision is not supported");
    }
    let named = if c.version >= 21 { c.int("output_dtype", 0)? } else { 0 };
    let to = match (zero, named) {
        (Some(zero), _) => b.dtype(zero),
        (None, 0) => DType::U8,
        (None, number) => dtype_of(number).or_else(stop)?,
    };
    let x = if b.dtype(x).is_float() { x } else { b.cast(x, DType::F64)? };
    let scale = spread(b, scale, x, axis, block)?;
    let zero = zero.map(|zero| spread(b, zero, x, axis, block)).transpose()?;
    one(quantized(b, x, scale, zero, to)?)
}

/// (x - zero) scale, in the type of the scale.
fn dequantized(
    b: &mut Builder<'_>,
    x: ValueId,
    scale: ValueId,
    zero: Option<ValueId>,
) -> Step<ValueId> {
    let to = b.dtype(scale);
    // The difference of two integers of 32 bits is exact in f64.
    let mut wide = b.cast(x, DType::F64)?;
    if let Some(zero) = zero {
        let zero = b.cast(zero, DType::F64)?;
        wide = b.difference(wide, zero)?;
    }
    let scale = b.cast(scale, DType::F64)?;
    let product = b.product(wide, scale)?;
    b.cast(product, to)
}

pub(super) fn dequantize(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let (x, scale, zero) = (c.input(0)?, c.input(1)?, c.optional(2)?);
    let axis = c.int("axis", 1)?;
    let block = if c.version >= 21 { c.count("block_size", 0)? } else { 0 };
    let named = if c.version >= 23 { c.int("output_dtype", 0)? } else { 0 };
    let scale = spread(b, scale, x, axis, block)?;
    let zero = zero.map(|zero| spread(b, zero, x, axis, block)).transpose()?;
    let y = dequantized(b, x, scale, zero)?;
    one(match named {
        0 => y,
        number => b.cast(y, dtype_of(number).or_else(stop)?)?,
    })
}

pub(super) fn dynamic(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let x = c.input(0)?;
    let all: Vec<i64> = (0..b.rank(x) as i64).collect();
    let zero = b.scalar(DType::F32, 0.0);
    let low = b.reduce(Reduction::Min, x, &all, false)?;
    let low = b.binary(Binary::Min, low, zero)?;
    let high = b.reduce(Reduction::Max, x, &all, false)?;
    let high = b.binary(Binary::Max, high, zero)?;
    let steps = b.scalar(DType::F32, 255.0);
    let range = b.difference(high, low)?;
    let scale = b.quotient(range, steps)?;
    let point = b.quotient(low, scale)?;
    let point = b.unary(Unary::Neg, point)?;
    let point = b.unary(Unary::Round, point)?;
    let point = b.activation(Activation::Clamp { low: 0.0, high: 255.0 }, point)?;
    let point = b.cast(point, DType::U8)?;
    several([quantized(b, x, scale, Some(point), DType::U8)?, scale, point])
}

/// The integers as `f64`, without their zero point: sums of their products are exact.
fn centred(b: &mut Builder<'_>, x: ValueId, zero: Option<ValueId>, axis: i64) -> Step<ValueId> {
    limits(b.dtype(x))?;
    let wide = b.cast(x, DType::F64)?;
    let Some(zero) = zero else { return Ok(wide) };
    let zero = b.cast(zero, DType::F64)?;
    let zero = if b.ty(zero).elements() == 1 || b.rank(zero) > 1 {
        zero
    } else {
        spread(b, zero, x, axis, 0)?
    };
    let zero = if b.ty(zero).elements() == 1 { b.reshape(zero, &[])? } else { zero };
    b.difference(wide, zero)
}

pub(super) fn matmul_integer(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let (a, d) = (
        centred(b, c.input(0)?, c.optional(2)?, -2)?,
        centred(b, c.input(1)?, c.optional(3)?, -1)?,
    );
    let product = b.matmul(a, d)?;
    one(b.cast(product, DType::I32)?)
}

pub(super) fn conv_integer(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let (x, w) =
        (centred(b, c.input(0)?, c.optional(2)?, 1)?, centred(b, c.input(1)?, c.optional(3)?, 0)?);
    let operator = Operator::Conv {
        window: super::windows::window(c, true)?,
        groups: c.count("group", 1)?,
        epilogue: Epilogue::None,
    };
    let product = b.add(operator, &[x, w])?;
    one(b.cast(product, DType::I32)?)
}

/// The product of two scales and an exact sum, quantised again.
fn requantized(
    b: &mut Builder<'_>,
    sum: ValueId,
    scales: [ValueId; 3],
    zero: ValueId,
) -> Step<ValueId> {
    let to = b.dtype(zero);
    let (low, high) = limits(to)?;
    let mut value = sum;
    for (at, scale) in scales.into_iter().enumerate() {
        let scale = b.cast(scale, DType::F64)?;
        value = if at < 2 { b.product(value, scale)? } else { b.quotient(value, scale)? };
    }
    let rounded = b.unary(Unary::Round, value)?;
    let zero = b.cast(zero, DType::F64)?;
    let shifted = b.sum(rounded, zero)?;
    let limited = b.activation(Activation::Clamp { low, high }, shifted)?;
    b.cast(limited, to)
}

pub(super) fn qlinear_matmul(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let a = centred(b, c.input(0)?, Some(c.input(2)?), -2)?;
    let d = centred(b, c.input(3)?, Some(c.input(5)?), -1)?;
    let product = b.matmul(a, d)?;
    let mut scales = Vec::new();
    for (at, axis) in [(1, -2), (4, -1), (6, -1)] {
        scales.push(spread(b, c.input(at)?, product, axis, 0)?);
    }
    let zero = spread(b, c.input(7)?, product, -1, 0)?;
    one(requantized(b, product, [scales[0], scales[1], scales[2]], zero)?)
}

pub(super) fn qlinear_conv(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let x = centred(b, c.input(0)?, Some(c.input(2)?), 1)?;
    let w = centred(b, c.input(3)?, Some(c.input(5)?), 0)?;
    let bias = c.optional(8)?.map(|bias| b.cast(bias, DType::F64)).transpose()?;
    let operator = Operator::Conv {
        window: super::windows::window(c, true)?,
        groups: c.count("group", 1)?,
        epilogue: Epilogue::None,
    };
    let sum = b.add_with(operator, &[Some(x), Some(w), bias])?;
    let mut scales = Vec::new();
    for at in [1, 4, 6] {
        scales.push(spread(b, c.input(at)?, sum, 1, 0)?);
    }
    let zero = spread(b, c.input(7)?, sum, 1, 0)?;
    one(requantized(b, sum, [scales[0], scales[1], scales[2]], zero)?)
}
