//! Signals: windows, Fourier transforms, linear attention, convolutions with a state, patches.

use std::f64::consts::PI;

use pto_operators::{Activation, DType, Epilogue, Operator, Padding, Unary, ValueId, Window};

use super::builder::{Builder, one, several};
use super::call::{Call, NodeValue, Step, stop};
use crate::tensor::dtype_of;

/// A window of so many elements; `of` gives the element at a phase from 0 to 2 pi.
pub(super) fn window(
    b: &mut Builder<'_>,
    c: &Call<'_>,
    of: fn(f64) -> f64,
) -> Step<Vec<NodeValue>> {
    let size = b.int(c.input(0)?, "input 0 (size)")?;
    let size = usize::try_from(size)
        .or_else(|_| stop(format!("size is {size}, and has to be 0 or more")))?;
    if size > 1 << 26 {
        return stop(format!("a window of {size} elements is too large"));
    }
    let is_periodic = c.flag("periodic", true)?;
    let dtype = dtype_of(c.int("output_datatype", 1)?).or_else(stop)?;
    let steps = if is_periodic { size } else { size.saturating_sub(1) };
    let values: Vec<f64> =
        (0..size).map(|at| of(2.0 * PI * at as f64 / steps.max(1) as f64)).collect();
    one(b.numbers(dtype, &[size], &values)?)
}

/// A matrix that makes a spectrum one of the mel scale: for each band a triangle over the lines of the spectrum.
pub(super) fn mel_weights(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let bands = b.int(c.input(0)?, "input 0 (num_mel_bins)")?;
    let length = b.int(c.input(1)?, "input 1 (dft_length)")?;
    let rate = b.int(c.input(2)?, "input 2 (sample_rate)")?;
    let lowest = b.double(c.input(3)?, "input 3 (lower_edge_hertz)")?;
    let highest = b.double(c.input(4)?, "input 4 (upper_edge_hertz)")?;
    let dtype = dtype_of(c.int("output_datatype", 1)?).or_else(stop)?;
    let (Ok(bands), Ok(length)) = (usize::try_from(bands), usize::try_from(length)) else {
        return stop(format!("there are {bands} bands of a transform of {length} elements"));
    };
    let lines = length / 2 + 1;
    let is_range = 0.0 <= lowest && lowest <= highest && highest <= rate as f64 / 2.0;
    if bands == 0 || rate <= 0 || !is_range || bands.saturating_mul(lines) > 1 << 26 {
        return stop(format!(
            "{bands} bands from {lowest} to {highest} Hz do not fit a rate of {rate} Hz and a transform of {length} elements"
        ));
    }
    let mel = |hertz: f64| 2595.0 * (1.0 + hertz / 700.0).log10();
    let step = (mel(highest) - mel(lowest)) / (bands + 2) as f64;
    // The line of the spectrum where each band begins.
    let line = |band: usize| {
        let hertz = 700.0 * (10_f64.powf((band as f64 * step + mel(lowest)) / 2595.0) - 1.0);
        ((length as f64 + 1.0) * hertz / rate as f64).floor()
    };
    let mut weights = vec![0.0; lines * bands];
    for band in 0..bands {
        let [from, middle, to] = [line(band), line(band + 1), line(band + 2)];
        for at in 0..lines {
            let place = at as f64;
            let weight = if place == middle {
                1.0
            } else if from <= place && place < middle {
                (place - from) / (middle - from)
            } else if middle < place && place < to {
                (to - place) / (to - middle)
            } else {
                0.0
            };
            weights[at * bands + band] = weight;
        }
    }
    one(b.numbers(dtype, &[lines, bands], &weights)?)
}

pub(super) fn swiglu(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let (x, gate) = (c.input(0)?, c.input(1)?);
    if b.ty(x) != b.ty(gate) {
        return stop("both inputs have to have the same type and extents");
    }
    let swish = b.activation(Activation::Swish { alpha: c.float("alpha", 1.0)? }, x)?;
    one(b.product(swish, gate)?)
}

pub(super) fn dft(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let x = c.input(0)?;
    let rank = b.rank(x);
    let axis = if c.version >= 20 {
        match c.optional(2)? {
            Some(axis) => b.int(axis, "input 2 (axis)")?,
            None => -2,
        }
    } else {
        c.int("axis", 1)?
    };
    let axis = b.axis(axis, rank)?;
    let transform = Transform {
        is_inverse: c.flag("inverse", false)?,
        is_onesided: c.flag("onesided", false)?,
    };
    let extent = b.shape(x)[axis];
    let length = match c.optional(1)? {
        Some(length) => {
            let length = b.int(length, "input 1 (dft_length)")?;
            usize::try_from(length).or_else(|_| stop(format!("dft_length is {length}")))?
        }
        None if transform.is_inverse && transform.is_onesided => 2 * extent.saturating_sub(1),
        None => extent,
    };
    one(transform.of(b, x, axis, length)?)
}

/// A discrete Fourier transform.
#[derive(Clone, Copy)]
struct Transform {
    is_inverse: bool,
    is_onesided: bool,
}

impl Transform {
    /// That of so many elements along an axis. The last dimension has real and imaginary parts, or real ones alone.
    fn of(self, b: &mut Builder<'_>, x: ValueId, axis: usize, length: usize) -> Step<ValueId> {
        let Self { is_inverse, is_onesided } = self;
        let (rank, shape) = (b.rank(x), b.shape(x));
        let parts = shape[rank - 1];
        if axis + 1 == rank || !(1..=2).contains(&parts) || !b.dtype(x).is_float() {
            return stop(
                "input 0 has to be floats, with one or two numbers in the last dimension, which is not the axis",
            );
        }
        if length == 0 || length > 1 << 13 {
            return stop(format!(
                "a transform of {length} elements is not supported; 1 to 8192 are"
            ));
        }
        let half = length / 2 + 1;
        // How many elements are read and given.
        let read = shape[axis].min(if is_inverse && is_onesided { half } else { length });
        let given = if is_onesided && !is_inverse { half } else { length };
        let sign = if is_inverse { 1.0 } else { -1.0 };
        let scale = if is_inverse { 1.0 / length as f64 } else { 1.0 };
        let (mut cosines, mut sines) = (Vec::new(), Vec::new());
        for from in 0..read {
            for to in 0..given {
                let angle = sign * 2.0 * PI * ((from * to) % length) as f64 / length as f64;
                // Of a real result, each element that is not given stands for two.
                let twice = is_inverse && is_onesided && from > 0 && 2 * from != length;
                let weight = if twice { 2.0 * scale } else { scale };
                cosines.push(angle.cos() * weight);
                sines.push(angle.sin() * weight);
            }
        }
        let dtype = b.dtype(x);
        let cosines = b.numbers(dtype, &[read, given], &cosines)?;
        let sines = b.numbers(dtype, &[read, given], &sines)?;
        // The axis comes last.
        let mut order: Vec<usize> = (0..rank - 1).filter(|at| *at != axis).collect();
        order.push(axis);
        let side = |b: &mut Builder<'_>, at: usize| -> Step<ValueId> {
            let part = b.part(x, rank - 1, at, at + 1)?;
            let part = b.add(Operator::Squeeze { axes: Some(vec![rank as i64 - 1]) }, &[part])?;
            let part = b.part(part, axis, 0, read)?;
            b.transpose(part, &order)
        };
        let real = side(b, 0)?;
        let mut results = vec![b.matmul(real, cosines)?, b.matmul(real, sines)?];
        if parts == 2 {
            let imaginary = side(b, 1)?;
            let (a, d) = (b.matmul(imaginary, sines)?, b.matmul(imaginary, cosines)?);
            results = vec![b.difference(results[0], a)?, b.sum(results[1], d)?];
        }
        if is_inverse && is_onesided {
            results.truncate(1);
        }
        let mut back: Vec<usize> = (0..rank - 2).collect();
        back.insert(axis, rank - 2);
        let mut columns = Vec::new();
        for result in results {
            let moved = b.transpose(result, &back)?;
            columns.push(b.add(Operator::Unsqueeze { axes: vec![rank as i64 - 1] }, &[moved])?);
        }
        b.concat(&columns, rank - 1)
    }
}

/// Transforms of parts of a signal, each multiplied by a window.
pub(super) fn stft(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let x = c.input(0)?;
    let step = b.int(c.input(1)?, "input 1 (frame_step)")?;
    let window = c.optional(2)?;
    let is_onesided = c.flag("onesided", true)?;
    let shape = match b.shape(x)[..] {
        [batch, extent] => [batch, extent, 1],
        [batch, extent, parts] => [batch, extent, parts],
        _ => return stop("input 0 has to have 2 or 3 dimensions"),
    };
    let [_, extent, parts] = shape;
    let x = b.reshape(x, &shape)?;
    let length = match (c.optional(3)?, window) {
        (Some(length), _) => b.int(length, "input 3 (frame_length)")?,
        (None, Some(window)) => b.ty(window).elements() as i64,
        (None, None) => return stop("neither a window nor a frame length is given"),
    };
    let (Ok(step), Ok(length)) = (usize::try_from(step), usize::try_from(length)) else {
        return stop(format!("frame_step is {step}, and frame_length {length}; give 1 or more"));
    };
    if step == 0 || length == 0 || length > extent || (parts == 2 && is_onesided) {
        return stop(format!(
            "frames of {length} elements at a distance of {step} do not fit a signal of {extent} elements, or complex numbers have one side"
        ));
    }
    let frames = (extent - length) / step + 1;
    if frames.saturating_mul(length) > 1 << 26 {
        return stop(format!("{frames} frames of {length} elements are too large"));
    }
    let places: Vec<f64> = (0..frames)
        .flat_map(|frame| (0..length).map(move |at| (frame * step + at) as f64))
        .collect();
    let places = b.numbers(DType::I64, &[frames, length], &places)?;
    let mut parts = b.add(Operator::Gather { axis: 1 }, &[x, places])?;
    if let Some(window) = window {
        if b.shape(window) != [length] {
            return stop(format!(
                "the window has the extents {:?}, and a frame {length} elements",
                b.shape(window)
            ));
        }
        let window = b.reshape(window, &[length, 1])?;
        let window = b.cast(window, b.dtype(parts))?;
        parts = b.product(parts, window)?;
    }
    one(Transform { is_inverse: false, is_onesided }.of(b, parts, 2, length)?)
}

pub(super) fn causal_conv(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let (x, weights) = (c.input(0)?, c.input(1)?);
    let (x_shape, w_shape) = (b.shape(x), b.shape(weights));
    let ([batch, channels, _], [_, _, kernel]) = (&x_shape[..], &w_shape[..]) else {
        return stop("inputs 0 and 1 have to have 3 dimensions");
    };
    let before = kernel.saturating_sub(1);
    let past = match c.optional(3)? {
        Some(past) => past,
        None => b.filled(b.dtype(x), &[*batch, *channels, before], 0.0)?,
    };
    let padded = b.concat(&[past, x], 2)?;
    let window = Window {
        kernel: Vec::new(),
        strides: Vec::new(),
        dilations: Vec::new(),
        padding: Padding::Valid,
    };
    let operator = Operator::Conv { window, groups: *channels, epilogue: Epilogue::None };
    let mut y = b.add_with(operator, &[Some(padded), Some(weights), c.optional(2)?])?;
    match c.text("activation", "none")?.as_str() {
        "none" => {}
        "silu" | "swish" => y = b.activation(Activation::Swish { alpha: 1.0 }, y)?,
        other => {
            return stop(format!(
                "attribute activation is '{other}', and has to be none, silu or swish"
            ));
        }
    }
    let length = b.shape(padded)[2];
    several([y, b.part(padded, 2, length.saturating_sub(before), length)?])
}

/// (batch, time, heads x size) as (batch, heads, time, size), in `f32`.
fn heads_of(b: &mut Builder<'_>, x: ValueId, heads: usize) -> Step<ValueId> {
    let [batch, time, all] = b.shape(x)[..] else { return stop("an input has not 3 dimensions") };
    if heads == 0 || all % heads != 0 {
        return stop(format!("{all} elements are not {heads} heads"));
    }
    let x = b.cast(x, DType::F32)?;
    let x = b.reshape(x, &[batch, time, heads, all / heads])?;
    b.transpose(x, &[0, 2, 1, 3])
}

pub(super) fn linear_attention(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    c.ignore(&["chunk_size"]);
    let (q_heads, heads) = (c.count("q_num_heads", 0)?, c.count("kv_num_heads", 0)?);
    if heads == 0 || q_heads % heads != 0 {
        return stop(format!("{q_heads} heads of queries are not shared by {heads} heads of keys"));
    }
    let (is_gated, is_delta) = match c.text("update_rule", "gated_delta")?.as_str() {
        "linear" => (false, false),
        "gated" => (true, false),
        "delta" => (false, true),
        "gated_delta" => (true, true),
        other => return stop(format!("attribute update_rule is '{other}', which there is not")),
    };
    let to = b.dtype(c.input(0)?);
    let q = heads_of(b, c.input(0)?, q_heads)?;
    let k = heads_of(b, c.input(1)?, heads)?;
    let v = heads_of(b, c.input(2)?, heads)?;
    let [batch, _, time, size] = b.shape(k)[..] else {
        return stop("input 1 has not 3 dimensions");
    };
    let width = b.shape(v)[3];
    let scale = match c.float("scale", 0.0)? {
        0.0 => 1.0 / (size as f64).sqrt(),
        scale => scale,
    };
    let (decay, beta) = (c.optional(4)?, c.optional(5)?);
    if decay.is_some() != is_gated || beta.is_some() != is_delta {
        return stop(
            "inputs 4 (decay) and 5 (beta) have to be given for the update rules that use them, and for no others",
        );
    }
    let per_head = |b: &mut Builder<'_>, value: ValueId| -> Step<ValueId> {
        let last = b.shape(value).last().copied().unwrap_or(0);
        let count = if last == 1 { 1 } else { heads };
        heads_of(b, value, count)
    };
    let decay = decay.map(|decay| per_head(b, decay)).transpose()?;
    let beta = beta.map(|beta| per_head(b, beta)).transpose()?;
    let (mut state, state_type) = match c.optional(3)? {
        Some(past) => {
            let dtype = b.dtype(past);
            (b.cast(past, DType::F32)?, dtype)
        }
        None => (b.filled(DType::F32, &[batch, heads, size, width], 0.0)?, to),
    };
    let factor = b.scalar(DType::F32, scale);
    let mut rows = Vec::new();
    for step in 0..time {
        let row = |b: &mut Builder<'_>, value: ValueId| b.part(value, 2, step, step + 1);
        if let Some(decay) = decay {
            let gate = row(b, decay)?;
            let gate = b.unary(Unary::Exp, gate)?;
            let gate = b.transpose(gate, &[0, 1, 3, 2])?;
            state = b.product(state, gate)?;
        }
        let (key, mut value) = (row(b, k)?, row(b, v)?);
        if let Some(beta) = beta {
            let retrieved = b.matmul(key, state)?;
            let rest = b.difference(value, retrieved)?;
            let strength = row(b, beta)?;
            value = b.product(strength, rest)?;
        }
        let column = b.transpose(key, &[0, 1, 3, 2])?;
        let written = b.matmul(column, value)?;
        state = b.sum(state, written)?;
        let query = row(b, q)?;
        // Heads of queries that share a head of keys read the same state.
        let shared = b.reshape(query, &[batch, heads, q_heads / heads, size])?;
        let read = b.matmul(shared, state)?;
        let read = b.reshape(read, &[batch, q_heads, 1, width])?;
        rows.push(b.product(read, factor)?);
    }
    if rows.is_empty() {
        return stop("a sequence without elements is not supported");
    }
    let y = b.concat(&rows, 2)?;
    let y = b.transpose(y, &[0, 2, 1, 3])?;
    let y = b.reshape(y, &[batch, time, q_heads * width])?;
    several([b.cast(y, to)?, b.cast(state, state_type)?])
}

/// Patches are added into an image: a transposed convolution that moves each element of a patch to its own pixel.
pub(super) fn col2im(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let x = c.input(0)?;
    let image = b.ints(c.input(1)?, "input 1 (image_shape)")?;
    let block = b.ints(c.input(2)?, "input 2 (block_shape)")?;
    let positive = |all: &[i64]| -> Step<Vec<usize>> {
        all.iter()
            .map(|one| usize::try_from(*one).or_else(|_| stop(format!("an extent is {one}"))))
            .collect()
    };
    let (image, block) = (positive(&image)?, positive(&block)?);
    let dims = image.len();
    let list = |name: &'static str, usual: usize, count: usize| -> Step<Vec<usize>> {
        let given = c.counts(name)?;
        if given.is_empty() {
            Ok(vec![usual; count])
        } else if given.len() == count {
            Ok(given)
        } else {
            stop(format!("attribute {name} has {} numbers, and {count} are wanted", given.len()))
        }
    };
    let (strides, dilations, pads) =
        (list("strides", 1, dims)?, list("dilations", 1, dims)?, list("pads", 0, 2 * dims)?);
    let [batch, rows, _] = b.shape(x)[..] else { return stop("input 0 has to have 3 dimensions") };
    let each: usize = pto_operators::elements(&block);
    if block.len() != dims || each == 0 || rows % each != 0 || strides.contains(&0) {
        return stop("the blocks do not fit the patches");
    }
    let all = [&image, &block, &strides, &dilations, &pads];
    if each > 1 << 12 || all.iter().any(|list| list.iter().any(|one| *one > 1 << 30)) {
        return stop("blocks have more than 4096 elements, or a number is above 2^30");
    }
    let channels = rows / each;
    let mut places = Vec::new();
    for at in 0..dims {
        let reach = (block[at] - 1) * dilations[at] + 1;
        let all = (image[at] + pads[at] + pads[dims + at]).checked_sub(reach);
        let Some(all) = all else { return stop("a block is larger than the image") };
        places.push(all / strides[at] + 1);
    }
    let patches = [vec![batch * channels, each], places.clone()].concat();
    let x = b.reshape(x, &patches)?;
    let mut ones = vec![0.0; each * each];
    (0..each).for_each(|at| ones[at * each + at] = 1.0);
    let weights = [vec![each, 1], block.clone()].concat();
    let weights = b.numbers(b.dtype(x), &weights, &ones)?;
    // What the windows do not reach is zero.
    let mut output_padding = Vec::new();
    for at in 0..dims {
        let reached = (places[at] - 1) * strides[at] + (block[at] - 1) * dilations[at] + 1;
        output_padding.push(image[at] + pads[at] + pads[dims + at] - reached);
    }
    let padding = Padding::Explicit(pads.iter().map(|pad| *pad as i64).collect());
    let window = Window { kernel: Vec::new(), strides, dilations, padding };
    let operator = Operator::ConvTranspose {
        window,
        groups: 1,
        output_padding,
        output_shape: Vec::new(),
        epilogue: Epilogue::None,
    };
    let y = b.add(operator, &[x, weights])?;
    one(b.reshape(y, &[vec![batch, channels], image].concat())?)
}

pub(super) fn max_unpool(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let (x, indices) = (c.input(0)?, c.input(1)?);
    let shape = b.shape(x);
    let kernel = c.counts("kernel_shape")?;
    let dims = kernel.len();
    let strides = match c.counts("strides")? {
        strides if strides.is_empty() => vec![1; dims],
        strides => strides,
    };
    let pads = match c.counts("pads")? {
        pads if pads.is_empty() => vec![0; 2 * dims],
        pads => pads,
    };
    if shape.len() != dims + 2 || strides.len() != dims || pads.len() != 2 * dims {
        return stop("kernel_shape, strides and pads do not fit the input");
    }
    if [&kernel, &strides, &pads].iter().any(|list| list.iter().any(|one| *one > 1 << 15)) {
        return stop("a number of kernel_shape, strides or pads is above 2^15");
    }
    let mut made = shape[..2].to_vec();
    for at in 0..dims {
        let full = (shape[at + 2].max(1) - 1) * strides[at] + kernel[at];
        let Some(extent) = full.checked_sub(pads[at] + pads[dims + at]) else {
            return stop("pads are larger than the result");
        };
        made.push(extent);
    }
    let all: usize = pto_operators::elements(&made);
    let zeros = b.filled(b.dtype(x), &[all], 0.0)?;
    let count = b.ty(x).elements();
    let (x, indices) = (b.reshape(x, &[count])?, b.reshape(indices, &[count])?);
    let operator =
        Operator::ScatterElements { axis: 0, reduction: pto_operators::ScatterReduction::None };
    let y = b.add(operator, &[zeros, indices, x])?;
    let y = b.reshape(y, &made)?;
    // The indices are those of the result without `output_shape`; with it, zeros follow.
    let Some(wanted) = c.optional(2)? else { return one(y) };
    let wanted = b.ints(wanted, "input 2 (output_shape)")?;
    if wanted.len() != made.len()
        || wanted.iter().zip(&made).any(|(wanted, made)| *wanted < *made as i64)
    {
        return stop(format!("output_shape is {wanted:?}, and the result has {made:?} at least"));
    }
    let after = wanted.iter().zip(&made).map(|(wanted, made)| wanted - *made as i64);
    let pads = vec![0; made.len()].into_iter().chain(after).collect();
    one(b.add(Operator::Pad { mode: pto_operators::PadMode::Constant, pads, axes: None }, &[y])?)
}
